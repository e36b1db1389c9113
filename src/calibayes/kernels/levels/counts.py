"""Levels: weighted counts and look-up of log probabilities.

Cells of all columns lie side by side: level v of column j is cell ``offsets[j] + v``; a negative code is no level.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import by_row, floats, is_matrix, twin, whole


@lru_cache(maxsize=256)
def offsets(levels: tuple[int, ...]) -> Array:
    """First cell of each column, and the number of cells at the end, (d + 1,); not to be written to."""
    first = np.concatenate([[0], np.cumsum(levels, dtype=np.intp)]).astype(np.intp)
    first.flags.writeable = False
    return first


def cells(codes: Array, first: Array) -> Array:
    """Cell of each entry, (n, d); an entry that is no level goes to one cell behind the last."""
    local = codes.astype(np.intp, copy=False)
    return np.where((local < 0) | (local >= np.diff(first)), first[-1], local + first[:-1])


MOST_CELLS = 2**27
"""Cells of all columns that a native table can hold."""


def taken(codes: Any, first: Array, kinds: str) -> bool:
    return is_matrix(codes, kinds) and codes.shape[1] > 0 and first[-1] + len(first) < MOST_CELLS


def native_look_up(module: Any, codes: Array, table: Array, first: Array, kinds: str = "iu") -> Any:
    if not taken(codes, first, kinds) or len(table) == 0:
        return NotImplemented
    out = np.empty((len(codes), len(table)))
    module.look_up(by_row(codes), floats(table), whole(first), out)
    return out


def native_weighted_counts(module: Any, codes: Array, weights: Array, first: Array, kinds: str = "iu") -> Any:
    if not taken(codes, first, kinds) or not is_matrix(weights, "fiub"):
        return NotImplemented
    out = np.empty((weights.shape[1], int(first[-1])))
    module.weighted_counts(by_row(codes), floats(weights), whole(first), out)
    return out


@twin(native_weighted_counts)
def weighted_counts(codes: Array, weights: Array, first: Array) -> Array:
    """Sum of the weights per class and cell, (k, cells)."""
    flat = cells(codes, first).ravel()
    d = codes.shape[1]
    sums = [np.bincount(flat, np.repeat(column, d), minlength=first[-1] + 1)[:-1] for column in weights.T]
    return np.stack(sums)


def look_up_each(codes: Array, table: Array, first: Array) -> Array:
    """The table's entry of each column, (n, k, d); 0 where a code is no level."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
    return np.swapaxes(padded[:, cells(codes, first)], 0, 1)


@twin(native_look_up)
def look_up(codes: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the table's entries, (n, k), for a table of shape (k, cells)."""
    padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1).T.copy()
    rows = np.zeros((len(codes), len(table)))
    for column in cells(codes, first).T:
        rows += padded[column]
    return rows


def sums_by_column(table: Array, first: Array) -> Array:
    """Sum over the cells of each column, repeated for each of its cells, (..., cells)."""
    sums = np.add.reduceat(table, first[:-1], axis=-1)
    return np.repeat(sums, np.diff(first), axis=-1)


def draw(probability: Array, rng: np.random.Generator) -> Array:
    """One level for each row of probabilities."""
    steps = np.cumsum(probability, axis=1)
    uniform = rng.random(len(probability)) * steps[:, -1]
    return np.asarray(np.sum(uniform[:, None] >= steps[:, :-1], axis=1))


def moved(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """A table (k, levels, ...) whose levels have become others along each axis; a negative code is no level any more."""
    kept = [np.flatnonzero(code >= 0) for code in codes]
    grown = np.zeros((len(table), *levels))
    every = np.arange(len(table))
    places = np.ix_(every, *(code[stays] for code, stays in zip(codes, kept, strict=True)))
    grown[places] = table[np.ix_(every, *kept)]
    return grown


def recoded(table: Array, codes: Sequence[Array], levels: Sequence[int]) -> Array:
    """Counts (k, cells) where level i of column j has become level ``codes[j][i]`` of ``levels[j]``, or none."""
    old = np.split(table, np.cumsum([len(code) for code in codes])[:-1], axis=1)
    parts = [moved(own, (code,), (size,)) for own, code, size in zip(old, codes, levels, strict=True)]
    return np.concatenate(parts, axis=1)
