"""Exact leave-one-out probabilities of counts: a row subtracted from the counts of its class."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from calibayes.core.abilities import LeftOut
from calibayes.core.protocols import Array
from calibayes.families.counts.pseudo_counts import LEAST_SHARE, floored
from calibayes.kernels.numbers.sparse import is_sparse

MOST_WEIGHTS = 64
"""Number of distinct row weights up to which a table is made for each of them."""


def log_share(count: Array, total: Array, empty: Array, pseudo: Array, weight: Array | float) -> Array:
    """log probability of a cell without a row of this weight in it, from counts that include pseudo-counts.

    ``total`` is that of the cell's column and ``empty`` the number of its other cells with a count of 0, which are raised to
    the least share, as `floored` does.
    """
    left = np.maximum(total - weight, 0.0)
    cell = floored(np.maximum(count - weight, 0.0), left, pseudo)
    others = np.maximum(total - count, 0.0) + LEAST_SHARE * empty * np.where(left > 0, left, 1.0)
    return np.asarray(np.log(cell) - np.log(cell + others))


def by_weight(left_out: LeftOut) -> Iterator[tuple[float, Array]] | None:
    """Each distinct weight and its rows; None if they are too many."""
    first = left_out.weight[:1]
    if (left_out.weight == first).all():
        return iter([(float(first[0]), np.arange(len(left_out.weight)))])
    weights = np.unique(left_out.weight)
    if len(weights) > MOST_WEIGHTS:
        return None
    return ((float(weight), np.flatnonzero(left_out.weight == weight)) for weight in weights)


def replace_own_class(
    density: Array, columns: Array, left_out: LeftOut, scores: Callable[[Array, float], Array]
) -> Array | None:
    """Log densities (n, k) with those of each row's own class replaced by scores without the row.

    ``scores`` are (n, k) sums of a table's entries, from rows and their weight. None if there are too many weights.
    """
    groups = by_weight(left_out)
    if groups is None:
        return None
    for weight, rows in groups:
        part = columns if len(rows) == len(density) else columns[rows]
        density[rows, left_out.codes[rows]] = scores(part, weight)[np.arange(len(rows)), left_out.codes[rows]]
    return density


def nonzero_cells(columns: Array) -> tuple[Array, Array, Array]:
    """Row, column and value of each cell that is not 0, of a dense or sparse table."""
    if is_sparse(columns):
        rows = np.repeat(np.arange(columns.shape[0]), np.diff(columns.indptr))
        return rows, np.asarray(columns.indices), np.asarray(columns.data, dtype=np.float64)
    rows, cells = np.nonzero(columns)
    return rows, cells, np.asarray(columns[rows, cells], dtype=np.float64)
