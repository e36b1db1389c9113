"""Pairs of columns of levels: weighted contingency tables of all pairs, and their mutual information.

The tables of all pairs lie side by side: level a of column i and level b of column j, i < j, share cell
``first[pair] + a * levels[j] + b``. A negative code is a missing value; a row with one of the two missing is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, as_type, is_matrix, twin
from calibayes.kernels.level_counts import cells, offsets, weighted_counts

FEW_LEVELS = 6
"""Mean number of levels per column up to which matrix products are faster than `numpy.bincount`."""
MOST_CELLS = 4096
"""Total number of levels above which the matrix product would be too large."""
CODE_BYTES = 4
"""Largest size of a code that native code reads."""
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


def native_weighted_pairs(
    module: Any, codes: Array, weights: Array, levels: tuple[int, ...], pairs: Pairs
) -> Any:
    are_codes = is_matrix(codes, "i") and codes.itemsize <= CODE_BYTES
    if not (are_codes and is_matrix(weights, "fiub") and weights.shape[1]):
        return NotImplemented
    sums = np.empty((weights.shape[1], int(pairs.first[-1])))
    module.weighted_pairs(as_type(codes.T, np.int32), as_float64(weights.T), *_as_arrays(levels, pairs), sums)
    return sums


def _as_arrays(levels: tuple[int, ...], pairs: Pairs) -> tuple[Array, Array, Array]:
    """Numbers of levels (d,), pairs (2, p) and first cells (p + 1,), as native code reads them."""
    both = np.stack([pairs.left, pairs.right])
    return np.array(levels, dtype=np.int64), as_int64(both), as_int64(pairs.first)


@twin(native_weighted_pairs)
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
    of_column = [slice(*ends) for ends in pairwise(first)]
    both = zip(pairs.left, pairs.right, strict=True)
    tables = [products[of_column[i], of_column[j]].ravel() for i, j in both]
    return np.concatenate([np.zeros(0), *tables])


def count_by_bins(codes: Array, weight: Array, levels: tuple[int, ...], pairs: Pairs) -> Array:
    """The same by `numpy.bincount`, all partners of a column at once: the cost does not depend on the levels."""
    sizes, starts = np.asarray(levels), np.searchsorted(pairs.left, np.arange(len(levels) + 1))
    columns = np.ascontiguousarray(codes.T)
    tables: list[Array] = [np.zeros(0)]
    for j, (start, stop) in enumerate(pairwise(starts)):
        if start < stop:
            partners, column = pairs.right[start:stop], columns[j]
            shift = pairs.first[start:stop] - pairs.first[start]
            width = pairs.first[stop] - pairs.first[start]
            pair_cells = column * sizes[partners, None] + columns[partners] + shift[:, None]
            pair_cells = np.where((column < 0) | (columns[partners] < 0), width, pair_cells)
            tables.append(np.bincount(pair_cells.ravel(), np.tile(weight, len(partners)), width + 1)[:-1])
    return np.concatenate(tables)


def pair_table(tables: Array, pairs: Pairs, levels: tuple[int, ...], parent: int, child: int) -> Array:
    """The table of two columns, (k, levels of the parent, levels of the child), from all tables (k, cells)."""
    left, right = min(parent, child), max(parent, child)
    [[pair]] = np.nonzero((pairs.left == left) & (pairs.right == right))
    table = tables[:, pairs.first[pair] : pairs.first[pair + 1]].reshape(-1, levels[left], levels[right])
    return table if parent == left else np.swapaxes(table, 1, 2)


def native_pair_information(module: Any, tables: Array, pairs: Pairs, levels: tuple[int, ...]) -> Any:
    if not is_matrix(tables, "f"):
        return NotImplemented
    result = PairInformation(*np.empty((3, len(tables), len(pairs.left))))
    module.pair_information(as_float64(tables), *_as_arrays(levels, pairs), *result)
    return result


@twin(native_pair_information)
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


# -- Triples of columns of levels: weighted contingency tables of all triples --------------------------------
#
# The tables lie side by side: levels a, b and c of the columns h < i < j share cell
# ``first[triple] + (a * levels[i] + b) * levels[j] + c``. A row with one of the three missing is not counted.


class Triples(NamedTuple):
    """The counted triples of columns, in lexicographic order."""

    columns: Array
    """The columns of each triple, ascending, (triples, 3)."""
    first: Array
    """First cell of the table of each triple and the total number of cells at the end, (triples + 1,)."""
    positions: Mapping[tuple[int, ...], int]
    """Columns of a triple, ascending -> its position."""

    def position(self, columns: tuple[int, ...]) -> int:
        """The position of the triple of these columns, in any order; -1 if it is not counted."""
        return self.positions.get(tuple(sorted(columns)), -1)


@lru_cache(maxsize=64)
def column_triples(levels: tuple[int, ...], most: int) -> Triples:
    """All triples of columns whose table has at most ``most`` cells."""
    smallest = prod(sorted(levels)[:2])
    usable = [j for j, size in enumerate(levels) if size * smallest <= most]  # so that few triples are listed
    columns = np.array(list(combinations(usable, 3)), dtype=np.intp).reshape(-1, 3)
    sizes = np.asarray(levels, dtype=np.float64)[columns].prod(axis=1)
    small = sizes <= most
    first = np.concatenate([[0], np.cumsum(sizes[small].astype(np.intp))]).astype(np.intp)
    counted = columns[small]
    return Triples(counted, first, {tuple(triple): number for number, triple in enumerate(counted.tolist())})


def weighted_triples(codes: Array, weights: Array, levels: tuple[int, ...], triples: Triples) -> Array:
    """Sum of the weights (n, k) per class and cell of each triple, (k, cells), for codes (n, d)."""
    sums = np.empty((weights.shape[1], int(triples.first[-1])))
    columns = codes.astype(np.int32)
    numbers = triples.columns[:, 0] * len(levels) + triples.columns[:, 1]
    for start, stop in pairwise([*np.flatnonzero(np.diff(numbers, prepend=-1)), len(numbers)]):
        left, middle = triples.columns[start, :2]
        thirds = triples.columns[start:stop, 2]
        sizes = tuple(levels[left] * levels[middle] * levels[third] for third in thirds)
        triple_codes = _triple_codes(columns, levels, left, middle, thirds)
        cells = slice(triples.first[start], triples.first[stop])
        sums[:, cells] = weighted_counts(triple_codes, weights, offsets(sizes))
    return sums


def _triple_codes(codes: Array, levels: tuple[int, ...], left: int, middle: int, thirds: Array) -> Array:
    """The cell of each row in the tables of two columns with each of the third ones, (n, thirds); -1 if missing."""
    pair, others = codes[:, left] * levels[middle] + codes[:, middle], codes[:, thirds]
    cells = pair[:, None] * np.array(levels, dtype=np.int32)[thirds] + others
    is_missing = ((codes[:, left] < 0) | (codes[:, middle] < 0))[:, None] | (others < 0)
    return np.where(is_missing, -1, cells)


def triple_table(tables: Array, triples: Triples, levels: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    """The table of three columns, (k, levels of each in the given order), from all tables (k, cells)."""
    number, ascending = triples.position(columns), sorted(columns)
    flat = tables[:, triples.first[number] : triples.first[number + 1]]
    table = flat.reshape(-1, *(levels[j] for j in ascending))
    return table.transpose(0, *(1 + ascending.index(j) for j in columns))
