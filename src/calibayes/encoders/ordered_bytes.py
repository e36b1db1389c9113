"""Columns of any type as bytes whose order trees can split: 0 for a missing value, then bins or levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import (
    require,
    require_array,
    require_ascending,
    require_columns,
    require_length,
    require_positions,
)
from calibayes.encoders.bins import QuantileBins
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.encoder import verify_nested
from calibayes.encoders.levels import Levels
from calibayes.kernels.partitions.byte_columns import MOST_CODES, WORD, ByteColumns, byte_columns, first_cells
from calibayes.kernels.threads import map_row_ranges
from calibayes.tables.summaries.summary import TableSummary
from calibayes.tables.table import Table

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
        orders: list[Array] = [_as_they_are(levels) for levels in inner.layout()["levels"]]
        for _, part, of_part in inner.by_side(("bins", "levels")):
            if isinstance(part, Levels):
                for place, weights in zip(of_part, part.code_weights(summary), strict=True):
                    orders[place] = _by_frequency(weights)
        return replace(self, inner=inner, indices=tuple(indices), places=places, orders=tuple(orders))

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        require_positions("places", self.places, len(self.indices))
        require_ascending("places", np.array(self.places))
        require_length("orders", self.orders, len(self.places))
        if not self.places:
            return
        layout = verify_nested(self.inner, tuple(self.indices[p] for p in self.places), is_codes=True)
        for order, levels in zip(self.orders, layout["levels"], strict=True):
            require_array("orders", order, (levels,), "u")
            require(order.dtype == np.uint8, "orders must be bytes")

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
            map_row_ranges(fill, table.n, CELL_BYTES * len(self.indices))
        return ByteColumns(words, first_cells(self.sizes))

    def _bytes(self, table: Table) -> Array:
        """The bytes of the rows, (n, d)."""
        bytes_ = np.zeros((table.n, len(self.indices)), dtype=np.uint8)
        if self.places:
            codes = self.inner.encode(table)
            for place, order, column in zip(self.places, self.orders, codes.T, strict=True):
                bytes_[:, place] = np.append(order, np.uint8(0))[column]  # code -1 is the last entry
        return bytes_

    def same_codes(self, other: OrderedBytes) -> bool:
        """Whether another encoder gives the same bytes."""
        return _is_same(self, other)


def _is_same(left: Any, right: Any) -> bool:
    """Whether nested fields and arrays are equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return bool(np.array_equal(left, right))
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(_is_same, left, right))
    if is_dataclass(left):
        return all(_is_same(getattr(left, part.name), getattr(right, part.name)) for part in fields(left))
    return bool(left == right)


def _as_they_are(levels: int) -> Array:
    return np.arange(1, levels + 1, dtype=np.uint8)


def _by_frequency(counts: Array) -> Array:
    """The byte of each level, from their total weights: 1 for the most frequent one, 0 for levels without rows."""
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    bytes_ = np.zeros(len(counts), dtype=np.uint8)
    bytes_[order] = np.arange(1, len(order) + 1)
    return bytes_
