"""Projected gradient descent on the log loss, the papers' baseline (rc-probabilistic-2024, appendix C)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibayes.core.abilities import NaturalParameters
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array, Model, State, StepControl, Trees
from calibayes.rules.update import Blend, Fixed, step_control


@dataclass(frozen=True)
class GD(Blend):
    """A step of ``step`` / n on the natural parameters along statistics(X, Y - P), then a projection.

    The state is the parameters, not statistics. As in the papers, natural parameters are those of the columns in their
    own units, so the step depends on their scale and origin: standardize the columns first. A step that overflows is not
    taken: training ends there, with a warning, or the step control shortens the step. As in the papers, a step may lower
    the conditional likelihood, however short it is, because of the projection.

    Parameters
    ----------
    step : float or step control, default=0.1

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> GaussianNB(rule=GD(step=0.1), max_iter=5, stop=None).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    step: float | StepControl = 0.1
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "gd"
    needs: ClassVar[tuple[type, ...]] = (NaturalParameters,)
    keeps_statistics: ClassVar[bool] = False

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
        return self.state(model, _finite_step(model, state.value, direction, step / size)), 0


def _finite_step(model: Model, parameters: Trees, direction: Trees, rate: float) -> Trees:
    """Parameters after a gradient step. Raises FloatingPointError if one of them is not finite."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            moved = model.gradient_step(parameters, direction, rate)
    except np.linalg.LinAlgError as error:  # of a natural parameter that is not finite
        raise FloatingPointError("a gradient step overflows") from error
    map_leaves(_check_finite, moved)
    return moved


def _check_finite(parameter: Array) -> None:
    if not np.isfinite(parameter).all():
        raise FloatingPointError("a gradient step overflows")
