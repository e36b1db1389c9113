"""An order of rows that depends on their content alone and is otherwise random, and the weight of one row.

Results that depend on a random order then do not change when rows are passed in another order, or when a row of weight 2
is passed twice.
"""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.input import Rows
from calibayes.tables.distinct import distinct_values
from calibayes.tables.table import Table

MOST_COUNT = 2.0**53
ROUNDING = 1e-12
"""Relative distance from a whole number that a weight may have after class weights were divided out."""
MOST_COPIES, LEAST_COPIES = 8, 1000
"""Rows of whole weights become as many rows, up to 8 times the rows, or 1,000."""
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


def expand_counts(rows: Rows, seed: int) -> Rows:
    """The rows in an order that depends on their content and the seed alone.

    Whole sample weights (before class weights) are counts: a row becomes as many rows, divided by the greatest common
    divisor of the weights, or fewer and heavier ones if they would be too many.
    """
    hashes = _mixed(content_hashes(rows.table, seed)) ^ _mixed(rows.codes.astype(np.uint64))
    counts = _counts(rows)
    if counts is None:
        order = np.lexsort([rows.weight, hashes])
        return rows.only(order[_shuffled(hashes[order])])
    distinct, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    total = np.bincount(which.ravel(), counts, minlength=len(distinct))
    copies = np.maximum(np.rint(total / _count_of_one(counts)), 1.0)
    source = np.repeat(np.arange(len(distinct)), copies.astype(int))
    source = source[_shuffled(distinct[source])]
    expanded = rows.only(first[source])
    return expanded._replace(weight=(total / copies)[source] * expanded.factor)


def unit_weight(rows: Rows) -> float:
    """The weight of one row: the common divisor of whole weights, otherwise the average weight of a row.

    The average is weighted by the weights themselves, so that rows of tiny weight do not count. Class weights enter by
    their average.
    """
    counts, top = _counts(rows), float(rows.weight.max())
    weight = rows.weight / top
    sample_weight = weight / rows.factor
    if counts is None:
        one = float(sample_weight @ sample_weight / sample_weight.sum())
    else:
        one = _count_of_one(counts) / top
    return top * one * float(weight.sum() / sample_weight.sum())


def _counts(rows: Rows) -> Array | None:
    """The sample weights (before class weights) if they are all whole numbers."""
    sample_weight = rows.weight / rows.factor
    whole = np.round(sample_weight)
    if sample_weight.max() >= MOST_COUNT or (np.abs(sample_weight - whole) > ROUNDING * whole).any():
        return None
    return np.asarray(whole)


def _count_of_one(counts: Array) -> float:
    """The count of one row: the greatest common divisor, or more if copies would be too many."""
    most = max(MOST_COPIES * len(counts), LEAST_COPIES)
    return max(float(np.gcd.reduce(counts.astype(np.int64))), float(counts.sum()) / most)


def _shuffled(hashes: Array) -> Array:
    """A pseudo-random order of rows with these hashes, equal ones adjacent in the input."""
    new = np.append(True, hashes[1:] != hashes[:-1])
    begin = np.maximum.accumulate(np.where(new, np.arange(len(hashes)), 0))
    copy = (np.arange(len(hashes)) - begin).astype(np.uint64)
    return np.argsort(_mixed(_mixed(copy + MULTIPLIER) ^ hashes), kind="stable")


def content_hashes(table: Table, seed: int) -> Array:
    """A hash of the content of each row, (n,)."""
    hashes = np.full(table.n, np.uint64(seed) + MULTIPLIER)
    for j in range(len(table.names)):
        hashes = _mixed(hashes ^ _words(table, j))
    return hashes


def _mixed(words: Array) -> Array:
    """Each word multiplied and shifted, so that close words become unrelated."""
    words = words * MULTIPLIER
    return np.asarray((words ^ (words >> SHIFT)) * MULTIPLIER)


def _words(table: Table, j: int) -> Array:
    """Cells as words: the bits of numbers, the position among the distinct values of everything else."""
    if table.is_numeric(j):
        column = table.column(j).astype(np.float64)
        same = np.where(np.isnan(column), np.nan, column) + 0.0  # one NaN, one zero
        return _mixed(np.ascontiguousarray(same).view(np.uint64))
    return _mixed(distinct_values(table, j)[1].astype(np.uint64))
