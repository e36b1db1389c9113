"""The fitted model as one immutable value. Everything a model can do is a function of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

import numpy as np

from calibayes.core.protocols import Array, Layout, ModelArrays, Rule
from calibayes.core.verify import require, require_array, require_names, require_number
from calibayes.encoders.schema import Schema
from calibayes.families import ClassPrior, Product
from calibayes.families.model import PRIOR
from calibayes.kernels.dispatch import hosted
from calibayes.learn import Run
from calibayes.model.binding import ColumnBinding
from calibayes.model.delegates import EXTRAS, feature
from calibayes.model.recipe import Assembly, layouts_of
from calibayes.model.verification import verify_classes

SINGLE: np.dtype[Any] = np.dtype(np.float32)
ROUNDING = 1e-12
"""Share of a sum that is left as rounding when all rows were removed from it."""
NOT_SUMS = "not_sums"
"""Note of a model whose statistics are no sums over its training rows: why, and what to do."""


@dataclass(frozen=True)
class Fitted:
    """A trained generative model: named arrays and plain values, without code.

    Attributes
    ----------
    classes : (k,) array
    binding : ColumnBinding
        Which columns each family models, and their fitted encoders.
    model : Product
        Class prior and families, with everything that stays fixed.
    rule : Rule
        The rule it was trained by.
    data_statistics : mapping
        Family -> name -> array: sums over the data. For a family with a structure, the sums it was found in.
    state : mapping or None
        The value of the rule's state, from which training can continue.
    statistics : mapping or None
        The statistics as the rule left them; None for a rule that keeps none.
    parameters : mapping or None
        Family -> name -> array, in the columns' own units; None while there are too few rows.
    is_additive : bool
        Whether the statistics are plain sums over rows, so that models can be merged and rows removed exactly.
    lacking : str
        Why there are no parameters yet.
    temperature : float
        Divides log probabilities.
    has_shifted_priors : bool
        Whether the class probabilities were replaced (`with_priors`).
    n_iter : int
        Number of updates, at least 1.
    history : mapping or None
        Name -> array over the states of training.
    best_iter : int or None
        The state that was used.
    schema : Schema or None
        The kind of each column, where the estimator chose it.
    notes : mapping
        Further results of training, by name.
    extras : mapping
        What features above the model have added, by name (`calibayes.model.delegates.EXTRAS`).
    """

    classes: Array
    binding: ColumnBinding
    model: Product
    rule: Rule
    data_statistics: ModelArrays
    state: ModelArrays | None = None
    statistics: ModelArrays | None = None
    parameters: ModelArrays | None = None
    is_additive: bool = False
    lacking: str = ""
    temperature: float = 1.0
    has_shifted_priors: bool = False
    n_iter: int = 1
    history: Mapping[str, Array] | None = None
    best_iter: int | None = None
    schema: Schema | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)

    def verify(self) -> None:
        """Raises ValueError if the parts, which may come from a model file, do not fit together."""
        verify_classes(self.classes)
        self.binding.verify()
        self.model.verify()
        self._verify_arrays()
        self._verify_progress()
        layouts, names = layouts_of(self.binding, self.classes)
        require(self.model.prior.layout.classes == names, "the model has other classes")
        require_names("families of the model", self.model.families, layouts)
        for name, family in self.model.families.items():
            require_same_layout(name, cast(Any, family).layout, layouts[name])
            is_kind = type(family) is type(self.binding.families[name])
            require(is_kind, f"family {name!r} of the model is not of the kind that was bound")
        for name, value in self.extras.items():
            require(name in EXTRAS, f"unknown extra {name!r}")
            feature(EXTRAS[name]).verify_extra(self, value)

    def _verify_arrays(self) -> None:
        """Raises ValueError if statistics, state or parameters are missing or do not fit the model."""
        self.model.verify_structure_statistics(self.data_statistics)
        has_parameters = self.parameters is not None
        has_statistics = has_parameters and self.rule.keeps_statistics
        require((self.state is not None) == has_parameters, "parameters without a state, or the reverse")
        require((self.statistics is not None) == has_statistics, f"statistics of rule {self.rule.name!r}")
        if self.parameters is not None:
            self.model.verify_parameters(self.parameters)
        if self.statistics is not None:
            self.model.verify_statistics(self.statistics)
        if self.state is not None:
            verify = self.model.verify_statistics if has_statistics else self.model.verify_parameters
            verify(self.state)

    def _verify_progress(self) -> None:
        """Raises ValueError if the history, the number of updates or the temperature is impossible."""
        require_number("the temperature", self.temperature, 1e-12, 1e12)
        require(self.n_iter >= 1, f"n_iter is {self.n_iter}, below 1")
        lengths = {len(require_array(name, value, (None,))) for name, value in (self.history or {}).items()}
        require(len(lengths) <= 1, "the arrays of the history differ in length")
        states = max(lengths, default=self.n_iter + 1)
        require(self.best_iter is None or 0 <= self.best_iter < states, f"best_iter is {self.best_iter}")

    def with_extra(self, name: str, value: Any) -> Fitted:
        """This model with what a feature adds, or without it, for None or an empty tuple."""
        others = {key: extra for key, extra in self.extras.items() if key != name}
        return replace(self, extras=others if value is None or value == () else {**others, name: value})

    def after(self, run: Run) -> Fitted:
        """This model with the best state of a run."""
        state = run.best.state
        # A rule keeps its statistics as the value of its state, or none.
        value, parameters = hosted(state.value), hosted(state.parameters)
        statistics = value if state.statistics is state.value else state.statistics
        return replace(self, state=value, statistics=statistics, parameters=parameters, lacking="")

    def without_parameters(self, lacking: str) -> Fitted:
        """This model while its rows are too few for parameters."""
        return replace(
            self, state=None, statistics=None, parameters=None, lacking=lacking, history=None, best_iter=None
        )

    def closed_form(self, data_statistics: ModelArrays) -> Fitted:
        """The maximum-likelihood model of other sums over rows, or one that says what it lacks."""
        changed = replace(self, data_statistics=data_statistics, history=None, best_iter=None)
        try:
            model = self.model.prepare(data_statistics)
        except ValueError as error:
            return changed.without_parameters(str(error))
        statistics = model.statistics_of(data_statistics)
        return replace(
            changed,
            model=model,
            state=statistics,
            statistics=statistics,
            parameters=model.parameters(statistics),
            lacking="",
        )

    def uncalibrated(self) -> Fitted:
        """The model before calibration: the closed form of the data."""
        statistics = self.model.statistics_of(self.data_statistics)
        return replace(
            self, state=statistics, statistics=statistics, parameters=self.model.parameters(statistics)
        )

    def learned(self) -> ModelArrays:
        """The parameters. Raises ValueError if there were too few rows for them."""
        if self.parameters is None:
            raise ValueError(f"not enough rows have been seen yet: {self.lacking}")
        return self.parameters

    @property
    def number_type(self) -> np.dtype[Any]:
        """float32 if all training columns were float32 and are modeled as numbers; otherwise float64."""
        reads_numbers = all(family.reads == "numbers" for family in self.model.families.values())
        return SINGLE if reads_numbers and set(self.binding.types) == {SINGLE} else np.dtype(np.float64)

    def refuse_shifted_priors(self) -> None:
        """Raises ValueError if the class probabilities were replaced."""
        if self.has_shifted_priors:
            raise ValueError(
                "the class priors of this model were replaced (with_priors): "
                "train, merge or forget first, and replace them afterwards"
            )

    def require_changeable(self) -> None:
        """Raises ValueError if rows cannot be added to the statistics, removed from them or weighed against them."""
        self.refuse_shifted_priors()
        if reason := self.notes.get(NOT_SUMS):
            raise ValueError(str(reason))


def counted_families(binding: ColumnBinding) -> list[str]:
    """Names of the families whose encoders depend on the training rows: those that ``keep_summary`` is for."""
    return [name for name, encoder in binding.encoders.items() if encoder.data_dependence]


def require_same_layout(name: str, given: Layout, expected: Layout) -> None:
    """Raises ValueError if a family's layout is not that of its encoder.

    A family may have seeds of more classes: those of classes without rows.
    """
    seeds = tuple(map(_are_close, given.seeds, expected.seeds))
    parts = ((getattr(given, f.name), getattr(expected, f.name)) for f in fields(Layout) if f.name != "seeds")
    is_same = all(
        _are_close(left, right) if isinstance(left, np.ndarray) else left == right for left, right in parts
    )
    require(is_same and all(seeds), f"the layout of family {name!r} is not that of its encoder")


def _are_close(left: Array, right: Array) -> bool:
    """Whether arrays are equal to rounding: logarithms of another processor differ in the last digit."""
    return left.shape == right.shape and bool(np.allclose(left, right, rtol=1e-9, atol=1e-9))


def begin(assembly: Assembly, rule: Rule, data_statistics: ModelArrays, **changes: Any) -> Fitted:
    """A model without parameters yet."""
    return Fitted(
        classes=assembly.classes,
        binding=assembly.binding.for_new_rows(),
        model=assembly.model,
        rule=rule,
        data_statistics=data_statistics,
        schema=assembly.schema,
        notes=assembly.notes,
        **changes,
    )


def with_priors(fitted: Fitted, priors: Array) -> Fitted:
    """The model adjusted to other class frequencies (prior shift), (k,) probabilities.

    Log odds move by the difference between the new frequencies and those of training. After calibration the class prior
    of the model is no frequency: it is moved by that difference, not replaced.
    """
    parameters = fitted.learned()
    fitted.refuse_shifted_priors()
    change = log_change(fitted, priors)
    moved = parameters[PRIOR]["log_probability"] + change * fitted.temperature
    shifted = {**parameters, PRIOR: {"log_probability": moved - np.logaddexp.reduce(moved)}}
    return replace(fitted, parameters=shifted, has_shifted_priors=True)


def log_change(fitted: Fitted, priors: Array) -> Array:
    """Logarithms of the ratios of class frequencies to those of training, (k,)."""
    prior = fitted.model.prior
    new = ClassPrior(fixed=priors).bind(prior.layout).parameters({})["log_probability"]
    training = replace(prior, alpha=0.0).parameters(fitted.data_statistics[PRIOR])["log_probability"]
    if not np.isfinite(training).all():
        lost = fitted.classes[~np.isfinite(training)].tolist()
        raise ValueError(
            f"class {lost[0]!r} had probability 0 in training, so that its log odds cannot be moved"
        )
    return np.asarray(new - training)
