"""Risk-based calibration (rc-generative-2025, algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibayes.core.protocols import StepControl
from calibayes.rules.steps import Backtracking, step_control
from calibayes.rules.update import Blend


@dataclass(frozen=True)
class RC(Blend):
    """W = Y - P: strengthen the statistics of the true class, weaken those of the classes it is taken for.

    Parameters
    ----------
    step : float or step control, optional
        A number is the papers' fixed step (theirs is 0.1). By default the step adapts: it starts at 0.5, grows while
        the conditional log likelihood rises, and is halved when it would fall.
    """

    step: float | StepControl | None = None

    name: ClassVar[str] = "rc"

    @property
    def control(self) -> StepControl:
        return step_control(self.step, Backtracking())
