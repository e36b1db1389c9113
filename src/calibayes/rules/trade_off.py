"""The generative-discriminative trade-off (gdt-2004, equations 5 to 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibayes.core.protocols import Family, StepControl
from calibayes.rules.steps import Backtracking, step_control
from calibayes.rules.update import Blend, exactly_penalised


@dataclass(frozen=True)
class GDT(Blend):
    """W = Y - (1 - lam) P: climbs lam * log p(x, y) + (1 - lam) * log p(y | x), summed over rows.

    A prior inside a family enters as lam * log prior.

    Parameters
    ----------
    lam : float in [0, 1], default=0.5
        1 is maximum likelihood, 0 the discriminative optimum.
    step : float or step control, optional
        By default the step adapts, up to min(8, 1 / lam), beyond which the statistics would change sign.
    """

    lam: float = 0.5
    step: float | StepControl | None = None

    name: ClassVar[str] = "gdt"
    climbs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.lam <= 1.0:
            raise ValueError(f"lam must lie between 0 and 1, got {self.lam}")

    @property
    def control(self) -> StepControl:
        most = Backtracking.most if self.lam == 0 else min(Backtracking.most, 1.0 / self.lam)
        return step_control(self.step, Backtracking(most=most))

    @property
    def shrink(self) -> float:
        return self.lam

    @property
    def generative(self) -> float:
        return self.lam

    def adapt(self, family: Family) -> Family:
        return exactly_penalised(family)
