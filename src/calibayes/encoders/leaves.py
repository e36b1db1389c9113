"""The leaves of trees as levels: columns that separate what a model of the classes leaves unexplained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array
from calibayes.encoders.bins import QuantileBins
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.encoder import FixedLayout, is_same, verify_nested
from calibayes.encoders.levels import Levels
from calibayes.kernels import tree_growth
from calibayes.kernels.dispatch import map_ranges
from calibayes.kernels.forests import ONE_LEAF, Forest, forest_of, leaf_codes, path_terms
from calibayes.kernels.growth_rows import (
    GrowthBlocks,
    GrowthRows,
    OneBlock,
    RowMarks,
    counted_rows,
    one_or_all,
)
from calibayes.kernels.level_counts import offsets
from calibayes.kernels.moments import RowCounts
from calibayes.kernels.posterior import exact_log, exact_log_normalize
from calibayes.kernels.row_keys import Keys, RowOrder, keys_of, row_order
from calibayes.kernels.tree_growth import GrownForest, GrowthSettings, Report, silent
from calibayes.kernels.tree_nodes import MOST_CODES, WORD, ByteColumns, byte_columns, first_cells
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

# -- Columns of any type as bytes whose order trees can split: 0 for a missing value, then bins or levels ----

MOST_BINS = MOST_CODES - 2
"""Largest number of bins or levels of a column; one more code is for missing values, one for pooled levels."""

CELL_BYTES = 16
"""Approximate memory of a cell while it is encoded."""


def _bins_and_levels() -> ByColumnType:
    return ByColumnType(QuantileBins(most=MOST_BINS), Levels(most=MOST_BINS - 1))


@dataclass(frozen=True)
class OrderedBytes:
    """Numbers as up to 254 quantile bins in order, and all other columns as levels in order of their frequency.

    The most frequent level comes first; of equally frequent ones the first in sorted order. Rare levels, and beyond 253
    levels all others, are neighbors, so that few splits separate frequent levels from them. The order does not depend on
    the classes: an order by the share of a class would show the label of a row through a level that few rows have.

    A missing value is 0, and so is a level that did not occur in training, unless levels were pooled: then it is pooled
    too.
    """

    inner: ByColumnType = field(default_factory=_bins_and_levels)
    indices: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    """Positions, among the columns, of those with a known value in training: the columns of the inner encoder."""
    orders: tuple[Array, ...] = ()
    """The byte of each inner code of these columns, 0 for a level that did not occur."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> OrderedBytes:
        """This encoder fitted to the columns at ``indices``."""
        places = tuple(place for place, j in enumerate(indices) if summary.missing_rows(j) < summary.n)
        if not places:
            return replace(self, indices=tuple(indices), places=(), orders=())
        inner = self.inner.fit(summary, [indices[place] for place in places])
        orders: list[Array] = [np.arange(1, size + 1, dtype=np.uint8) for size in inner.layout()["levels"]]
        for _, part, of_part in inner.by_side(("bins", "levels")):
            if isinstance(part, Levels):
                for place, weights in zip(of_part, part.code_weights(summary), strict=True):
                    orders[place] = _by_frequency(weights)
        return replace(self, inner=inner, indices=tuple(indices), places=places, orders=tuple(orders))

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        verify.require_positions("places", self.places, len(self.indices))
        verify.require_ascending("places", np.array(self.places))
        verify.require_length("orders", self.orders, len(self.places))
        if not self.places:
            return
        layout = verify_nested(self.inner, tuple(self.indices[p] for p in self.places), is_codes=True)
        for order, levels in zip(self.orders, layout["levels"], strict=True):
            verify.require_array("orders", order, (levels,), "u")
            verify.require(order.dtype == np.uint8, "orders must be bytes")

    @property
    def sizes(self) -> Array:
        """Number of codes of each column, that of missing values included, (d,)."""
        sizes = np.ones(len(self.indices), dtype=np.int64)
        for place, order in zip(self.places, self.orders, strict=True):
            sizes[place] = int(order.max(initial=0)) + 1
        return sizes

    def encode(self, table: Table) -> ByteColumns:
        """The bytes of the rows."""
        words = np.zeros((-(-len(self.indices) // WORD), table.n), dtype=np.uint64)

        def fill(rows: slice) -> None:
            some = table if rows == everything else table.rows(np.arange(rows.start, rows.stop))
            words[:, rows] = byte_columns(self._bytes(some), self.sizes).words

        everything = slice(0, table.n)
        if isinstance(table.content, tuple) or table.content.dtype.kind not in "fiub":
            fill(everything)
        else:  # a part of the rows at a time, so that codes of other types take little memory
            map_ranges(fill, table.n, CELL_BYTES * len(self.indices))
        return ByteColumns(words, first_cells(self.sizes))

    def _bytes(self, table: Table) -> Array:
        """The bytes of the rows, (n, d)."""
        bytes_ = np.zeros((table.n, len(self.indices)), dtype=np.uint8)
        if self.places:
            codes = self.inner.encode(table)
            for place, order, column in zip(self.places, self.orders, codes.T, strict=True):
                bytes_[:, place] = np.append(order, np.uint8(0))[column]  # code -1 is the last entry
        return bytes_

    def one_block(self, table: Table, codes: Array, weight: Array, counts: RowCounts) -> OneBlock:
        """Rows in memory to grow trees on, with class codes and weights (n,); those without a label are left out."""
        columns, labeled = self.encode(table), codes >= 0
        if not labeled.all():
            columns, codes, weight = columns.rows(labeled), codes[labeled], weight[labeled]
        return OneBlock(counted_rows(columns, codes, weight, counts))

    def same_codes(self, other: OrderedBytes) -> bool:
        """Whether another encoder gives the same bytes."""
        return is_same(self, other)


def _by_frequency(counts: Array) -> Array:
    """The byte of each level, from their total weights: 1 for the most frequent one, 0 for levels without rows."""
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    bytes_ = np.zeros(len(counts), dtype=np.uint8)
    bytes_[order] = np.arange(1, len(order) + 1)
    return bytes_


# -- The leaves of trees as levels: columns that separate what a model of the classes leaves unexplained -----

AS_WEIGHED = RowCounts()
"""Weights are those of rows, and no counts."""
HELD_OUT = 10
"""Of each class one row in so many is held out, to find out how many trees to grow."""
FEW_ROWS, FOLDS = 500, 5
"""Of fewer rows a tenth is too few to tell: so many folds are held out in turn, and then trees are grown on all rows."""


@dataclass(frozen=True)
class Leaves(FixedLayout):
    """Trees grown on the residuals of the classes; each tree becomes a column, whose levels are its leaves.

    One tree for all classes is grown at a time, where the residuals Y - P of the trees before it can still be told apart
    (see `calibayes.kernels.tree_growth`). A tenth of the rows of each class, evenly spaced, is held out: growth ends
    when their log loss falls no more. Of fewer than 500 rows, five folds are held out in turn, and then as many trees as
    are best for all of them are grown on all rows. With fewer than five rows in every class none is held out, and at most
    ``settings.patience`` trees are grown. If no split gains, there is one tree with one leaf.

    A missing value goes to the side where it gains; where none was missing in a node, to the side with more training rows.
    Decoding is not possible.

    Parameters
    ----------
    settings : GrowthSettings, default=GrowthSettings()
    monotone : tuple of (int, int), default=()
        Position of a column in the table, and 1 (-1) if the log odds of the second of two classes may only rise (fall)
        with it.

    Examples
    --------
    >>> from calibayes import CalibratedTrees
    >>> X, y = [[row % 7, row % 5] for row in range(400)], [int(row % 7 > 3) for row in range(400)]
    >>> CalibratedTrees(random_state=0).fit(X, y).score(X, y)  # its encoder is Leaves
    1.0
    """

    settings: GrowthSettings = field(default_factory=GrowthSettings)
    monotone: tuple[tuple[int, int], ...] = ()
    indices: tuple[int, ...] = ()
    bytes: OrderedBytes = field(default_factory=OrderedBytes)
    forest: Forest = field(default_factory=lambda: forest_of([ONE_LEAF]))
    log_factor: Array = field(default_factory=lambda: np.zeros((2, 1)))
    """The factor by which growth has multiplied p(leaf | class), as a logarithm, (k, leaves of all trees)."""
    log_start: Array = field(default_factory=lambda: np.zeros(2))
    """Log class probabilities with which growth has begun, (k,)."""
    losses: Array = field(default_factory=lambda: np.zeros(1))
    """Log loss of the held-out rows before the first tree and after each, also of trees that were left out."""

    data_dependence = "trees are grown on the training rows"

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Leaves:
        """This encoder fitted to the columns at ``indices``."""
        return self.grown(summary, indices)[0]

    def grown(
        self,
        summary: TableSummary,
        indices: Sequence[int],
        counts: RowCounts = AS_WEIGHED,
        report: Report = silent,
        seed: int = 0,
        place: Callable[[GrowthBlocks], GrowthBlocks] | None = None,
    ) -> tuple[Leaves, Array]:
        """This encoder fitted to the columns at ``indices``, and the weights of the rows in its leaves, (k, leaves).

        These are in rows, as ``counts`` says. The ``seed`` chooses held-out rows; ``place`` moves blocks to where trees are
        grown.
        """
        if summary.codes is None:
            raise ValueError("Leaves needs the class codes of the rows")
        labeled = summary.codes >= 0
        mass = np.bincount(summary.codes[labeled], summary.weight[labeled], minlength=1) / counts.unit
        if len(mass) < 2:
            raise ValueError("Leaves needs rows of two classes")
        log_start = exact_log(np.maximum(mass / mass.sum(), np.finfo(np.float64).tiny))
        encoder = OrderedBytes().fit(summary, indices)
        blocks = summary.blocks(encoder, counts)
        blocks = blocks if place is None else place(blocks)
        keys = keys_of(blocks, len(mass), seed)
        order = np.argsort(keys.classes, kind="stable")
        sign = 1 if order[0] == 0 else -1  # the direction is that of the second of two classes in this order
        signs = dict(self.monotone)
        direction = sign * np.array([signs.get(j, 0) for j in indices], dtype=np.int8)
        places = np.argsort(order).astype(np.int32)
        ranks, fractions = ordered_rows(blocks, keys)
        held_out = held_out_folds(ranks)
        del ranks  # of very many rows each array counts
        sample = GrowthSample(blocks, keys, fractions, log_start[order], places)
        grown, losses = _grown(sample, held_out, self.settings, direction, report)
        forest, log_factor, leaf_mass = forest_of([ONE_LEAF]), np.zeros((len(mass), 1)), mass[:, None]
        if grown.forest.count:
            forest, log_factor, leaf_mass = grown.forest, grown.log_factor[places], grown.mass[places]
        trees = forest, log_factor, log_start, losses
        return Leaves(self.settings, self.monotone, tuple(indices), encoder, *trees), leaf_mass

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        verify.require(self.forest.count >= 1, "there must be a tree")
        verify.require(self.bytes.indices == self.indices, "the bytes are those of other columns")
        verify.require_positions("column", self.forest.column[self.forest.column >= 0], len(self.indices))
        k = len(verify.require_finite("log_start", self.log_start, (None,)))
        verify.require(k >= 2, "log_start has fewer than two classes")
        verify.require_finite("log_factor", self.log_factor, (k, sum(self.forest.leaves)))
        verify.require(len(verify.require_array("losses", self.losses, (None,))) >= 1, "losses are empty")
        for position, sign in self.monotone:
            is_pair = position >= 0 and sign in (-1, 1)
            verify.require(is_pair, "monotone must be pairs of a column and 1 or -1")

    def encode(self, table: Table) -> Array:
        return leaf_codes(self.bytes.encode(table), self.forest)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("leaves of trees cannot be decoded into a table: sample from another model")

    def layout(self) -> Mapping[str, Any]:
        names = tuple(f"tree {number + 1}" for number in range(self.forest.count))
        return {"columns": names, "levels": self.forest.leaves}

    def unite(self, other: Leaves) -> tuple[Leaves, None, None]:
        if not is_same(self.forest, other.forest) or not self.bytes.same_codes(other.bytes):
            raise ValueError("models with different trees cannot be merged")
        return self, None, None

    def path_terms(self, table: Table, values: Array, mass: Array) -> tuple[Array, Array]:
        """What each column contributes, on the paths of the rows, to the sum of their leaves' values, (n, k, d).

        ``values`` (k, leaves) are averaged over the leaves of a node by ``mass`` (leaves,). Also returns the value of no
        column, (k,).
        """
        return path_terms(self.bytes.encode(table), self.forest, values, mass)

    def start_probabilities(self, mass: Array) -> tuple[Array, Array]:
        """Log p(leaf | class) (k, leaves) and log p(class) (k,) with which the posterior is that of the grown trees.

        ``mass`` (leaves,) are the weights of the training rows in each leaf: p(leaf | class) is their share times the
        factor of the leaf, normalized; what normalizes it belongs to the class.
        """
        log_mass = exact_log(np.maximum(mass, np.finfo(np.float64).tiny))
        return self.normalized(self.log_factor + log_mass, self.log_start)

    def normalized(self, log_leaf: Array, log_class: Array) -> tuple[Array, Array]:
        """Log p(leaf | class) (k, leaves) and log p(class) (k,) in proportion to numbers that do not sum to 1."""
        trees = [exact_log_normalize(log_leaf[:, a:b]) for a, b in pairwise(offsets(self.forest.leaves))]
        log_probability, shifts = np.concatenate([probability for probability, _ in trees], axis=1), log_class
        for _, evidence in trees:  # one after another: sums of NumPy are in an order of its own
            shifts = shifts + evidence
        return log_probability, exact_log_normalize(shifts[None])[0][0]


class GrowthSample(NamedTuple):
    """Rows to grow trees on."""

    blocks: GrowthBlocks
    keys: Keys
    fractions: Array
    """By which residuals are rounded, (n,)."""
    log_start: Array
    """Of the classes in their order, (k,)."""
    places: Array
    """Place of each class in this order, (k,) int32."""

    def folds(self, held_out: Array) -> GrowthBlocks:
        """The blocks, with the rows that each fold holds out, (folds, n)."""
        return self.blocks.marked(RowMarks(self.log_start, self.places, self.fractions, held_out))


def ordered_rows(blocks: GrowthBlocks, keys: Keys) -> RowOrder:
    """An order of all rows, by their content."""
    parts = blocks.each(partial(_hashed, keys))
    hashes, labels = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    sizes, weights = [len(part[0]) for part in parts], [part[2] for part in parts]
    return row_order(hashes, labels, one_or_all(weights, sizes))


def _hashed(keys: Keys, rows: GrowthRows) -> tuple[Array, Array, Array]:
    """Hashes, labels and weights of the rows of a block."""
    return keys.hashes(rows), rows.labels, rows.weight


def held_out_folds(place: Array) -> Array:
    """The rows that each fold holds out, (folds, n), by the place of each row in its class."""
    if len(place) < FEW_ROWS and place.max() >= FOLDS - 1:
        return np.asarray(place % FOLDS == np.arange(FOLDS)[:, None])
    return np.asarray(place % HELD_OUT == HELD_OUT // 2 - 1)[None]


def _grown(
    sample: GrowthSample, held_out: Array, settings: GrowthSettings, direction: Array, report: Report
) -> tuple[GrownForest, Array]:
    """Trees grown on a sample, and the log loss of held-out rows by number of trees."""
    grow = partial(tree_growth.grow_forests, keys=sample.keys, direction=direction)
    forests, losses = grow(sample.folds(held_out), len(held_out), settings, report=report)
    if len(forests) == 1:
        return forests[0], losses
    settings = replace(settings, trees=0 if np.isnan(losses).all() else int(np.nanargmin(losses)))
    nothing = sample.folds(np.zeros_like(held_out[:1]))
    return grow(nothing, 1, settings, knows_end=True).forests[0], losses
