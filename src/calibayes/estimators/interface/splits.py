"""Folds of training rows, with one meaning of ``cv`` for every estimator, and orders of rows that depend on content.

A number of folds is stratified: the rows of each class are dealt to the folds in turn, in random order. A splitter or a
list of splits is used as scikit-learn does, on all rows that were passed. `expand_counts` orders rows by their content
alone, so that results do not change when rows are passed in another order, or when a row of weight 2 is passed twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from calibayes.core.protocols import Array
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import WHOLE, whole_number
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
    counts = np.round(sample_weight)
    if sample_weight.max() >= MOST_COUNT or (np.abs(sample_weight - counts) > ROUNDING * counts).any():
        return None
    return np.asarray(counts)


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
    """A hash of the content of each row, (n,), without columns that are left out."""
    hashes = np.full(table.n, np.uint64(seed) + MULTIPLIER)
    for j in table.used:
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


MANY_ROWS = 3000
FOLDS, FEWER_FOLDS = 5, 3
"""Default number of folds, and from `MANY_ROWS` on."""
TRIAL_ROWS = 20_000
"""Number of rows that suffices to choose between models and weight them."""
LEAST_OF_CLASS = 50
"""Least number of rows of a class in a subset, if it has that many."""
LEFT_OUT, NEVER_HELD_OUT = -2, -1


class EvaluationFolds(NamedTuple):
    """Rows that models are compared on, and which of them each fold holds out, (n,) booleans each."""

    rows: Rows
    held_out: list[Array]


def evaluation_folds(cv: Any, rows: Rows, n: int, seed: int) -> EvaluationFolds:
    """Folds that depend on the content of the rows and on how often they occur, not on their order.

    By default (None) five folds, three from 3,000 rows on, of at most about 20,000 rows. Splitters split the n rows that
    were passed.
    """
    if cv is not None and not isinstance(cv, WHOLE):
        return EvaluationFolds(rows, held_out_masks(cv, rows, n, seed))
    rows = expand_counts(rows, seed)
    many = len(rows.codes)
    count = whole_number("cv", (FEWER_FOLDS if many >= MANY_ROWS else FOLDS) if cv is None else cv, 2)
    fold = assign_folds(rows.codes, count, min(TRIAL_ROWS / many, 1.0) if cv is None else 1.0)
    taken = fold != LEFT_OUT
    return EvaluationFolds(rows.only(taken), masks_of(fold[taken], count))


def held_out_masks(cv: Any, rows: Rows, n: int, seed: int) -> list[Array]:
    """The rows that each fold holds out, (rows,) booleans each. Splitters split the n rows that were passed."""
    if isinstance(cv, WHOLE):
        count = whole_number("cv", cv, 2)
        masks = masks_of(shuffled_folds(rows.codes, count, seed), count)
    else:
        codes = np.zeros(n, dtype=int)
        codes[rows.positions] = rows.codes
        tests = [test for _, test in check_cv(cv, codes, classifier=True).split(codes, codes)]
        masks = [np.isin(rows.positions, test) for test in tests]
    if not any(mask.any() for mask in masks):
        raise ValueError(f"cv={cv!r} holds out no row: a class needs two rows at least")
    return masks


def masks_of(fold: Array, count: int) -> list[Array]:
    """Fold numbers as masks, one for each fold that has rows."""
    return [fold == number for number in range(count) if (fold == number).any()]


def shuffled_folds(codes: Array, count: int, seed: int) -> Array:
    """The fold of each row, (n,), stratified and in random order; -1 for the only row of a class."""
    order = np.random.default_rng(seed).permutation(len(codes))
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = assign_folds(codes[order], count)
    return fold


def assign_folds(codes: Array, count: int, share: float = 1.0) -> Array:
    """The fold of each row, (n,): the rows of each class are dealt to the folds in turn.

    The only row of a class is never held out (-1), so that every class can be learned in each fold. Of each class only a
    ``share`` takes part, at least 50 rows; the others have -2.
    """
    fold = np.full(len(codes), NEVER_HELD_OUT)
    begin = 0
    for code in np.unique(codes[codes >= 0]):
        class_rows = np.flatnonzero(codes == code)
        if len(class_rows) > 1:
            most, place = (
                max(int(np.ceil(share * len(class_rows))), LEAST_OF_CLASS),
                np.arange(len(class_rows)),
            )
            fold[class_rows] = np.where(place < most, (place + begin) % count, LEFT_OUT)
            begin += min(most, len(class_rows))  # small classes do not all begin with the first fold
    return fold


def hold_out(codes: Array, fraction: float, rng: np.random.Generator) -> Array:
    """A random share of each class's rows, (n,) booleans; every class keeps at least one training row."""
    held = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes[codes >= 0]):
        rows = rng.permutation(np.flatnonzero(codes == code))
        held[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    if not held.any():
        raise ValueError(f"validation_fraction={fraction} of {len(codes)} rows holds out no row at all")
    return held


def stratified_subset(codes: Array, most: int | None, seed: int) -> Array:
    """Positions of at most so many rows, drawn class by class, and all rows of classes that would keep few."""
    n = len(codes)
    if most is None or n <= most:
        return np.arange(n)
    order = np.random.default_rng(seed).permutation(n)
    share = most / n
    drawn = []
    for code in np.unique(codes):
        class_rows = order[codes[order] == code]
        drawn.append(class_rows[: max(int(np.ceil(share * len(class_rows))), min(10, len(class_rows)))])
    return np.sort(np.concatenate(drawn))
