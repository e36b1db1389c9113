"""Projected gradient descent on the log loss, the papers' baseline (rc-probabilistic-2024, appendix C)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from calibayes.core.abilities import NaturalParameters
from calibayes.core.protocols import Model, State, StepControl, Trees
from calibayes.rules.update import Blend, Fixed, step_control


@dataclass(frozen=True)
class GD(Blend):
    """A step of ``step`` / n on the natural parameters along statistics(X, Y - P), then a projection.

    The state is the parameters, not statistics. As in the papers, natural parameters are those of the columns in their
    own units, so the step depends on their scale and origin: standardize the columns first.

    Parameters
    ----------
    step : float or step control, default=0.1
    """

    step: float | StepControl = 0.1
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "gd"
    needs: ClassVar[tuple[type, ...]] = (NaturalParameters,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "control", step_control(self.step, Fixed(0.1)))

    def begin(self, model: Model, statistics: Trees) -> State:
        return self.state(model, model.parameters(statistics))

    def state(self, model: Model, value: Trees) -> State:
        return State(value, value, None)

    def absorb(self, model: Model, state: State, new: Trees) -> State:
        return state

    def advance(
        self, model: Model, state: State, direction: Trees, step: float, size: float, share: float = 1.0
    ) -> tuple[State, int]:
        return self.state(model, model.gradient_step(state.value, direction, step / size)), 0
