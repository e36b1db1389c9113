"""How long a path is followed whose member may be of no use beside others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array

LEAST_WEIGHT = 0.01
"""A member that would count less does not count, and need not be trained on all rows."""
LEAST_GAIN = 1e-3
"""A held-out log loss that is not lower by this share is not lower."""
EARLY, PATIENCE, SLOW = 4.0, 2, 0.1
"""A path ends where its member, from this tau on, was of no use beside the others at so many values in a row while
its log loss fell by less than this share from one to the next."""
COSTLY_FROM = 1.0
"""From this tau on a member whose passes are long must make the mixture better at each value."""


class Beside(NamedTuple):
    """What a member would be in a mixture with others."""

    weight: float
    log_loss: float
    """Of all of them together on held-out rows."""


Judge = Callable[[Array], Beside | None]
"""What a member is worth beside others, by what it says of held-out rows; None where there are no others."""


@dataclass
class Patience:
    """Whether to go on, told at each tau what the member says.

    Parameters
    ----------
    judge : callable
    costly : bool
        Whether passes take so long that a member is only trained further while all together gain by it.
    """

    judge: Judge
    costly: bool = False
    least: float = np.inf
    """Least log loss so far, of the member alone."""
    together: float = field(default=np.inf, init=False)
    idle: int = field(default=0, init=False)

    def over(self, tau: float, loss: float, said: Array) -> bool:
        """Whether the path ends here: losses fall, then rise, and the way to the next value is as long as all before."""
        risen, slow = not lower(loss, self.least), tau >= EARLY and not loss < (1.0 - SLOW) * self.least
        self.least = min(loss, self.least)
        found = self.judge(said) if not risen and (slow or self.costly) else None
        self.idle = self.idle + 1 if slow and found is not None and found.weight < LEAST_WEIGHT else 0
        return risen or self.idle >= PATIENCE or self._in_vain(tau, found)

    def _in_vain(self, tau: float, found: Beside | None) -> bool:
        if not self.costly or found is None:
            return False
        before, self.together = self.together, found.log_loss
        return tau >= COSTLY_FROM and not lower(found.log_loss, before)


def lower(loss: float, before: float) -> bool:
    """Whether a log loss is lower than another by more than noise."""
    return loss < (1.0 - LEAST_GAIN) * before
