"""The distinct values of columns in memory, and the total weight of the rows that have each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import codes_and_maxima, offsets, weighted_counts
from calibayes.kernels.numbers.sparse import is_sparse
from calibayes.kernels.threads import map_row_ranges
from calibayes.tables.distinct import LARGEST_COUNTED, distinct_values
from calibayes.tables.table import Table, refuse_all_missing

ROWS_AT_A_TIME = 2048
"""Rows that are counted before checking whether all levels have occurred."""
MOST_CELLS = LARGEST_COUNTED * 64
"""Levels of all columns together up to which integers are counted in one array."""


def level_weights(
    table: Table, indices: Sequence[int], weight: Array, *, weights_needed: bool
) -> list[tuple[Array, Array]]:
    """For each column its distinct values, ascending, and their total weights.

    If the weights are not needed, the second array may have any positive numbers instead: for integers that is faster.
    Raises ValueError if a column is all missing.
    """
    of_integers = _of_integers(table, indices, weight if weights_needed else None)
    return of_integers or _of_any_values(table, indices, weight)


def integer_matrix(table: Table, indices: Sequence[int]) -> Array | None:
    """The columns as one integer array (n, d), or None if the table is not stored as one."""
    if isinstance(table.content, tuple) or is_sparse(table.content) or table.content.dtype.kind not in "iu":
        return None
    return table.matrix(indices)


def _of_integers(
    table: Table, indices: Sequence[int], weight: Array | None
) -> list[tuple[Array, Array]] | None:
    """`level_weights` of small non-negative integers, by counting; None if the columns are not that."""
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

    return np.sum(map_row_ranges(of_rows, len(codes), codes[:1].nbytes), axis=0)


def _of_any_values(table: Table, indices: Sequence[int], weight: Array) -> list[tuple[Array, Array]]:
    """`level_weights` of values of any type, by sorting."""
    missing = np.stack([table.missing_mask(j) for j in indices], axis=1)
    refuse_all_missing(table, indices, missing)
    columns = [distinct_values(table, j) for j in indices]
    return [(values, np.bincount(codes, weight, len(values) + 1)[:-1]) for values, codes in columns]
