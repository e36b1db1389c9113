"""Rows that trees are grown on, in blocks, wherever they lie: what a round does with a block, and with all blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import tree_nodes
from calibayes.kernels.forests import (
    DividedRows,
    GrownTree,
    SplitRequest,
    TreeNodes,
    best_first,
    forest_of,
    grow_tree,
    leaf_codes,
    training_rows,
)
from calibayes.kernels.moments import RowCounts
from calibayes.kernels.tree_nodes import ByteColumns, LabeledScores, LeafSums, SplitOptions, Units

Result = TypeVar("Result")

# -- What a round does with the rows of a block, and with all rows --------------------------------------------


class FoldRows(Protocol):
    """Rows while trees are grown on those that a fold does not hold out. Sums are whole numbers."""

    def grow(self, options: SplitOptions, most_leaves: int) -> GrownTree:
        """A tree on the residuals that the trees so far leave."""

    def leaf_sums(self, tree: TreeNodes) -> Array:
        """`LeafSums` (3, leaves, k), and a note of the leaf of each row."""

    def move(self, factors: Array) -> int:
        """Add log factors (leaves, k) to the scores of the rows in these leaves; the log loss of held-out rows."""

    def loss(self) -> int:
        """The log loss of held-out rows, a whole number of units."""


def _unknown() -> Array:
    """What is not known of a block yet."""
    return np.zeros(0)


@dataclass(eq=False)
class GrowthRows:
    """A block of rows with labels, and the log scores that growth begins with.

    Attributes
    ----------
    words : (ceil(d / 8), n) array, or what its rows are read from
        The codes of the columns, see `ByteColumns`.
    first : (d + 1,) integers
        First cell of each column, and the number of all cells.
    labels : (n,) int32 array
        Class codes.
    weight : (n,) or (1,) array
    log_start : (n, k) or (k,) array
    fractions : (n,) uint32 array
        By which fractions of 2^32 the residuals of each row are rounded.
    held_out : (folds, n) booleans
    """

    words: Any
    first: Array
    labels: Array
    weight: Array
    log_start: Array = field(default_factory=_unknown)
    fractions: Array = field(default_factory=_unknown)
    held_out: Array = field(default_factory=_unknown)
    folds: dict[tuple[str, int], BlockFold] = field(default_factory=dict, repr=False)
    """Growth in the folds: it can be computed again, and is not pickled."""

    @property
    def columns(self) -> ByteColumns:
        """The codes of the columns."""
        return ByteColumns(self.words[:], self.first)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "folds": {}}

    def marked(self, marks: RowMarks) -> GrowthRows:
        """The same rows with what is known of them once all blocks were seen."""
        log_start, places, fractions, held_out = marks
        labels = places[self.labels]
        return replace(
            self, labels=labels, log_start=log_start, fractions=fractions, held_out=held_out, folds={}
        )

    def scores(self) -> Array:
        """The log scores that growth begins with, (n, k), a copy."""
        return np.array(np.broadcast_to(self.log_start, (self.n, self.log_start.shape[-1])), order="C")

    def fold(self, plan: GrowthPlan) -> BlockFold:
        """The growth in a fold, as far as the plan says."""
        place = plan.growth, plan.fold
        if any(growth != plan.growth for growth, _ in [*self.folds]):
            self.folds.clear()
        if place not in self.folds or self.folds[place].trees > len(plan.trees):
            self.folds[place] = BlockFold(self, plan.fold, plan.units)
        return self.folds[place].follow(plan)


class RowMarks(NamedTuple):
    """What is known of rows once all blocks were seen."""

    log_start: Array
    """(n, k) or (k,)."""
    places: Array
    """The new code of each class, (k,) int32: an order that does not depend on their names."""
    fractions: Array
    """(n,)."""
    held_out: Array
    """(folds, n)."""

    def of(self, rows: slice) -> RowMarks:
        """Those of some rows."""
        log_start = self.log_start[rows] if self.log_start.ndim == 2 else self.log_start
        return RowMarks(log_start, self.places, self.fractions[rows], self.held_out[:, rows])


def counted_rows(columns: ByteColumns, labels: Array, weight: Array, counts: RowCounts) -> GrowthRows:
    """Rows with class codes and weights (n,), as often as they count."""
    copies, codes = counts.copies(labels, weight), labels.astype(np.int32)
    share = weight / counts.unit
    if copies is not None:
        source = np.repeat(np.arange(len(copies)), copies)
        columns, codes, share = columns.rows(source), codes[source], (share / copies)[source]
    if len(share) and (share == share[0]).all():
        share = share[:1]
    return GrowthRows(columns.words, columns.first, codes, np.array(share))


def one_or_all(weights: Sequence[Array], sizes: Sequence[int]) -> Array:
    """The weights of the rows of several parts, (n,), or (1,) if all are the same; those of a part are (size,) or (1,)."""
    pairs = [(weight, size) for weight, size in zip(weights, sizes, strict=True) if size]
    if all(len(weight) == 1 for weight, _ in pairs) and len({float(weight[0]) for weight, _ in pairs}) == 1:
        return pairs[0][0]
    return np.concatenate([np.zeros(0), *(np.broadcast_to(*pair) for pair in pairs)])


class GrowthPlan(NamedTuple):
    """What has happened so far in a fold: a block that knows nothing of it can catch up."""

    growth: str
    fold: int
    units: Units
    trees: tuple[tuple[TreeNodes, Array], ...] = ()
    """Trees and their log factors (leaves, k)."""
    requests: tuple[SplitRequest, ...] = ()
    """How rows were divided in this round."""


@dataclass(eq=False)
class BlockFold:
    """`FoldRows` of a block in memory."""

    rows: GrowthRows
    fold: int
    units: Units
    trees: int = 0
    """Number of trees whose factors are in the scores."""
    requests: int = 0
    """Number of requests by which rows are divided in this round."""

    def __post_init__(self) -> None:
        self._held_out, self._scores = self.rows.held_out[self.fold], self.rows.scores()
        self._divided: DividedRows | None = None
        self._codes = np.zeros(0, dtype=np.int8)

    def grow(self, options: SplitOptions, most_leaves: int) -> GrownTree:
        return grow_tree(self.rows.columns, self._held_out, self._packed(), options, most_leaves)

    def leaf_sums(self, tree: TreeNodes) -> Array:
        self._note_leaves(tree)
        leaves = (len(tree.column) + 1) // 2
        sums: LeafSums = tree_nodes.leaf_sums(
            self._scored, self._codes, self._held_out, leaves, self.units.leaf
        )
        return np.stack(sums)

    def move(self, factors: Array) -> int:
        self._add(factors)
        return self.loss()

    def loss(self) -> int:
        return (
            tree_nodes.whole_loss(self._scored, self._held_out, self.units.loss)
            if self._held_out.any()
            else 0
        )

    # -- passes of a round over blocks -----------------------------------------------------------------------------

    def residual_sums(self) -> Array:
        """Begin a round: sums over all rows, (2, cells, c)."""
        return self._begin().sums(self.rows.columns, 0)

    def split_sums(self, requests: Sequence[SplitRequest]) -> Array:
        """Divide nodes and return the sums of one child of each, (m, 2, cells, c)."""
        divided = self._divided or self._begin()
        self.requests += len(requests)
        return divided.split_sums(self.rows.columns, requests)

    def follow(self, plan: GrowthPlan) -> BlockFold:
        """Apply the trees and requests of a plan that were not applied yet."""
        for tree, factors in plan.trees[self.trees :]:
            self._note_leaves(tree)
            self._add(factors)
        if self.requests > len(plan.requests):
            self._divided, self.requests = None, 0
        for request in plan.requests[self.requests if self._divided else 0 :]:
            (self._divided or self._begin()).divide(self.rows.columns, request)
            self.requests += 1
        return self

    def _begin(self) -> DividedRows:
        self._divided = DividedRows(self._packed(), {0: training_rows(self._held_out)})
        self.requests = 0
        return self._divided

    def _note_leaves(self, tree: TreeNodes) -> None:
        self._codes = leaf_codes(self.rows.columns, forest_of([tree]))[:, 0]

    def _add(self, factors: Array) -> None:
        self._scores = tree_nodes.add_factors(self._scores, self._codes, factors)
        self._divided, self.requests, self.trees = None, 0, self.trees + 1

    @property
    def _scored(self) -> LabeledScores:
        return LabeledScores(self._scores, self.rows.labels, self.rows.weight)

    def _packed(self) -> Array:
        return tree_nodes.packed_residuals(self._scored, self.units.packed, self.rows.fractions)


# -- All blocks: one in memory, or many, wherever they lie ----------------------------------------------------


class GrowthBlocks(Protocol):
    """The blocks of all rows."""

    def total(self, function: Callable[[GrowthRows], Mapping[str, Any]]) -> Any:
        """The sum of ``function(block)`` over all blocks."""

    def each(self, function: Callable[[GrowthRows], Result]) -> list[Result]:
        """``function(block)`` of every block, in the order of the rows."""

    def fold(self, growth: str, fold: int, units: Units) -> FoldRows:
        """The rows while trees are grown in a fold."""

    def marked(self, marks: RowMarks) -> GrowthBlocks:
        """The same rows with what is known of them once all blocks were seen."""


@dataclass(frozen=True, eq=False)
class OneBlock:
    """All rows as one block in memory."""

    rows: GrowthRows

    def total(self, function: Callable[[GrowthRows], Mapping[str, Any]]) -> Any:
        return function(self.rows)

    def each(self, function: Callable[[GrowthRows], Result]) -> list[Result]:
        return [function(self.rows)]

    def fold(self, growth: str, fold: int, units: Units) -> FoldRows:
        return BlockFold(self.rows, fold, units)

    def marked(self, marks: RowMarks) -> GrowthBlocks:
        return OneBlock(self.rows.marked(marks))


@dataclass(frozen=True, eq=False)
class ManyBlocks:
    """Blocks of a source, with the engine that visits them."""

    engine: Any
    source: Any

    def total(self, function: Callable[[GrowthRows], Mapping[str, Any]]) -> Any:
        return self.engine.total(function, self.source)

    def each(self, function: Callable[[GrowthRows], Result]) -> list[Result]:
        return list(self.engine.each(function, self.source))

    def fold(self, growth: str, fold: int, units: Units) -> FoldRows:
        return FoldInPasses(self, GrowthPlan(growth, fold, units))

    def marked(self, marks: RowMarks) -> GrowthBlocks:
        return ManyBlocks(self.engine, self.source.marked(marks))


@dataclass(eq=False)
class FoldInPasses:
    """`FoldRows` of many blocks: each step is a pass over all of them."""

    blocks: ManyBlocks
    plan: GrowthPlan

    def grow(self, options: SplitOptions, most_leaves: int) -> GrownTree:
        self.plan = self.plan._replace(requests=())
        sums = self._pass(BlockFold.residual_sums)
        return best_first(self._first, options, most_leaves, sums, self._split_sums)

    def _split_sums(self, requests: Sequence[SplitRequest]) -> Array:
        sums = self._pass(BlockFold.split_sums, requests)
        self.plan = self.plan._replace(requests=(*self.plan.requests, *requests))
        return sums

    def leaf_sums(self, tree: TreeNodes) -> Array:
        self._tree = tree
        return self._pass(BlockFold.leaf_sums, tree)

    def move(self, factors: Array) -> int:
        trees = (*self.plan.trees, (self._tree, factors))
        self.plan = self.plan._replace(trees=trees, requests=())
        return self.loss()

    def loss(self) -> int:
        return int(self._pass(BlockFold.loss))

    def _pass(self, step: Callable[..., Any], *args: Any) -> Any:
        return self.blocks.total(BlockPass(self.plan, step, args))["sums"]

    @cached_property
    def _first(self) -> Array:
        (first,) = set(self.blocks.each(_first_cells))
        return np.array(first)


@dataclass(frozen=True)
class BlockPass:
    """A step of growth in a fold, as a function of a block."""

    plan: GrowthPlan
    step: Callable[..., Any]
    """A method of `BlockFold`."""
    args: tuple[Any, ...]

    def __call__(self, block: GrowthRows) -> dict[str, Array]:
        return {"sums": np.asarray(self.step(block.fold(self.plan), *self.args))}


def _first_cells(block: GrowthRows) -> tuple[int, ...]:
    return tuple(block.first.tolist())


def new_growth() -> str:
    """A name for one growth, by which blocks tell its state from that of others."""
    return uuid4().hex
