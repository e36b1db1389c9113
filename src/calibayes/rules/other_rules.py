"""Projected gradient descent on the log loss, the papers' baseline (rc-probabilistic-2024, appendix C)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from calibayes.core.abilities import CountStatistics, NaturalParameters
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array, Family, Model, ModelArrays, Rule, State, StepControl
from calibayes.core.resolve import resolve
from calibayes.kernels.posterior import log_normalize
from calibayes.rules.update import (
    GDT,
    MAP,
    ML,
    RC,
    TM,
    Blend,
    Fixed,
    Update,
    exactly_penalized,
    joint_log_likelihood,
    step_control,
)


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

    def begin(self, model: Model, statistics: ModelArrays) -> State:
        return self.state(model, model.parameters(statistics))

    def state(self, model: Model, value: ModelArrays) -> State:
        return State(value, value, None)

    def absorb(self, model: Model, state: State, new: ModelArrays) -> State:
        return state

    def advance(
        self, model: Model, state: State, direction: ModelArrays, step: float, size: float, share: float = 1.0
    ) -> tuple[State, int]:
        return self.state(model, _finite_step(model, state.value, direction, step / size)), 0


def _finite_step(model: Model, parameters: ModelArrays, direction: ModelArrays, rate: float) -> ModelArrays:
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


# -- Discriminative frequency estimate of Su et al. (2008), for families that count --------------------------


@dataclass(frozen=True)
class DFE(Update):
    """W = Y (1 - P of the true class): each pass adds each row's soft error to the counts of its class.

    There is no objective that is known to rise, so the step cannot adapt.

    Parameters
    ----------
    step : float or step control, default=1

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 0]], [0, 0, 1, 1]
    >>> CategoricalNB(rule=DFE(), max_iter=3, stop=None).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    step: float | StepControl = 1.0
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "dfe"
    needs: ClassVar[tuple[type, ...]] = (CountStatistics,)

    def __post_init__(self) -> None:
        control = step_control(self.step, Fixed(1.0))
        if control.guarded:
            raise ValueError(
                f"DFE has no objective for an adaptive step: give a fixed step or a schedule, got {self.step!r}"
            )
        object.__setattr__(self, "control", control)

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot * (1.0 - np.sum(onehot * posterior, axis=1, keepdims=True))

    def objective(self, log_joint: Array, onehot: Array) -> None:
        return None


# -- Expectation maximization over rows without a label ------------------------------------------------------


@dataclass(frozen=True)
class EM(ML):
    """W = Y for labeled rows, P for unlabeled ones: maximum likelihood of both together.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [0.5], [5.5]], ["a", "a", "b", "b", None, None]
    >>> GaussianNB(rule=EM()).fit(X, y).predict(X)
    array(['a', 'a', 'b', 'b', 'a', 'b'], dtype=object)
    """

    name: ClassVar[str] = "em"
    is_closed_form: ClassVar[bool] = False
    uses_unlabeled: ClassVar[bool] = True

    def adapt(self, family: Family) -> Family:
        return exactly_penalized(family)

    def entry_weights(self, onehot: Array, posterior: Array) -> Array:
        return self.weights(onehot, posterior)

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot + _unknown(onehot)[:, None] * posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array:
        return joint_log_likelihood(log_joint, onehot) + _unknown(onehot) * log_normalize(log_joint)[1]


def _unknown(onehot: Array) -> Array:
    """1 for a row without a label, else 0."""
    return 1.0 - np.sum(onehot, axis=1)


# -- Rules by their short names ------------------------------------------------------------------------------

NAMES: Mapping[str, Callable[[], Rule]] = {rule.name: rule for rule in (ML, MAP, RC, TM, DFE, GDT, EM, GD)}


def rule_named(rule: str | Rule) -> Rule:
    """The rule of that name with its defaults, or the rule itself.

    >>> rule_named("rc")
    RC(step=None)
    """
    if isinstance(rule, str) and rule in NAMES:
        return NAMES[rule]()
    given: Rule = resolve("rule", rule, NAMES, ability="entry_weights", example="RC()")
    return given
