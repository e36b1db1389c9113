"""The summary of a table in memory: columns are summarized when an encoder asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import cut_points, moments
from calibayes.kernels.dispatch import map_ranges
from calibayes.kernels.event_counts import is_sparse
from calibayes.kernels.level_counts import codes_and_maxima, offsets, weighted_counts
from calibayes.tables import summary as summaries
from calibayes.tables.table import (
    LARGEST,
    LARGEST_COUNTED,
    Table,
    distinct_values,
    integer_matrix,
    numeric_matrix,
    refuse_all_missing,
)

# -- Points near most rows, about which moments are summed ---------------------------------------------------

CENTER_ROWS = 512
"""Number of rows, evenly spaced in the sample, whose medians are the centers of the columns."""


def center_rows(n: int) -> slice:
    """Evenly spaced rows of a sample of n rows, for `column_centers`."""
    return slice(None, None, -(-n // CENTER_ROWS))


def column_centers(rows: Array, means: Callable[[Array], Any]) -> Array:
    """A point near most rows, (d,): medians of few rows (n, d), which outliers do not move as they move a mean.

    A column that is missing in all those rows has the mean of its known values instead: ``means`` of such columns, (d,)
    booleans.
    """
    some = rows.astype(np.float64)
    if not np.isnan(some.sum()):
        return np.asarray(np.median(some.T.copy(), axis=1))
    all_missing = np.all(np.isnan(some), axis=0)
    center = np.nanmedian(np.where(all_missing, 0.0, some), axis=0)
    if all_missing.any():
        center[all_missing] = means(all_missing)
    return center


# -- The distinct values of columns in memory, and the total weight of the rows that have each ---------------

ROWS_AT_A_TIME = 2048
"""Rows that are counted before checking whether all levels have occurred."""
MOST_CELLS = LARGEST_COUNTED * 64
"""Levels of all columns together up to which integers are counted in one array."""


def _of_integers(
    table: Table, indices: Sequence[int], weight: Array | None
) -> list[tuple[Array, Array]] | None:
    """Distinct values of columns of small non-negative integers, and their total weights; None if the columns are not that.

    They are counted, which is faster than sorting; without weights, the second array has any positive numbers.
    """
    integers = integer_matrix(table, indices)
    result = None if integers is None or not len(integers) else codes_and_maxima(integers)
    if result is None or result[1].sum() > MOST_CELLS:
        return None
    codes, starts = result[0], offsets(tuple((result[1] + 1).tolist()))
    occurrences = _occurrences(codes, starts)
    weights = occurrences if weight is None else _cell_weights(codes, weight, starts)
    pairs = zip(np.split(occurrences > 0, starts[1:-1]), np.split(weights, starts[1:-1]), strict=True)
    return [(np.flatnonzero(present), of_column[present]) for present, of_column in pairs]


def _occurrences(codes: Array, starts: Array) -> Array:
    """How often each cell occurs, (cells,), in the first rows up to where all cells have occurred, or in all rows."""
    total = np.zeros(starts[-1])
    for start in range(0, len(codes), ROWS_AT_A_TIME):
        rows = codes[start : start + ROWS_AT_A_TIME]
        total += weighted_counts(rows, np.ones((len(rows), 1)), starts)[0]
        if (total > 0).all():
            break
    return total


def _cell_weights(codes: Array, weight: Array, starts: Array) -> Array:
    """Total weight of each cell, (cells,)."""

    def of_rows(rows: slice) -> Array:
        return weighted_counts(codes[rows], weight[rows, None], starts)[0]

    return np.sum(map_ranges(of_rows, len(codes), codes[:1].nbytes), axis=0)


def _of_any_values(table: Table, indices: Sequence[int], weight: Array) -> list[tuple[Array, Array]]:
    """Distinct values of columns of any type, by sorting, and their total weights."""
    missing = np.stack([table.missing_mask(j) for j in indices], axis=1)
    refuse_all_missing(table, indices, missing)
    columns = [distinct_values(table, j) for j in indices]
    return [(values, np.bincount(codes, weight, len(values) + 1)[:-1]) for values, codes in columns]


# -- Cells of the ordered bits of numbers, divided in at most four passes until none is heavy ----------------

MOST_SHARE = 1024
"""A cell is heavy if it has several distinct numbers and more than one row in so many."""
PARTS = 4
"""A heavy cell is divided into about so many times as many parts as it would need if its rows were evenly spread."""
PASSES = 4
"""Largest number of passes over the rows: the first counts the cells of the root, each further one divides heavy cells."""


def refined(tree: cut_points.CellTree, counts: cut_points.CellCounts) -> cut_points.CellTree | None:
    """The tree whose heavy cells are divided, from their rows, smallest and largest numbers; None if no cell is heavy."""
    total = int(counts.rows.sum())
    heavy = (counts.rows * MOST_SHARE > total) & (counts.low < counts.high)
    if not heavy.any():
        return None
    base = cut_points.ordered_bits(counts.low[heavy])
    span = cut_points.ordered_bits(counts.high[heavy]) - base
    parts = -(-PARTS * MOST_SHARE * counts.rows[heavy] // total)
    shift = np.maximum(_bit_length(span) - _bit_length(parts - 1), 0)
    sizes = (span >> shift.astype(np.uint64)).astype(np.int64) + 1
    child = np.append(tree.child, np.full(sizes.sum(), -1, dtype=np.int32))
    child[counts.entries[heavy]] = np.arange(len(tree.base), len(tree.base) + len(base))
    first = np.append(tree.first, tree.first[-1] + np.cumsum(sizes))
    return cut_points.CellTree(np.append(tree.base, base), np.append(tree.shift, shift), first, child)


def _bit_length(numbers: Array) -> Array:
    """Number of bits of integers from 0 on, as `int.bit_length`."""
    words = numbers.astype(np.uint64)
    high, low = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    lengths = [np.frexp(half.astype(np.float64))[1] for half in (high, low)]
    return np.asarray(np.where(high > 0, 32 + lengths[0], lengths[1]).astype(np.int64))


def divided(x: Array, weight: Array) -> tuple[cut_points.CellTree, cut_points.CellCounts]:
    """The cells of numbers in memory, (n,), with row weights, and the tree that tells them apart."""
    tree = cut_points.root_tree()
    for _ in range(PASSES - 1):
        counts = cut_points.cell_counts(x, weight, tree)
        further = refined(tree, counts)
        if further is None:
            return tree, counts
        tree = further
    return tree, cut_points.cell_counts(x, weight, tree)


# -- The summary of a table in memory: columns are summarized when an encoder asks for them ------------------

KEPT_ROWS = 2**14
"""Rows of a table up to which the positions of values among the distinct ones are kept, not found again."""


def summary_of(table: Table, weight: Array, codes: Array | None = None) -> summaries.TableSummary:
    """The summary of a table in memory; models that are fitted to one table with a cache share it."""
    summary = table.cached("summary", weight, lambda: MemorySummary(table, weight, codes))
    return summary if summary.codes is codes else MemorySummary(table, weight, codes)


@dataclass(frozen=True, eq=False)
class MemorySummary(summaries.TableSummary):
    """The summary of a table in memory; ``head`` is the table itself."""

    @cached_property
    def sample(self) -> summaries.Sample:
        return summaries.sample_of(self.head, self.weight, self.codes)

    def column(self, j: int) -> summaries.ColumnSummary:
        return self.cached(("column", j), lambda: self._summary(j))

    def missing_rows(self, j: int) -> int:
        return self._missing(j)[0]

    def missing_weight(self, j: int) -> float:
        return self._missing(j)[1]

    def levels(self, indices: Sequence[int], *, weights_needed: bool) -> list[tuple[Array, Array]]:
        of_integers = _of_integers(self.head, indices, self._weights if weights_needed else None)
        return of_integers or _of_any_values(self.head, indices, self._weights)

    def moments(self, indices: Sequence[int]) -> summaries.Moments:
        columns, n = numeric_matrix(self.head, indices), len(self.weight)
        missing = np.isnan(columns) if np.isnan(self.head.value_range(columns)[0]) else None
        if missing is not None:
            refuse_all_missing(self.head, indices, missing)
        chosen = summaries.sample_positions(n) if n > summaries.SAMPLE_ROWS else None
        rows = columns[center_rows(n) if chosen is None else chosen[center_rows(len(chosen))]]
        center = column_centers(rows, lambda places: np.nanmean(columns[:, places], axis=0, dtype=np.float64))
        if missing is None and (self.weight == self.weight[:1]).all():
            return summaries.Moments(center, moments.variances(columns, center))
        weight, first, second = (
            sums[0] for sums in moments.power_sums(columns, center, self._weights[:, None])
        )
        mean = first / np.where(weight > 0, weight, 1.0)
        variance = np.maximum(second / np.where(weight > 0, weight, 1.0) - mean**2, 0.0)
        if missing is not None:
            is_incomplete = missing.any(axis=0)
            center[is_incomplete] = summaries.start_points(center + mean, variance)[is_incomplete]
        return summaries.Moments(center, variance)

    def check_numbers(self, indices: Sequence[int]) -> None:
        columns = numeric_matrix(self.head, indices, booleans=True)
        if not is_sparse(columns):  # a sparse table has no missing values
            refuse_all_missing(self.head, indices, np.isnan(columns))

    def contents(self, j: int) -> Array:
        return self.head.column(j)

    def blocks(self, encoder: Any, counts: Any) -> Any:
        return encoder.one_block(self.head, self.codes, self.weight, counts)

    def _missing(self, j: int) -> tuple[int, float]:
        def of_rows() -> tuple[int, float]:
            mask = self.head.missing_mask(j)
            return int(np.count_nonzero(mask)), float(self._weights @ mask)

        return (0, 0.0) if self._is_complete else self.cached(("missing", j), of_rows)

    def _known(self, j: int) -> slice | Array:
        """The rows whose value of column j is known."""
        return ~self.head.missing_mask(j) if self.missing_rows(j) else slice(None)

    def _known_numbers(self, j: int) -> Array:
        numbers = np.ascontiguousarray(self.head.column(j)[self._known(j)], dtype=np.float64)
        is_checked = self._is_complete or not len(numbers)
        if not is_checked and (numbers.min() < -LARGEST or numbers.max() > LARGEST):
            numeric_matrix(self.head, [j])  # raises ValueError
        return numbers

    def _summary(self, j: int) -> summaries.ColumnSummary:
        if not self.is_numeric(j):
            values, positions = distinct_values(self.head, j)
            return self._exact(j, values, positions[self._known(j)])
        numbers = self._known_numbers(j)
        found = cut_points.distinct_positions(numbers, summaries.MOST_DISTINCT)
        return self._divided(j, numbers) if found is None else self._exact(j, *found)

    def _exact(self, j: int, values: Array, positions: Array) -> summaries.ColumnSummary:
        """The summary of a column with a cell for each distinct value."""
        rows, size = np.bincount(positions, minlength=len(values)), len(values)
        weights: Array = rows.astype(np.float64)
        if not self._counts_rows:
            weights = np.bincount(positions, self._weights[self._known(j)], size)
        kept = positions if self.n <= KEPT_ROWS else None
        return summaries.values_summary(values, rows, weights, lambda: self._class_weights(j, size, kept))

    def _class_weights(self, j: int, size: int, positions: Array | None) -> Array:
        """Weights by class of a column with a cell for each of its distinct values, (cells, k + 1)."""
        known, columns = self._known(j), self.k + 1
        positions = self._positions(j, size) if positions is None else positions
        cells = positions * columns + self._labels[known] % columns  # -1, no label, becomes the last column
        return np.bincount(cells, self._weights[known], size * columns).reshape(size, columns)

    def _positions(self, j: int, size: int) -> Array:
        """Positions of the known values of column j among its distinct ones, of which there are ``size``."""
        if not self.is_numeric(j):
            return distinct_values(self.head, j)[1][self._known(j)]
        found = cut_points.distinct_positions(self._known_numbers(j), size)
        return np.zeros(0, dtype=np.int64) if found is None else found[1]

    def _divided(self, j: int, numbers: Array) -> summaries.ColumnSummary:
        """The summary of a column with very many distinct numbers."""
        weight = self._weights[self._known(j)]
        tree, counts = divided(numbers, weight)

        def count_classes() -> Array:
            labels = self._labels[self._known(j)]
            by_entry = cut_points.cell_weights(self._known_numbers(j), tree, labels, weight, self.k + 1)
            return by_entry[counts.entries]

        sampled = cut_points.distinct_sample(numbers, summaries.MOST_SAMPLED)
        return summaries.cells_summary(counts, sampled, count_classes)

    @cached_property
    def _is_complete(self) -> bool:
        """Whether the table is a matrix of numbers, none of them missing or too large."""
        content = self.head.content
        if isinstance(content, tuple) or content.dtype.kind not in "fiu":
            return False
        low, high = self.head.value_range(content)
        return low >= -LARGEST and high <= LARGEST  # false for NaN

    @cached_property
    def _counts_rows(self) -> bool:
        """Whether every row has weight 1."""
        return bool((self.weight == 1.0).all())

    @cached_property
    def _weights(self) -> Array:
        """Weights whose sums are the same in any order."""
        return summaries.summable(self.weight)

    @cached_property
    def _labels(self) -> Array:
        return np.full(self.n, -1) if self.codes is None else self.codes
