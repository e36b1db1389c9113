"""Columns of levels: weighted counts and sums of table entries.

Tables hold the cells of all columns side by side: level v of column j is cell ``first[j] + v`` where ``first`` is
`offsets` of the numbers of levels. A code that is negative, or not below the number of levels, has no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin

MOST_CELLS = 2**27
"""Largest number of cells of all columns that native code supports."""


@lru_cache(maxsize=256)
def offsets(levels: tuple[int, ...]) -> Array:
    """First cell of each column and the total number of cells at the end, (d + 1,); read-only because it is cached."""
    first = np.concatenate([[0], np.cumsum(levels, dtype=np.intp)]).astype(np.intp)
    first.flags.writeable = False
    return first


def cells(codes: Array, first: Array) -> Array:
    """Cell of each code, (n, d); the total number of cells for a code that is no level."""
    local = codes.astype(np.intp, copy=False)
    return np.where((local < 0) | (local >= np.diff(first)), first[-1], local + first[:-1])


def native_supports(codes: Any, first: Array, kinds: str) -> bool:
    """Whether native code supports these codes (n, d), of the given kinds of type, and this number of cells."""
    return is_matrix(codes, kinds) and codes.shape[1] > 0 and first[-1] + len(first) < MOST_CELLS


def native_look_up(module: Any, codes: Array, table: Array, first: Array, kinds: str = "iu") -> Any:
    if not native_supports(codes, first, kinds) or len(table) == 0:
        return NotImplemented
    out = np.empty((len(codes), len(table)))
    module.look_up(row_major(codes), as_float64(table), as_int64(first), out)
    return out


def native_weighted_counts(module: Any, codes: Array, weights: Array, first: Array, kinds: str = "iu") -> Any:
    if not native_supports(codes, first, kinds) or not is_matrix(weights, "fiub"):
        return NotImplemented
    out = np.empty((weights.shape[1], int(first[-1])))
    module.weighted_counts(row_major(codes), as_float64(weights), as_int64(first), out)
    return out


@twin(native_weighted_counts)
def weighted_counts(codes: Array, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), for codes (n, d)."""
    flat = cells(codes, first).ravel()
    d = codes.shape[1]
    sums = [np.bincount(flat, np.repeat(column, d), minlength=first[-1] + 1)[:-1] for column in weights.T]
    return np.stack(sums)


def look_up_each(codes: Array, table: Array, first: Array) -> Array:
    """Entry of a table (k, cells) for each code (n, d), (n, k, d); 0 where a code is no level."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
    return np.swapaxes(padded[:, cells(codes, first)], 0, 1)


@twin(native_look_up)
def look_up(codes: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the entries of a table (k, cells) for codes (n, d), (n, k)."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1).T.copy()
    sums = np.zeros((len(codes), len(table)))
    for column in cells(codes, first).T:
        sums += padded[column]
    return sums


def sums_by_column(table: Array, first: Array) -> Array:
    """Sum over the cells of each column, repeated for each of its cells, (..., cells)."""
    sums = np.add.reduceat(table, first[:-1], axis=-1)
    return np.repeat(sums, np.diff(first), axis=-1)


def draw(probability: Array, rng: np.random.Generator) -> Array:
    """One level per row, (n,), drawn from unnormalized probabilities (n, levels)."""
    cumulative = np.cumsum(probability, axis=1)
    uniform = rng.random(len(probability)) * cumulative[:, -1]
    return np.asarray(np.sum(uniform[:, None] >= cumulative[:, :-1], axis=1))


def recode_table(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """A table (k, old levels, ...) with renumbered levels, (k, *levels), 0 for new levels.

    Along axis i, old level v becomes level ``codes[i][v]``, or is dropped if that is negative.
    """
    remaining = [np.flatnonzero(code >= 0) for code in codes]
    result = np.zeros((len(table), *levels))
    classes = np.arange(len(table))
    targets = np.ix_(classes, *(code[old] for code, old in zip(codes, remaining, strict=True)))
    result[targets] = table[np.ix_(classes, *remaining)]
    return result


def recode_counts(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """Counts (k, old cells) of columns side by side with renumbered levels, (k, cells).

    Level v of column j becomes level ``codes[j][v]`` of ``levels[j]``, or is dropped if that is negative.
    """
    tables = np.split(table, np.cumsum([len(code) for code in codes])[:-1], axis=1)
    parts = [
        recode_table(column, (code,), (size,))
        for column, code, size in zip(tables, codes, levels, strict=True)
    ]
    return np.concatenate(parts, axis=1)
