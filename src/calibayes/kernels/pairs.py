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


class Pairs(NamedTuple):
    """Pairs of columns that are counted, in the order of their columns."""

    left: Array
    right: Array
    first: Array
    """First cell of each pair's table, and the number of cells at the end, (pairs + 1,)."""


class Dependence(NamedTuple):
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
    columns = np.ascontiguousarray(codes.T)
    counted = [np.flatnonzero(weight) for weight in weights.T]
    sums = [
        _of_class(columns[:, rows], w[rows], levels, pairs)
        for w, rows in zip(weights.T, counted, strict=True)
    ]
    return np.stack(sums)


def _of_class(columns: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """The counts of one class's rows, (cells,): all partners of a column at once."""
    sizes, starts = np.asarray(levels), np.searchsorted(pairs.left, np.arange(len(levels) + 1))
    tables: list[Array] = [np.zeros(0)]
    for column, (start, stop) in enumerate(pairwise(starts)):
        if start < stop:
            partners = pairs.right[start:stop]
            shift, width = (
                pairs.first[start:stop, None] - pairs.first[start],
                pairs.first[stop] - pairs.first[start],
            )
            own, other = columns[column], columns[partners]
            cells = own * sizes[partners, None] + other + shift
            cells = np.where((own < 0) | (other < 0), width, cells)
            tables.append(np.bincount(cells.ravel(), np.tile(weight, len(partners)), width + 1)[:-1])
    return np.concatenate(tables)


def table_of(tables: Array, pairs: Pairs, levels: tuple[int, ...], parent: int, child: int) -> Array:
    """The table of two columns, (k, levels of the parent, levels of the child)."""
    left, right = min(parent, child), max(parent, child)
    [[pair]] = np.nonzero((pairs.left == left) & (pairs.right == right))
    flat = tables[:, pairs.first[pair] : pairs.first[pair + 1]]
    table = flat.reshape(-1, levels[left], levels[right])
    return table if parent == left else np.swapaxes(table, 1, 2)


def dependence(tables: Array, pairs: Pairs, levels: tuple[int, ...]) -> Dependence:
    """How much the columns of each pair tell about each other. Tables of one shape are taken together."""
    sizes = np.asarray(levels, dtype=np.intp)
    shapes = np.stack([sizes[pairs.left], sizes[pairs.right]], axis=1)
    found = Dependence(*(np.zeros((len(tables), len(pairs.left))) for _ in Dependence._fields))
    kinds, kind = np.unique(shapes, axis=0, return_inverse=True)
    for number, (rows, columns) in enumerate(kinds):
        mine = np.flatnonzero(kind.ravel() == number)
        cells = pairs.first[mine, None] + np.arange(rows * columns)
        counts = np.maximum(tables[:, cells], 0.0).reshape(len(tables), len(mine), rows, columns)
        for whole, part in zip(found, _of_tables(counts), strict=True):
            whole[:, mine] = part
    return found


def _of_tables(counts: Array) -> Dependence:
    """The dependence in tables of one shape, (k, pairs, levels, levels)."""
    rows, columns, total = counts.sum(axis=3), counts.sum(axis=2), counts.sum(axis=(2, 3))
    apart = xlogy(rows, rows).sum(axis=2) + xlogy(columns, columns).sum(axis=2) - xlogy(total, total)
    gain = xlogy(counts, counts).sum(axis=(2, 3)) - apart
    some = [np.maximum((margin > 0).sum(axis=2) - 1, 0) for margin in (rows, columns)]
    return Dependence(np.maximum(gain, 0.0), total, some[0] * some[1])
