"""Pairs of columns of levels: weighted counts of all pairs, and how much one column of a pair tells about the other.

The tables of pairs lie side by side: where columns i < j have levels a and b, they share cell
``first[pair] + a * levels[j] + b``. A negative code is no level, and a row that lacks one of the two is not counted.
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
"""Levels a column, on average, up to which products of matrices count faster than a pass over all pairs of cells."""
MOST_CELLS = 4096
"""Cells of all columns beyond which the product would be too large a matrix."""
ROWS = 2048
"""Rows whose indicators are held at once."""


class Pairs(NamedTuple):
    """Pairs of columns that are counted, in the order of their columns."""

    left: Array
    right: Array
    first: Array
    """First cell of each pair's table, and the number of cells at the end, (pairs + 1,)."""


class PairInformation(NamedTuple):
    """What the tables of pairs say, (k, pairs) each."""

    gain: Array
    """Log likelihood that the rows gain when the two columns are joined: mutual information times weight."""
    weight: Array
    """Weight of the rows in which both are known."""
    freedom: Array
    """Degrees of freedom of a test of independence, over the levels that occur."""


@lru_cache(maxsize=64)
def pairs_of(levels: tuple[int, ...], most: int) -> Pairs:
    """All pairs whose table has no more than ``most`` cells."""
    left, right = np.triu_indices(len(levels), 1)
    sizes = np.asarray(levels, dtype=np.intp)[left] * np.asarray(levels, dtype=np.intp)[right]
    small = sizes <= most
    return Pairs(left[small], right[small], np.concatenate([[0], np.cumsum(sizes[small])]).astype(np.intp))


def weighted_pairs(codes: Array, weights: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """Sum of the weights per class and cell of each pair, (k, cells)."""
    few = sum(levels) <= min(FEW_LEVELS * len(levels), MOST_CELLS)
    count = by_products if few else by_counting
    sums = []
    for weight in weights.T:
        rows = np.flatnonzero(weight)
        sums.append(count(codes[rows], weight[rows], levels, pairs))
    return np.stack(sums)


def by_products(codes: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """The counts of one class's rows, (cells,), as a product of indicators of levels: quick where levels are few."""
    first = offsets(levels)
    together = np.zeros((first[-1], first[-1]))
    for start in range(0, len(codes), ROWS):
        rows = slice(start, start + ROWS)
        places = cells(codes[rows], first)
        there = np.zeros((len(places), first[-1] + 1))
        there[np.arange(len(places))[:, None], places] = 1.0
        there = there[:, :-1]
        together += there.T @ (there * weight[rows, None])
    starts, stops = first[:-1], first[1:]
    tables = [
        together[starts[i] : stops[i], starts[j] : stops[j]].ravel()
        for i, j in zip(pairs.left, pairs.right, strict=True)
    ]
    return np.concatenate([np.zeros(0), *tables])


def by_counting(codes: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """The same, cell by cell, all partners of a column at once: its cost does not depend on the levels."""
    sizes, starts = np.asarray(levels), np.searchsorted(pairs.left, np.arange(len(levels) + 1))
    columns = np.ascontiguousarray(codes.T)
    tables: list[Array] = [np.zeros(0)]
    for column, (start, stop) in enumerate(pairwise(starts)):
        if start < stop:
            partners, own = pairs.right[start:stop], columns[column]
            shift, width = (
                pairs.first[start:stop] - pairs.first[start],
                pairs.first[stop] - pairs.first[start],
            )
            places = own * sizes[partners, None] + columns[partners] + shift[:, None]
            places = np.where((own < 0) | (columns[partners] < 0), width, places)
            tables.append(np.bincount(places.ravel(), np.tile(weight, len(partners)), width + 1)[:-1])
    return np.concatenate(tables)


def table_of(tables: Array, pairs: Pairs, levels: tuple[int, ...], parent: int, child: int) -> Array:
    """The table of two columns, (k, levels of the parent, levels of the child)."""
    left, right = min(parent, child), max(parent, child)
    [[pair]] = np.nonzero((pairs.left == left) & (pairs.right == right))
    flat = tables[:, pairs.first[pair] : pairs.first[pair + 1]]
    table = flat.reshape(-1, levels[left], levels[right])
    return table if parent == left else np.swapaxes(table, 1, 2)


def dependence(tables: Array, pairs: Pairs, levels: tuple[int, ...]) -> PairInformation:
    """How much the columns of each pair tell about each other. Tables of one shape are taken together."""
    sizes = np.asarray(levels, dtype=np.intp)
    shapes = np.stack([sizes[pairs.left], sizes[pairs.right]], axis=1)
    found = PairInformation(*(np.zeros((len(tables), len(pairs.left))) for _ in PairInformation._fields))
    kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
    for number, (rows, columns) in enumerate(kinds):
        mine = np.flatnonzero(kind.ravel() == number)
        cells = pairs.first[mine, None] + np.arange(rows * columns)
        counts = np.maximum(tables[:, cells], 0.0).reshape(len(tables), len(mine), rows, columns)
        for whole, part in zip(found, _of_tables(counts), strict=True):
            whole[:, mine] = part
    return found


def _of_tables(counts: Array) -> PairInformation:
    """The dependence in tables of one shape, (k, pairs, levels, levels)."""
    rows, columns, total = counts.sum(axis=3), counts.sum(axis=2), counts.sum(axis=(2, 3))
    apart = xlogy(rows, rows).sum(axis=2) + xlogy(columns, columns).sum(axis=2) - xlogy(total, total)
    gain = xlogy(counts, counts).sum(axis=(2, 3)) - apart
    some = [np.maximum((margin > 0).sum(axis=2) - 1, 0) for margin in (rows, columns)]
    return PairInformation(np.maximum(gain, 0.0), total, some[0] * some[1])
