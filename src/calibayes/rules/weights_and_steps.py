"""The one update ``S <- (1 - step * shrink) * S + step * statistics(X, W)``: its steps, and the rules that differ in W."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add as add_arrays
from typing import Any, ClassVar, Self, cast

import numpy as np

from calibayes.core.abilities import Conjugate, CountStatistics, NaturalParameters, Penalized, PriorDirection
from calibayes.core.named_arrays import add, combine
from calibayes.core.protocols import Array, Family, Model, ModelArrays, Rule, State, StepControl, resolve
from calibayes.core.verify import require_number, unknown
from calibayes.kernels.posterior import (
    conditional_log_likelihood,
    joint_log_likelihood,
    log_normalize,
    unlabeled_rows,
)

LONGEST = 1e6
"""Longest step that is accepted; longer ones overflow."""


@dataclass(frozen=True)
class Fixed:
    """A constant step, as in the papers.

    Examples
    --------
    >>> from calibayes.rules import RC
    >>> RC(step=Fixed(0.1)).step
    Fixed(length=0.1)
    """

    length: float = 0.1

    guarded = False

    def __post_init__(self) -> None:
        if not 0 < self.length <= LONGEST:
            raise ValueError(f"a step must be positive and at most {LONGEST:g}, got {self.length}")

    def step(self, update: int, previous: float | None, rejections: int = 0) -> float:
        return self.length


@dataclass(frozen=True)
class Schedule:
    """A step for each update: a function of its number, counted from 1, or a sequence whose last entry is repeated.

    >>> Schedule([1.0, 0.5]).step(7, None)
    0.5
    """

    lengths: Callable[[int], float] | Sequence[float]

    guarded = False

    def __post_init__(self) -> None:
        if not callable(self.lengths) and not (hasattr(self.lengths, "__getitem__") and len(self.lengths)):
            raise ValueError(
                f"a schedule is a function of the update or a list of steps, got {self.lengths!r}"
            )

    def step(self, update: int, previous: float | None, rejections: int = 0) -> float:
        of_update = self.lengths
        length = of_update(update) if callable(of_update) else of_update[min(update, len(of_update)) - 1]
        return Fixed(length).length


@dataclass(frozen=True)
class Backtracking:
    """A step that grows while the objective rises and is halved when the objective would fall.

    Parameters
    ----------
    start : float
        First step.
    growth : float
        Factor after an accepted step.
    most : float
        Longest step.
    tries : int
        How often one step is halved before training ends.

    Examples
    --------
    >>> from calibayes.rules import RC
    >>> RC(step=Backtracking(start=0.1)).step
    Backtracking(start=0.1, growth=1.3, most=8.0, tries=12)
    """

    start: float = 0.5
    growth: float = 1.3
    most: float = 8.0
    tries: int = 12

    guarded = True

    def __post_init__(self) -> None:
        if not (0 < self.start <= self.most and self.growth >= 1 and self.tries >= 1):
            raise ValueError(f"need 0 < start <= most, growth >= 1, tries >= 1: {self}")

    def step(self, update: int, previous: float | None, rejections: int = 0) -> float | None:
        if previous is None:
            return self.start
        if not rejections:
            return min(self.growth * previous, self.most)
        return previous / 2 if rejections < self.tries else None


def step_control(step: float | StepControl | None, default: StepControl) -> StepControl:
    """The step control that a ``step`` parameter means: None, a length, or a control."""
    if step is None:
        return default
    if isinstance(step, numbers.Real):
        return Fixed(float(step))
    if isinstance(step, type) or not hasattr(step, "guarded"):
        raise ValueError(f"step must be a number or a step control such as Backtracking(), got {step!r}")
    return cast(StepControl, step)


# -- What happens to an update whose statistics have no valid parameters, such as a negative count -----------


INVALID = {"freeze": "keep_valid", "by_class": "keep_valid_classes", "stop": "keep_all"}
"""Name -> the method of a model that gives the statistics after an update from current and proposed ones."""
STOPS = ("objective", "soft_error")


class Update:
    """``S <- (1 - step * shrink) * S + step * statistics(X, W)``; invalid statistics keep their old value.

    The state is the statistics; the parameters follow from them by the model's closed form.
    """

    invalid: str = "freeze"
    stop: str = "objective"

    needs: ClassVar[tuple[type, ...]] = ()
    is_closed_form: ClassVar[bool] = False
    maximizes_objective: ClassVar[bool] = False
    keeps_statistics: ClassVar[bool] = True
    unlabeled: float = 0.0
    uses_unlabeled: bool = False
    weight_of_unlabeled: float = 0.0
    starts_from: Rule | None = None
    shrink: float = 0.0
    prior_weight: float | None = None
    generative_weight: float | None = None

    def entry_weights(self, onehot: Array, posterior: Array) -> Array:
        return (
            onehot + self.unlabeled * unlabeled_rows(onehot)[:, None] * posterior
            if self.unlabeled
            else onehot
        )

    def begin(self, model: Model, statistics: ModelArrays) -> State:
        return State(statistics, model.parameters(statistics), statistics)

    def state(self, model: Model, value: ModelArrays) -> State:
        return self.begin(model, value)

    def absorb(self, model: Model, state: State, new: ModelArrays) -> State:
        return self.begin(model, add(state.value, new))

    def advance(
        self, model: Model, state: State, direction: ModelArrays, step: float, size: float, share: float = 1.0
    ) -> tuple[State, int]:
        proposed = combine(1.0 - step * share * self.shrink, state.value, step, direction)
        statistics, frozen = getattr(model, INVALID[self.invalid])(state.value, proposed)
        return self.begin(model, statistics), frozen


class Blend(Update):
    """W = Y - (1 - g) P: maximizes g * log p(x, true class) + (1 - g) * log p(true class | x), summed over rows.

    g = 1 is maximum likelihood, g = 0 risk-based calibration. A row without a label has W = g u P, for g u log p(x), where u
    is `unlabeled`. A subclass with weights or an objective of its own is not computed by the kernels for this form: its
    `generative_weight` is None.
    """

    g: float = 0.0
    generative_weight: float | None = 0.0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if {"weights", "objective"} & vars(cls).keys():
            cls.generative_weight = None

    @property
    def weight_of_unlabeled(self) -> float:  # type: ignore[override]
        return self.g * self.unlabeled

    def weights(self, onehot: Array, posterior: Array) -> Array:
        unknown = unlabeled_rows(onehot)[:, None]
        return onehot - ((1.0 - self.g) * (1.0 - unknown) - self.weight_of_unlabeled * unknown) * posterior

    def objective(self, log_joint: Array, onehot: Array) -> Array | None:
        parts = ((self.g, joint_log_likelihood), (1.0 - self.g, conditional_log_likelihood))
        gains = [share * part(log_joint, onehot) for share, part in parts if share]
        if self.weight_of_unlabeled:
            gains.append(self.weight_of_unlabeled * unlabeled_rows(onehot) * log_normalize(log_joint)[1])
        return reduce(add_arrays, gains)


def exactly_penalized(family: Family) -> Family:
    """The family with a prior whose log density can be part of an objective."""
    return family.exact() if isinstance(family, Penalized) else family


def take_unlabeled(rule: Any) -> None:
    """Note that a rule takes rows without a label if their weight is positive. Raises ValueError if it is no weight."""
    require_number("unlabeled", rule.unlabeled, 0.0, LONGEST)
    object.__setattr__(rule, "uses_unlabeled", rule.unlabeled > 0)


@dataclass(frozen=True)
class ML(Blend):
    """Maximum likelihood: W = Y, one pass. With a prior inside the family it is maximum a posteriori.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> GaussianNB(rule=ML()).fit([[1.0], [3.0], [6.0], [8.0]], [0, 0, 1, 1]).theta_
    array([[2.],
           [7.]])
    """

    name: ClassVar[str] = "ml"
    is_closed_form: ClassVar[bool] = True
    maximizes_objective: ClassVar[bool] = True
    control: ClassVar[StepControl] = Fixed(1.0)

    shrink = g = generative_weight = 1.0


@dataclass(frozen=True)
class MAP(ML):
    """Maximum a posteriori: maximum likelihood, with the default conjugate prior for families without a prior.

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X, y = [["red"], ["red"], ["blue"], ["green"]], [0, 0, 1, 1]
    >>> CategoricalNB(rule=MAP()).fit(X, y).predict([["green"]])
    array([1])
    """

    name: ClassVar[str] = "map"
    needs: ClassVar[tuple[type, ...]] = (Conjugate,)

    def adapt(self, family: Family) -> Family:
        return family.conjugate() if isinstance(family, Conjugate) else family


@dataclass(frozen=True)
class RC(Blend):
    """Risk-based calibration, W = Y - P (rc-generative-2025, algorithm 1).

    A step adds each row to the statistics of its true class and subtracts it from those of the classes in proportion to
    their posterior.

    Parameters
    ----------
    step : float or step control, optional
        A number is the papers' fixed step (theirs is 0.1). By default the step adapts: it starts at 0.5, grows while
        the conditional log likelihood rises, and is halved when it would fall.
    invalid : {"freeze", "by_class", "stop"}, default="freeze"
        What happens to statistics that an update would make invalid, such as a negative count or an indefinite covariance.
        "freeze": they keep their value, and all others change (rc-probabilistic-2024, section III). "by_class": a class with
        such a statistic keeps all its statistics; where classes share statistics, such as one covariance, all classes do.
        "stop": training ends before the update; a step that adapts is halved first.
    stop : {"objective", "soft_error"}, default="objective"
        What ``stop="objective"``, the default of the estimators, means under this rule: no gain in the conditional log
        likelihood, or, as in the papers, a rise of the soft error (one minus the probability of the true class).
    unlabeled : float, default=0
        Weight of rows without a label. With a positive weight u calibration starts from maximum likelihood of labeled and
        unlabeled rows (``EM(unlabeled=u)``); its steps are taken on the labeled rows alone. 0 refuses unlabeled rows.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]
    >>> GaussianNB(rule=RC(step=0.1), max_iter=10).fit(X, y).predict(X)
    array([0, 0, 0, 1])
    """

    step: float | StepControl | None = None
    invalid: str = "freeze"
    stop: str = "objective"
    unlabeled: float = 0.0
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "rc"
    papers_step: ClassVar[float] = 0.1

    def __post_init__(self) -> None:
        if repr(self.invalid) not in map(repr, INVALID):
            raise unknown("invalid", self.invalid, INVALID)
        if repr(self.stop) not in map(repr, STOPS):
            raise unknown("stop", self.stop, STOPS)
        if self.unlabeled != 0:
            take_unlabeled(self)
            object.__setattr__(self, "starts_from", EM(self.unlabeled))
        object.__setattr__(self, "control", step_control(self.step, Backtracking()))

    @classmethod
    def paper(cls, step: float | None = None, invalid: str = "freeze") -> Self:
        """Algorithm 1 of rc-generative-2025: a fixed step (0.1, for TM 1), until the soft error rises; its lowest value is kept.

        The papers count the start as iteration 1, so that their 64 iterations are ``max_iter=63``. With ``stop=None`` an
        estimator makes all of them, and uses the one with the lowest soft error, as their tables do.

        >>> RC.paper()
        RC(step=0.1, invalid='freeze', stop='soft_error', unlabeled=0.0)
        >>> TM.paper(invalid="stop")
        TM(step=1.0, invalid='stop', stop='soft_error', unlabeled=0.0)
        """
        return cls(cls.papers_step if step is None else step, invalid, "soft_error")


@dataclass(frozen=True)
class TM(RC):
    """The TM algorithm of Edwards and Lauritzen (2001): W = Y - P with step 1 (rc-generative-2025, section 5.2).

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]
    >>> GaussianNB(rule=TM(), max_iter=5).fit(X, y).predict(X)
    array([0, 0, 0, 1])
    """

    step: float | StepControl | None = 1.0

    name: ClassVar[str] = "tm"
    papers_step: ClassVar[float] = 1.0


@dataclass(frozen=True)
class GDT(Blend):
    """The generative-discriminative trade-off, W = Y - (1 - lam) P (gdt-2004, equations 5 to 8).

    Maximizes lam * log p(x, y) + (1 - lam) * log p(y | x), summed over rows. The prior of a family enters as lam * log
    prior. With a prior on probabilities, training ends near the maximum, not at it, if the maximum would need negative
    counts: counts are never below 0.

    Parameters
    ----------
    lam : float in [0, 1], default=0.5
        1 is maximum likelihood, 0 the discriminative optimum.
    step : float or step control, optional
        By default the step adapts, up to min(8, 1 / lam), beyond which the statistics would change sign.
    unlabeled : float, default=0
        Weight u of rows without a label, which add lam * u * log p(x) to the objective, as in Lasserre, Bishop and Minka
        (2006) with one model for both parts. lam = 1 is ``EM(unlabeled=u)``. 0 refuses unlabeled rows.
    prior_weight : float, optional
        Weight of log prior in the objective, instead of lam. With lam = 0 and weight 1 this is the maximum supervised
        posterior (Keilwagen, Grau, Posch and Grosse 2010). Families without a prior get their default one, as with `MAP`.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]
    >>> GaussianNB(rule=GDT(lam=0.5)).fit(X, y).predict(X)
    array([0, 0, 0, 1])
    """

    lam: float = 0.5
    step: float | StepControl | None = None
    unlabeled: float = 0.0
    prior_weight: float | None = None
    control: StepControl = field(init=False, repr=False, compare=False)
    shrink: float = field(init=False, repr=False, compare=False)
    g: float = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "gdt"
    maximizes_objective: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.lam <= 1.0:
            raise ValueError(f"lam must lie between 0 and 1, got {self.lam}")
        take_unlabeled(self)
        if self.prior_weight is not None:
            require_number("prior_weight", self.prior_weight, 0.0, LONGEST)
        longest = Backtracking.most if self.lam == 0 else min(Backtracking.most, 1.0 / self.lam)
        object.__setattr__(self, "control", step_control(self.step, Backtracking(most=longest)))
        for name in ("shrink", "g", *(["generative_weight"] if self.generative_weight is not None else [])):
            object.__setattr__(self, name, self.lam)

    @property
    def needs(self) -> tuple[type, ...]:  # type: ignore[override]
        return () if self.prior_weight is None else (Conjugate, PriorDirection)

    def adapt(self, family: Family) -> Family:
        if self.prior_weight is not None and isinstance(family, Conjugate):
            family = family.conjugate()
        return exactly_penalized(family)

    def advance(
        self, model: Model, state: State, direction: ModelArrays, step: float, size: float, share: float = 1.0
    ) -> tuple[State, int]:
        """The update; what the prior weighs more than lam, or less, is added as pseudo-rows less expected ones."""
        if self.prior_weight is not None and self.prior_weight != self.lam:
            excess = share * (self.prior_weight - self.lam)
            direction = model.with_prior(direction, state.parameters, excess)
        return super().advance(model, state, direction, step, size, share)


# -- Projected gradient descent on the log loss, the papers' baseline (rc-probabilistic-2024, appendix C) ----


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
    stop : {"objective", "soft_error"}, default="objective"
        What ``stop="objective"``, the default of the estimators, means under this rule (see `RC`).

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> GaussianNB(rule=GD(step=0.1), max_iter=5, stop=None).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    step: float | StepControl = 0.1
    stop: str = "objective"
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "gd"
    needs: ClassVar[tuple[type, ...]] = (NaturalParameters,)
    keeps_statistics: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if repr(self.stop) not in map(repr, STOPS):
            raise unknown("stop", self.stop, STOPS)
        object.__setattr__(self, "control", step_control(self.step, Fixed(0.1)))

    @classmethod
    def paper(cls, step: float = 0.1) -> Self:
        """Gradient descent as in the papers: a fixed step, until the soft error rises (see `RC.paper`).

        >>> GD.paper()
        GD(step=0.1, stop='soft_error')
        """
        return cls(step, "soft_error")

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
    if not all(np.isfinite(parameter).all() for arrays in moved.values() for parameter in arrays.values()):
        raise FloatingPointError("a gradient step overflows")
    return moved


# -- Discriminative frequency estimate of Su et al. (2008), for families that count --------------------------


@dataclass(frozen=True)
class DFE(Update):
    """W = Y (1 - P of the true class): each pass adds each row's soft error to the counts of its class.

    There is no objective that is known to rise, so the step cannot adapt.

    Parameters
    ----------
    step : float or step control, default=1
    stop : {"objective", "soft_error"}, default="objective"
        What ``stop="objective"``, the default of the estimators, means under this rule (see `RC`). "objective" is the
        conditional log likelihood.

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X, y = [[0, 1], [0, 0], [1, 1], [1, 0]], [0, 0, 1, 1]
    >>> CategoricalNB(rule=DFE(), max_iter=3, stop=None).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    step: float | StepControl = 1.0
    stop: str = "objective"
    control: StepControl = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "dfe"
    needs: ClassVar[tuple[type, ...]] = (CountStatistics,)

    def __post_init__(self) -> None:
        if repr(self.stop) not in map(repr, STOPS):
            raise unknown("stop", self.stop, STOPS)
        control = step_control(self.step, Fixed(1.0))
        if control.guarded:
            raise ValueError(
                f"DFE has no objective for an adaptive step: give a fixed step or a schedule, got {self.step!r}"
            )
        object.__setattr__(self, "control", control)

    @classmethod
    def paper(cls, step: float = 0.1) -> Self:
        """The comparisons of the papers: step 0.1, until the soft error rises (see `RC.paper`). Su et al. have step 1.

        >>> DFE.paper()
        DFE(step=0.1, stop='soft_error')
        """
        return cls(step, "soft_error")

    def weights(self, onehot: Array, posterior: Array) -> Array:
        return onehot * (1.0 - np.sum(onehot * posterior, axis=1, keepdims=True))

    def objective(self, log_joint: Array, onehot: Array) -> None:
        return None


# -- Expectation maximization over rows without a label ------------------------------------------------------


@dataclass(frozen=True)
class EM(ML):
    """W = Y for labeled rows, u P for unlabeled ones: maximum likelihood of both together.

    Parameters
    ----------
    unlabeled : float, default=1
        Weight u of a row without a label (Nigam, McCallum, Thrun and Mitchell 2000).

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> X, y = [[0.0], [1.0], [5.0], [6.0], [0.5], [5.5]], ["a", "a", "b", "b", None, None]
    >>> GaussianNB(rule=EM()).fit(X, y).predict(X)
    array(['a', 'a', 'b', 'b', 'a', 'b'], dtype=object)
    """

    unlabeled: float = 1.0

    name: ClassVar[str] = "em"
    is_closed_form: ClassVar[bool] = False
    generative_weight = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        take_unlabeled(self)
        if not self.uses_unlabeled:
            raise ValueError("unlabeled must be positive for EM: without unlabeled rows use rule='ml'")

    def adapt(self, family: Family) -> Family:
        return exactly_penalized(family)


# -- Rules by their short names ------------------------------------------------------------------------------

NAMES: Mapping[str, Callable[[], Rule]] = {rule.name: rule for rule in (ML, MAP, RC, TM, DFE, GDT, EM, GD)}


def rule_named(rule: str | Rule) -> Rule:
    """The rule of that name with its defaults, or the rule itself.

    >>> rule_named("rc")
    RC(step=None, invalid='freeze', stop='objective', unlabeled=0.0)
    """
    if isinstance(rule, str) and rule in NAMES:
        return NAMES[rule]()
    return resolve("rule", rule, NAMES, ability="entry_weights", example="RC()")
