"""The whole design on one page.

A family is a closed-form learner ``parameters(statistics(data))`` whose statistics are sums over rows, linear in
per-row class weights W of shape (n, k). Every learning rule is then one line,

    S  <-  (1 - step * shrink) * S  +  step * statistics(X, W(Y, P))        P = posterior under parameters(S)

A model is a class prior and one or more families, each over its own columns. A rule says which weights and which
step, a source yields blocks of rows, an engine says where the sum over blocks runs. None of them knows another;
`calibayes.learn` composes them through the protocols below. What a family
may be able to do beyond its protocol is in `calibayes.core.abilities`. Sizes: n rows, d columns, k classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from calibayes.core.block import Block

Array: TypeAlias = Any
"""An array of NumPy or of another library that speaks the array API."""
Arrays: TypeAlias = Mapping[str, Any]
"""Name -> array: the statistics or the parameters of one family."""
Trees: TypeAlias = Mapping[str, Arrays]
"""Name of a family -> its arrays: the statistics or the parameters of a model."""


@dataclass(frozen=True)
class Layout:
    """What a family is told about its columns before it sees a row of them."""

    classes: tuple[str, ...]
    columns: tuple[str, ...]
    levels: tuple[int, ...] = ()
    """Number of levels of each column, for families over levels."""
    center: Array = field(default_factory=lambda: np.zeros(0))
    """Point about which moments are summed, (d,), for families over numbers."""
    variance: Array = field(default_factory=lambda: np.zeros(0))
    """Variance of each column, (d,), for families over numbers: what a missing cell may be at the start."""
    ordered: tuple[int, ...] = ()
    """How many leading cells of each column lie in order, so that neighbors are alike; the others stand alone."""
    log_volume: Array = field(default_factory=lambda: np.zeros(0))
    """log of the width of each cell in its column's units, all columns side by side; 0 where a cell is one value."""
    gridded: bool = False
    """Whether the ordered cells are points of a uniform grid and columns hold positions on it (NaN where missing),
    not codes; the two cells behind the points are all that lies below the grid and all that lies above."""
    gappy: tuple[bool, ...] = ()
    """Whether the last cell of each column is for what is missing in it."""
    seeds: tuple[Array, ...] = ()
    """Where the components of each class begin, (components, d) a class, for mixtures."""


class ValidStatistics(NamedTuple):
    """What `Family.keep_valid` lets through."""

    statistics: Arrays
    frozen: int
    """How many statistics kept their old value."""
    frozen_classes: Array
    """Classes that kept everything, so that their class count must stay too, (k,)."""


class Family(Protocol):
    """A density p(x | class) with a closed-form learner. Immutable; methods are pure."""

    @property
    def reads(self) -> str:
        """The encoding of its columns.

        "numbers", "clusters" (numbers with seeds), "levels", "cells", "flags" or "counts".
        """

    def bind(self, layout: Layout) -> Family:
        """This family over given columns and classes."""

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Family:
        """Fix, from the statistics of the data, what stays fixed: default priors, floors, structure.

        ``pooled`` are the statistics of all rows with even class weights, where some rows have no label. A family that
        is `Structured` is given its surveys instead.

        Raises ValueError, naming class and column, where the statistics have no valid parameters.
        """

    def statistics(self, columns: Any, weights: Array, parameters: Arrays | None = None) -> Arrays:
        """Sums over rows, linear in the weights (n, k), which may be negative.

        The parameters matter only to families with something hidden.
        """

    def parameters(self, statistics: Arrays) -> Arrays:
        """The closed-form learner, in the columns' own units."""

    def log_density(self, columns: Any, parameters: Arrays) -> Array:
        """log p(x | class), (n, k)."""

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """The proposed statistics, with the current value wherever the proposed one is invalid."""


class Model(Protocol):
    """Class prior and families together: the joint density p(x, class)."""

    def statistics(self, block: Block, weights: Array, parameters: Trees | None = None) -> Trees: ...

    def structure_statistics(self, block: Block, weights: Array) -> Trees:
        """Sums over the data: the statistics, or what holds them where a structure is still to be found."""

    def statistics_of(self, survey: Trees) -> Trees:
        """The statistics that a survey holds."""

    def parameters(self, statistics: Trees) -> Trees: ...

    def log_joint(self, block: Block, parameters: Trees) -> Array:
        """log p(x, class), (n, k)."""

    def contrast(self, block: Block, parameters: Trees) -> Array:
        """The same up to a term that all classes share."""

    def fused_pass(self, block: Block, parameters: Trees, generative: float, decided: float) -> Any | None:
        """All that a pass wants of a block in one go (see `FusedPass`), or None where that is not at hand."""

    def keep_valid(self, current: Trees, proposed: Trees) -> tuple[Trees, int]: ...

    def gradient_step(self, parameters: Trees, direction: Trees, rate: float) -> Trees: ...

    def log_prior(self, parameters: Trees) -> float: ...


class StepControl(Protocol):
    """How long the next step is."""

    @property
    def guarded(self) -> bool:
        """Whether a step that lowers the objective is taken back and tried again, shorter."""

    def step(self, update: int, previous: float | None) -> float:
        """Length of the step of an update, counted from 1, after the ``previous`` accepted one."""

    def retry(self, step: float, tries: int) -> float | None:
        """Length after a refused step, or None to give up."""


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
        """Share of the statistics given up per unit of step; also the weight of the log prior in the objective."""

    @property
    def closed_form(self) -> bool:
        """Whether one update from anywhere is the end."""

    @property
    def climbs(self) -> bool:
        """Whether the best state is that of the highest objective; else it is that of the least soft error."""

    @property
    def unlabeled(self) -> bool:
        """Whether rows without a label take part."""

    def adapt(self, family: Family) -> Family:
        """The family as this rule needs it."""

    def weights(self, onehot: Array, posterior: Array) -> Array:
        """W(Y, P), (n, k), in units of a row: what is tiny beside 1 counts as none."""

    def brings(self, onehot: Array, posterior: Array) -> Array:
        """Class weights with which further rows enter the state before a step is taken on them, (n, k)."""

    def objective(self, log_joint: Array, onehot: Array) -> Array | None:
        """What the rule climbs, row by row, (n,); None where nothing is known to rise.

        A rule whose weights are Y - (1 - g) P, and which climbs g * log p(x, y) + (1 - g) * log p(y | x), may say so by
        an attribute ``blend`` = g (None: it is not): kernels then do all that in one go.
        """

    def begin(self, model: Model, statistics: Trees) -> Trees:
        """The state that belongs to the statistics at the start."""

    def absorb(self, state: Trees, new: Trees) -> Trees:
        """The state after the statistics of further rows came in."""

    def statistics(self, state: Trees) -> Trees | None:
        """The statistics in a state, None for a rule that keeps none."""

    def parameters(self, model: Model, state: Trees) -> Trees: ...

    def advance(
        self, model: Model, state: Trees, direction: Trees, step: float, size: float, share: float = 1.0
    ) -> tuple[Trees, int]:
        """The next state and how much of it froze.

        ``direction`` is statistics(X, W) over ``share`` of the data, whose whole weight is ``size``.
        """


class Source(Protocol):
    """A table, block by block."""

    def parts(self) -> Sequence[Callable[[], Block]]:
        """Picklable loaders, one for each block, in the order of the rows."""

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """The same rows in random order, ``size`` at a time."""


class Engine(Protocol):
    """Where sums over blocks run."""

    def total(self, function: Callable[[Block], Mapping[str, Any]], source: Source) -> Any:
        """The sum of ``function(block)`` over all blocks, added in the order of the rows."""
