"""How long a path is followed whose member may be of no use beside others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array

LEAST_GAIN = 1e-3
"""A held-out log loss that is not lower by this share is not lower."""
EARLY, PATIENCE, SLOW = 4.0, 2, 0.1
"""From this tau on a path ends where, at so many values in a row, its member's log loss fell by less than this share and
all members together gained nothing. Before, or while its own loss falls fast, a member may yet become of use."""
COSTLY_FROM = 1.0
"""A member whose passes take long must make all together better at each value from this tau on, however fast its own
loss falls."""


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
    """Log loss of all members at the tau before."""
    idle: int = field(default=0, init=False)
    why: str = field(default="", init=False)
    """Why the path ended before it was at its best."""

    def over(self, tau: float, loss: float, said: Array) -> bool:
        """Whether the path ends here: losses fall, then rise, and the way to the next value is as long as all before."""
        if not lower(loss, self.least):
            return True
        slow = tau >= EARLY and not loss < (1.0 - SLOW) * self.least
        in_vain = (self.costly or tau >= EARLY / 2) and self._in_vain(said)
        self.idle = self.idle + 1 if in_vain and slow else 0
        self.least = loss
        if in_vain and self.costly and tau >= COSTLY_FROM:
            self.why = "its passes take long, and all members together gained nothing"
        elif self.idle >= PATIENCE:
            self.why = "it fell slowly, and all members together gained nothing"
        return bool(self.why)

    def _in_vain(self, said: Array) -> bool:
        found = self.judge(said)
        if found is None:
            return False
        before, self.together = self.together, found.log_loss
        return not lower(found.log_loss, before)


def lower(loss: float, before: Any) -> Any:
    """Whether a log loss is lower than another, or than each of several, by more than noise."""
    return loss < (1.0 - LEAST_GAIN) * before
