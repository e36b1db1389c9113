"""The whole design on one page.

A family is a closed-form learner ``parameters(statistics(data))`` whose sufficient statistics are sums over rows, linear
in per-row class weights W of shape (n, k). Every learning rule is then one line,

    S  <-  (1 - step * shrink) * S  +  step * statistics(X, W(Y, P))        P = posterior under parameters(S)

A model is a class prior and one or more families, each over its own columns. A rule chooses the weights and the step, a
source yields blocks of rows, an engine runs the sum over blocks. They do not import each other; `calibayes.learn`
composes them through the protocols below. Optional abilities of a family are in `calibayes.core.abilities`. Sizes: n
rows, d columns, k classes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from calibayes.core.verify import require, require_finite, require_length

Array: TypeAlias = NDArray[Any]
"""An array of NumPy, or one on a device that behaves like it (`calibayes.kernels.dispatch.OnDevice`)."""
AnyArray: TypeAlias = Any
"""An array of NumPy, a sparse matrix, or an array of another library with the array API: known only at run time."""
Arrays: TypeAlias = Mapping[str, Array]
"""Name -> array: the statistics or the parameters of one family."""
ModelArrays: TypeAlias = Mapping[str, Arrays]
"""Name of a family -> its arrays: the statistics or the parameters of a model."""
Generator: TypeAlias = np.random.Generator
"""Source of random numbers."""


_no_numbers = partial(np.zeros, 0)


@dataclass(frozen=True)
class Layout:
    """Description of a family's columns, from their fitted encoder."""

    classes: tuple[str, ...]
    columns: tuple[str, ...]
    levels: tuple[int, ...] = ()
    """Number of levels of each column, for families over levels."""
    center: Array = field(default_factory=_no_numbers)
    """Point about which moments are summed, (d,), for families over numbers."""
    variance: Array = field(default_factory=_no_numbers)
    """Variance of each column, (d,), for families over numbers: that of a missing value before anything is learned."""
    ordered: tuple[int, ...] = ()
    """Number of leading cells of each column that are ordered, so that neighbors may be smoothed; the others are unordered."""
    log_volume: Array = field(default_factory=_no_numbers)
    """log of the width of each cell in its column's units, all columns side by side; 0 where a cell is one value."""
    gridded: bool = False
    """Whether the ordered cells are points of a uniform grid and columns hold positions on it (NaN if missing) instead of
    codes; the two cells after the points hold everything below and everything above the grid."""
    gappy: tuple[bool, ...] = ()
    """Whether the last cell of each column is its missing value."""
    seeds: tuple[Array, ...] = ()
    """Initial means of the components of each class, (components, d) per class, for mixtures."""

    @property
    def cells(self) -> int:
        """Number of levels of all columns together."""
        return sum(self.levels)

    def verify(self) -> None:
        """Raises ValueError if the fields disagree about the number of classes, columns or cells."""
        d = len(self.columns)
        for name in ("levels", "ordered", "gappy"):
            require_length(name, getattr(self, name), d if getattr(self, name) else 0)
        require(all(size >= 1 for size in self.levels), "levels contains a column without any level")
        for name, size in (("center", d), ("variance", d), ("log_volume", self.cells)):
            value = getattr(self, name)
            least = 0.0 if name == "variance" else -np.inf
            require_finite(name, value, (size if np.size(value) else 0,), least)
        require(len(self.seeds) <= len(self.classes), "seeds has entries for more classes than there are")
        for seeds in self.seeds:
            require_finite("seeds", seeds, (None, d))
            require(len(seeds) > 0, "seeds contains a class without any component")
        self._verify_cells()

    def _verify_cells(self) -> None:
        """Raises ValueError if a column has more ordered cells than cells, or none for what lies beyond its grid."""
        has_no_cells = not (self.ordered or self.gappy)
        require(bool(self.levels) or has_no_cells, "ordered cells of columns without levels")
        none = (0,) * len(self.levels)
        for levels, ordered, gappy in zip(self.levels, self.ordered or none, self.gappy or none, strict=True):
            require(0 <= ordered <= levels - gappy, f"ordered contains {ordered} of {levels} levels")
            require(not self.gridded or levels == ordered + 2, "a grid must have two cells beyond its points")


class ValidStatistics(NamedTuple):
    """Result of `Family.keep_valid`."""

    statistics: Arrays
    frozen: int
    """Number of statistics that kept their old value."""
    frozen_classes: Array
    """Classes that kept all their statistics, so that their class count must stay too, (k,) booleans."""


class Family(Protocol):
    """A density p(x | class) with a closed-form learner. Immutable; methods are pure."""

    @property
    def reads(self) -> str:
        """The encoding of its columns.

        "numbers", "clusters" (numbers with initial means), "levels", "cells", "flags", "counts" or "sequences".
        """

    def bind(self, layout: Layout) -> Family:
        """This family over given columns and classes."""

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Family:
        """Fix, from the statistics of the data, what stays fixed: default priors, floors, bandwidths, structure.

        ``pooled`` are the statistics of all rows with even class weights, given where some rows have no label. A family
        that is `Structured` receives its structure statistics instead.

        Raises ValueError, naming class and column, if the statistics have no valid parameters.
        """

    def statistics(self, columns: Any, weights: Array, parameters: Arrays | None = None) -> Arrays:
        """Sums over rows, linear in the weights (n, k), which may be negative.

        The parameters matter only to families with something hidden (components, missing values): these return expected
        statistics.
        """

    def parameters(self, statistics: Arrays) -> Arrays:
        """The closed-form learner, in the columns' own units."""

    def log_density(self, columns: Any, parameters: Arrays) -> Array:
        """log p(x | class), (n, k)."""

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """The proposed statistics, with the current value wherever the proposed one is invalid."""


class InvalidUpdateError(ArithmeticError):
    """An update whose statistics have no valid parameters, under a rule that ends training there."""


class Model(Protocol):
    """Class prior and families together: the joint density p(x, class). Immutable; methods are pure."""

    @property
    def structure(self) -> Hashable:
        """The structures that families have found; statistics of different structures cannot be added."""

    def bind(self, layouts: Mapping[str, Layout], classes: tuple[str, ...]) -> Self:
        """This model over given columns and classes."""

    def prepare(self, start: ModelArrays, pooled: ModelArrays | None = None) -> Self:
        """`Family.prepare` of the class prior and of all families."""

    @property
    def has_fused_pass(self) -> bool:
        """Whether `fused_pass` can be used."""

    def data_sums(self, block: Block, weights: Array) -> Mapping[str, Any]:
        """Sums of the first pass: "statistics" (the structure statistics) and "hidden" (0 or 1).

        "hidden" is 1 if the statistics of these rows depend on the parameters, so that one update is no closed form.
        """

    def recentered(self, statistics: ModelArrays) -> Self:
        """This model with sums about the means of classes whose variances have lost digits; itself if none has."""

    def gains(self, statistics: ModelArrays, *, more_to_come: bool = False) -> bool:
        """Whether the sums of a recentered model show variances that were lost before (see `Recentering`)."""

    def moved(self, statistics: ModelArrays, other: Any) -> ModelArrays:
        """Statistics of this model, with moments about the points of another one of the same families."""

    def statistics(
        self, block: Block, weights: Array, parameters: ModelArrays | None = None
    ) -> ModelArrays: ...

    def structure_statistics(self, block: Block, weights: Array) -> ModelArrays:
        """Sums over the data: the statistics, or for `Structured` families the sums that the structure is found in."""

    def statistics_of(self, structure_statistics: ModelArrays) -> ModelArrays:
        """The statistics contained in structure statistics."""

    def parameters(self, statistics: ModelArrays) -> ModelArrays: ...

    def log_joint(self, block: Block, parameters: ModelArrays) -> Array:
        """log p(x, class), (n, k)."""

    def contrast(self, block: Block, parameters: ModelArrays) -> Array:
        """log p(x, class) up to a term that all classes share, (n, k): enough for a posterior, and cheaper."""

    def fused_pass(self, block: Block, parameters: ModelArrays, generative: float, negligible: float) -> Any:
        """Scores and statistics of a block in one pass (see `FusedPass`)."""

    def keep_valid(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """The proposed statistics, invalid ones replaced by the current value, and how many were replaced."""

    def keep_valid_classes(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """`keep_valid` by class: a class with an invalid statistic keeps the current value of all its statistics."""

    def keep_all(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """The proposed statistics. Raises InvalidUpdateError if one of them is invalid."""

    def gradient_step(self, parameters: ModelArrays, direction: ModelArrays, rate: float) -> ModelArrays: ...

    def log_prior(self, parameters: ModelArrays) -> float: ...

    def with_prior(self, direction: ModelArrays, parameters: ModelArrays, weight: float) -> ModelArrays:
        """A direction of the statistics, and ``weight`` times that of the log prior's gradient (see `PriorDirection`)."""


class State(NamedTuple):
    """What a rule moves, and the parameters that follow from it."""

    value: ModelArrays
    """The statistics; for a rule that keeps none, the parameters themselves."""
    parameters: ModelArrays
    statistics: ModelArrays | None
    """The statistics, None for a rule that keeps none."""


class StepControl(Protocol):
    """Length of the next step."""

    @property
    def guarded(self) -> bool:
        """Whether a step that lowers the objective is undone and tried again, shorter."""

    def step(self, update: int, previous: float | None, rejections: int = 0) -> float | None:
        """Length of the next step of an update, counted from 1; None to give up.

        ``previous`` is the step of the update before (None for the first), or after ``rejections`` of this update's steps
        the step that was rejected last.
        """


class Rule(Protocol):
    """Which weights and which step. A rule never loops, reads data or logs."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> tuple[type, ...]:
        """Abilities that every family must have."""

    @property
    def control(self) -> StepControl: ...

    @property
    def shrink(self) -> float:
        """Share of the statistics removed per unit of step."""

    @property
    def prior_weight(self) -> float | None:
        """Weight of the log prior in the objective; None: that of `shrink`."""

    @property
    def is_closed_form(self) -> bool:
        """Whether one update from any state reaches the optimum."""

    @property
    def stop(self) -> str:
        """What the stop "objective" means: "objective", no gain in the rule's objective, or "soft_error"."""

    @property
    def maximizes_objective(self) -> bool:
        """Whether the best state is that of the highest objective; otherwise that of the lowest soft error."""

    @property
    def uses_unlabeled(self) -> bool:
        """Whether rows without a label take part."""

    @property
    def weight_of_unlabeled(self) -> float:
        """Weight of a row without a label in the objective, where a labeled row has 1."""

    @property
    def starts_from(self) -> Rule | None:
        """The rule of maximum likelihood at whose end training starts by default; None: at the statistics of the labels."""

    @property
    def keeps_statistics(self) -> bool:
        """Whether the state is statistics; otherwise it is the parameters themselves."""

    @property
    def generative_weight(self) -> float | None:
        """g of a rule with W = Y - (1 - g) P and objective g * log p(x, y) + (1 - g) * log p(y | x); None for others.

        Kernels compute such a rule's weights and objective in one pass.
        """

    def weights(self, onehot: Array, posterior: Array) -> Array:
        """W(Y, P), (n, k), in units of a row: values that are tiny compared with 1 count as zero."""

    def entry_weights(self, onehot: Array, posterior: Array) -> Array:
        """Class weights with which further rows are added to the state before a step is taken on them, (n, k)."""

    def objective(self, log_joint: Array, onehot: Array) -> Array | None:
        """What the rule maximizes, row by row, (n,); None for a rule without an objective."""

    def begin(self, model: Model, statistics: ModelArrays) -> State:
        """The initial state, from the statistics at the start."""

    def state(self, model: Model, value: ModelArrays) -> State:
        """The state of a given value under a model."""

    def absorb(self, model: Model, state: State, new: ModelArrays) -> State:
        """The state after the statistics of further rows were added."""

    def advance(
        self, model: Model, state: State, direction: ModelArrays, step: float, size: float, share: float = 1.0
    ) -> tuple[State, int]:
        """The next state and the number of statistics that kept their old value.

        ``direction`` is statistics(X, W) over ``share`` of the data, whose total weight is ``size``. Raises
        FloatingPointError if the state is not finite, and InvalidUpdateError if training is to end before an invalid update.
        """


@runtime_checkable
class AdaptsFamilies(Protocol):
    """Optional ability of a rule: it needs families in another form, such as with a prior."""

    def adapt(self, family: Family) -> Family:
        """The family as this rule needs it."""


class Parts(Protocol):
    """Something that is read part by part, such as the chunks of a file."""

    def parts(self) -> Iterable[Callable[[], Any]]:
        """Picklable loaders, one for each part, in the order of the rows."""


class Source(Parts, Protocol):
    """Encoded rows of a table, block by block."""

    def parts(self) -> Iterable[Callable[[], Block]]:
        """Picklable loaders, one for each block, in the order of the rows."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """The same rows in random order, ``size`` at a time."""


class Engine(Protocol):
    """Where functions of blocks run."""

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Parts) -> Any:
        """The sum of ``function(block)`` over all blocks, added in the order of the rows."""

    def each(self, function: Callable[[Any], Any], source: Parts) -> list[Any]:
        """``function(block)`` of every block, in the order of the rows."""


# -- A block of encoded rows: columns by family, labels and weights ------------------------------------------


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Attributes
    ----------
    columns : mapping
        Name of a family -> its columns, (n, d), in the encoding that the family reads.
    labels : (n,) integers
        Class codes; -1 is a row without a label.
    weight : (n,) floats
        Weight of each row in the statistics; 0 for a held-out row.
    held_out : (n,) floats
        Weight of each row in the validation metrics; 0 for a training row.
    first : int
        Position of the first row in the table: random starts are drawn by row, so that they do not depend on the blocks.
    """

    columns: Mapping[str, AnyArray]
    labels: Array
    weight: Array
    held_out: Array
    first: int = 0

    def onehot(self, k: int) -> Array:
        """Labels as indicators, (n, k); a row without a label is all zero."""
        return np.asarray(self.labels[:, None] == np.arange(k), dtype=np.float64)


# -- Short names for objects, accepted wherever a person would type one --------------------------------------


def resolve(
    parameter: str, given: Any, names: Mapping[Any, Callable[[], Any]], *, ability: str, example: str
) -> Any:
    """The object that a short name means, or the object itself.

    Parameters
    ----------
    parameter : str
        Name of the parameter, for the error message.
    given : str, None or object
    names : mapping
        Short name -> function that makes the object.
    ability : str
        An attribute that every such object has.
    example : str
        An object that could be given instead of a name, for the error message.

    Raises
    ------
    ValueError
        If ``given`` is an unknown name, a class instead of an object, or lacks the attribute.

    Examples
    --------
    >>> resolve("size", "small", {"small": lambda: 1 + 0j}, ability="real", example="1j")
    (1+0j)
    """
    if isinstance(given, str | None) and given in names:
        return names[given]()
    if isinstance(given, str | type | None) or not hasattr(given, ability):
        known = ", ".join(repr(name) for name in names)
        raise ValueError(f"{parameter} must be one of {known} or an object such as {example}, got {given!r}")
    return given
