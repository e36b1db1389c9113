"""Risk-based calibration (rc-generative-2025, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibayes.core.protocols import Array, StepControl
from calibayes.rules.steps import Backtracking, step_control
from calibayes.rules.update import Update, conditional_log_likelihood


@dataclass(frozen=True)
class RC(Update):
    """W = Y - P: strengthen the statistics of the true class, weaken those of the classes it is taken for.

    Parameters
    ----------
    step : float or step control, optional
        A number is the papers' fixed step (theirs is 0.1). By default the step adapts: it starts at 0.5, grows while
        the conditional log likelihood rises, and is halved when it would fall.
    """

    step: float | StepControl | None = None

    name: ClassVar[str] = "rc"
    conditional: ClassVar[bool] = True

    @property
    def control(self) -> StepControl:
        return step_control(self.step, Backtracking())

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot - posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array:
        return conditional_log_likelihood(log_joint, onehot)
