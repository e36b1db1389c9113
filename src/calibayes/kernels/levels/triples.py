"""Triples of columns of levels: weighted contingency tables of all triples.

The tables lie side by side: levels a, b and c of the columns h < i < j share cell
``first[triple] + (a * levels[i] + b) * levels[j] + c``. A row with one of the three missing is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import offsets, weighted_counts


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
