"""Hashes of the content of rows: to recognize equal rows, and to put rows into an order that depends on nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.table import Table, distinct_values

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)
ROUNDS = 2
"""How often columns are told apart by the rows, and rows by the columns, in `order_hashes`."""


def mixed(words: Array) -> Array:
    """Each word multiplied and shifted, so that close words become unrelated."""
    words = words * MULTIPLIER
    return np.asarray((words ^ (words >> SHIFT)) * MULTIPLIER)


def content_hashes(table: Table, seed: int) -> Array:
    """A hash of the content of each row, (n,): equal rows have equal hashes. Identifiers do not count."""
    hashes = np.full(table.n, np.uint64(seed) + MULTIPLIER)
    for j in table.used:
        hashes = mixed(hashes ^ _words(table, j))
    return hashes


def _words(table: Table, j: int) -> Array:
    """Cells as words: the bits of numbers, the position among the distinct values of everything else."""
    if table.is_numeric(j):
        column = table.column(j).astype(np.float64)
        same = np.where(np.isnan(column), np.nan, column) + 0.0  # one NaN, one zero
        return mixed(np.ascontiguousarray(same).view(np.uint64))
    return mixed(distinct_values(table, j)[1].astype(np.uint64))


def table_order_hashes(table: Table, positions: Array, codes: Array, counts: Array, seed: int) -> Array:
    """`order_hashes` of the rows of a table at ``positions``."""
    used = table.used
    return order_hashes(lambda j: _words(table, used[j])[positions], len(used), codes, counts, seed)


def order_hashes(words: Callable[[int], Array], d: int, codes: Array, counts: Array, seed: int) -> Array:
    """A hash of each row, (n,), that does not depend on the order of columns, of other rows, or of the classes.

    A row's hash is a sum over its columns, each with a key; the key of a column is a sum over the rows, and so is that of
    a class. Repeated, this tells all columns and classes apart that differ in their content (color refinement, as for
    graphs). Rows that only a symmetry of the whole table could tell apart have equal hashes.

    Parameters
    ----------
    words : function of a column's number
        Its cells as words, (n,).
    d : int
    codes : (n,) class codes
    counts : (n,) unsigned integers
        How often each row counts.
    seed : int
    """
    keys = np.zeros(d, dtype=np.uint64)
    class_keys = np.zeros(
        int(codes.max(initial=-1)) + 2, dtype=np.uint64
    )  # the last one is for rows without a label
    for round_ in range(ROUNDS + 1):
        hashes = mixed(np.full(len(codes), np.uint64(seed) + MULTIPLIER) ^ class_keys[codes])
        for j in range(d):
            hashes += mixed(words(j) ^ keys[j])
        hashes = mixed(hashes)
        if round_ < ROUNDS:
            keys = np.array([_key(words(j) ^ hashes, counts) for j in range(d)], dtype=np.uint64)
            np.add.at(class_keys, codes, counts * mixed(hashes))
    return hashes


def _key(words: Array, counts: Array) -> np.uint64:
    return np.uint64((counts * mixed(words)).sum(dtype=np.uint64))
