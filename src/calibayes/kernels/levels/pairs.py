"""Pairs of columns of levels: weighted contingency tables of all pairs, and their mutual information.

The tables of all pairs lie side by side: level a of column i and level b of column j, i < j, share cell
``first[pair] + a * levels[j] + b``. A negative code is a missing value; a row with one of the two missing is not counted.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import cells, offsets

FEW_LEVELS = 6
"""Mean number of levels per column up to which matrix products are faster than `numpy.bincount`."""
MOST_CELLS = 4096
"""Total number of levels above which the matrix product would be too large."""
ROWS = 2048
"""Rows whose indicators are in memory at a time."""
TABLES = 2**14
"""Tables of pairs whose information is computed at a time."""


class Pairs(NamedTuple):
    """The counted pairs of columns, in lexicographic order, (pairs,) each."""

    left: Array
    right: Array
    first: Array
    """First cell of the table of each pair and the total number of cells at the end, (pairs + 1,)."""


class PairInformation(NamedTuple):
    """Dependence of the columns of each pair within each class, (k, pairs) each."""

    gain: Array
    """Gain in log likelihood of a joint over an independent model: mutual information in nats times weight."""
    weight: Array
    """Weight of the rows in which both columns are known."""
    freedom: Array
    """Degrees of freedom of a test of independence, over the levels that occur."""


@lru_cache(maxsize=64)
def column_pairs(levels: tuple[int, ...], most: int) -> Pairs:
    """All pairs of columns whose table has at most ``most`` cells."""
    left, right = np.triu_indices(len(levels), 1)
    sizes = np.asarray(levels, dtype=np.intp)[left] * np.asarray(levels, dtype=np.intp)[right]
    small = sizes <= most
    return Pairs(left[small], right[small], np.concatenate([[0], np.cumsum(sizes[small])]).astype(np.intp))


def weighted_pairs(codes: Array, weights: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """Sum of the weights (n, k) per class and cell of each pair, (k, cells), for codes (n, d)."""
    few = sum(levels) <= min(FEW_LEVELS * len(levels), MOST_CELLS)
    count = count_by_products if few else count_by_bins
    sums = np.empty((weights.shape[1], int(pairs.first[-1])))
    for weight, total in zip(weights.T, sums, strict=True):
        rows = np.flatnonzero(weight)
        total[:] = count(codes[rows], weight[rows], levels, pairs)
    return sums


def count_by_products(codes: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """Counts of one class, (cells,), by products of indicator matrices: fast for few levels."""
    first = offsets(levels)
    products = np.zeros((first[-1], first[-1]))
    for start in range(0, len(codes), ROWS):
        rows = slice(start, start + ROWS)
        row_cells = cells(codes[rows], first)
        indicators = np.zeros((len(row_cells), first[-1] + 1))
        indicators[np.arange(len(row_cells))[:, None], row_cells] = 1.0
        indicators = indicators[:, :-1]
        products += indicators.T @ (indicators * weight[rows, None])
    starts, stops = first[:-1], first[1:]
    tables = [
        products[starts[i] : stops[i], starts[j] : stops[j]].ravel()
        for i, j in zip(pairs.left, pairs.right, strict=True)
    ]
    return np.concatenate([np.zeros(0), *tables])


def count_by_bins(codes: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """The same by `numpy.bincount`, all partners of a column at once: the cost does not depend on the levels."""
    sizes, starts = np.asarray(levels), np.searchsorted(pairs.left, np.arange(len(levels) + 1))
    columns = np.ascontiguousarray(codes.T)
    tables: list[Array] = [np.zeros(0)]
    for j, (start, stop) in enumerate(pairwise(starts)):
        if start < stop:
            partners, column = pairs.right[start:stop], columns[j]
            shift, width = (
                pairs.first[start:stop] - pairs.first[start],
                pairs.first[stop] - pairs.first[start],
            )
            pair_cells = column * sizes[partners, None] + columns[partners] + shift[:, None]
            pair_cells = np.where((column < 0) | (columns[partners] < 0), width, pair_cells)
            tables.append(np.bincount(pair_cells.ravel(), np.tile(weight, len(partners)), width + 1)[:-1])
    return np.concatenate(tables)


def pair_table(tables: Array, pairs: Pairs, levels: tuple[int, ...], parent: int, child: int) -> Array:
    """The table of two columns, (k, levels of the parent, levels of the child), from all tables (k, cells)."""
    left, right = min(parent, child), max(parent, child)
    [[pair]] = np.nonzero((pairs.left == left) & (pairs.right == right))
    flat = tables[:, pairs.first[pair] : pairs.first[pair + 1]]
    table = flat.reshape(-1, levels[left], levels[right])
    return table if parent == left else np.swapaxes(table, 1, 2)


def pair_information(tables: Array, pairs: Pairs, levels: tuple[int, ...]) -> PairInformation:
    """Dependence of the columns of each pair from all tables (k, cells); tables of one shape are computed together."""
    sizes = np.asarray(levels, dtype=np.intp)
    widest = int(sizes.max(initial=0)) + 1
    result = PairInformation(*(np.zeros((len(tables), len(pairs.left))) for _ in PairInformation._fields))
    shape_number = sizes[pairs.left] * widest + sizes[pairs.right]
    for number in np.unique(shape_number):
        rows, columns = divmod(int(number), widest)
        same_shape = np.flatnonzero(shape_number == number)
        for start in range(0, len(same_shape), TABLES):
            some = same_shape[start : start + TABLES]
            table_cells = pairs.first[some, None] + np.arange(rows * columns)
            counts = np.maximum(tables[:, table_cells], 0.0).reshape(len(tables), len(some), rows, columns)
            for target, values in zip(result, table_information(counts), strict=True):
                target[:, some] = values
    return result


def table_information(counts: Array) -> PairInformation:
    """The dependence in tables of one shape, (k, pairs, levels, levels)."""
    rows, columns, total = counts.sum(axis=3), counts.sum(axis=2), counts.sum(axis=(2, 3))
    independent = xlogy(rows, rows).sum(axis=2) + xlogy(columns, columns).sum(axis=2) - xlogy(total, total)
    gain = xlogy(counts, counts).sum(axis=(2, 3)) - independent
    freedoms = [np.maximum((margin > 0).sum(axis=2) - 1, 0) for margin in (rows, columns)]
    return PairInformation(np.maximum(gain, 0.0), total, freedoms[0] * freedoms[1])
