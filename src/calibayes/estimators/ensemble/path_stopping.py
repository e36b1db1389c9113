"""When to stop following the calibration path of a member."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.core.protocols import Array

LEAST_GAIN = 1e-3
"""Relative difference below which a held-out log loss is not lower than another."""
EARLY, PATIENCE, SLOW = 4.0, 2, 0.1
"""From the first total step on, a path ends if at two values in a row its log loss fell by less than a tenth and the
ensemble did not improve. Earlier, or while its loss falls fast, a member may still become useful."""
COSTLY_FROM = 1.0
"""From this total step on, a member with slow passes must improve the ensemble at each value."""

EnsembleLoss = Callable[[Array], float | None]
"""Held-out log loss of an ensemble with a further member, from its predictions; None without other members."""


@dataclass
class PathStopping:
    """Whether to follow a path further, decided at each total step.

    Parameters
    ----------
    ensemble_loss : callable
    is_costly : bool
        Whether passes take so long that the path is followed only while the ensemble improves.
    """

    ensemble_loss: EnsembleLoss
    is_costly: bool = False
    least: float = np.inf
    """Lowest log loss of the member so far."""
    ensemble: float = field(default=np.inf, init=False)
    """Log loss of the ensemble at the total step before."""
    idle: int = field(default=0, init=False)
    reason: str = field(default="", init=False)
    """Why the path ended before its lowest loss."""

    def is_over(self, total_step: float, loss: float, out_of_fold: Array) -> bool:
        """Whether the path ends here: losses fall and then rise, and the next value costs as much as all before."""
        if not is_lower(loss, self.least):
            return True
        is_slow = total_step >= EARLY and not loss < (1.0 - SLOW) * self.least
        is_useless = (self.is_costly or total_step >= EARLY / 2) and not self._improves(out_of_fold)
        self.idle = self.idle + 1 if is_useless and is_slow else 0
        self.least = loss
        if is_useless and self.is_costly and total_step >= COSTLY_FROM:
            self.reason = "its passes are slow and the ensemble did not improve"
        elif self.idle >= PATIENCE:
            self.reason = "its log loss fell slowly and the ensemble did not improve"
        return bool(self.reason)

    def _improves(self, out_of_fold: Array) -> bool:
        """Whether the ensemble is better than at the total step before."""
        loss = self.ensemble_loss(out_of_fold)
        if loss is None:
            return True
        before, self.ensemble = self.ensemble, loss
        return bool(is_lower(loss, before))


def is_lower(loss: float, before: Any) -> Any:
    """Whether a log loss is lower than another by more than noise."""
    return loss < (1.0 - LEAST_GAIN) * before
