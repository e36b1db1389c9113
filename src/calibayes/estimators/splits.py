"""Folds that depend on what rows hold and how often, not on where they stand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from calibayes.core.protocols import Array
from calibayes.encoders.levels import distinct_inverse
from calibayes.estimators.checks import WHOLE, whole_number
from calibayes.estimators.reading import Rows
from calibayes.tables.read import Table

MANY_ROWS = 3000
FOLDS, FEWER_FOLDS = 5, 3
TRIAL_ROWS = 20_000
"""Rows that are enough to say how far to train and how much each member counts."""
LEAST_OF_CLASS = 50
"""Rows of a class that a trial has at least, if there are so many."""
MOST_COUNT = 2.0**53
ROUNDING = 1e-12
"""What a weight may be off a whole number, as a share of it, after class weights were taken off again."""
MOST_COPIES, LEAST_COPIES = 8, 1000
"""A row of weight 2 does as two rows do, if all of them together are not more than so many times the rows, or so many."""
ODD = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)
NOT_TRIED, NEVER_HELD = -2, -1


class Trial(NamedTuple):
    """Rows to try members on, and which of them each fold holds out, booleans each."""

    rows: Rows
    splits: list[Array]


def trial(cv: Any, rows: Rows, n: int, seed: int) -> Trial:
    """Folds of the rows, of n that were passed.

    ``cv`` is a number of folds, a splitter, a list of splits, or None: five folds, three from 3,000 rows on, and of
    more than 20,000 rows folds of about so many.
    """
    if cv is None or isinstance(cv, WHOLE):
        rows = units(rows, seed)
        many = len(rows.codes)
        count = whole_number("cv", (FEWER_FOLDS if many >= MANY_ROWS else FOLDS) if cv is None else cv, 2)
        fold = dealt(rows.codes, count, min(TRIAL_ROWS / many, 1.0) if cv is None else 1.0)
        chosen = fold != NOT_TRIED
        splits = [fold[chosen] == number for number in range(count) if (fold == number).any()]
        return Trial(rows.only(chosen), splits)
    codes = np.zeros(n, dtype=int)
    codes[rows.where] = rows.codes
    tests = [test for _, test in check_cv(cv, codes, classifier=True).split(codes, codes)]
    splits = [np.isin(rows.where, test) for test in tests]
    if not any(held.any() for held in splits):
        raise ValueError(f"cv holds out none of the rows: {cv!r}")
    return Trial(rows, splits)


def units(rows: Rows, seed: int) -> Rows:
    """The rows to deal out, in an order that depends on their content alone and is as good as random.

    Whole numbers as weights (before class weights) say how often a row was seen: it becomes as many rows, divided by what
    all weights have in common, or fewer and heavier ones where they would be too many.
    """
    marks = _stirred(digest(rows.table, seed)) ^ _stirred(rows.codes.astype(np.uint64))
    seen = _counts(rows)
    if seen is None:
        place = np.lexsort([rows.weight, marks])
        return rows.only(place[_shuffled(marks[place])])
    found, first, which = np.unique(marks, return_index=True, return_inverse=True)
    total = np.bincount(which.ravel(), seen, minlength=len(found))
    copies = np.maximum(np.rint(total / _count_of_one(seen)), 1.0)
    own = np.repeat(np.arange(len(found)), copies.astype(int))
    own = own[_shuffled(found[own])]
    alike = rows.only(first[own])
    return alike._replace(weight=(total / copies)[own] * alike.factor)


def unit_weight(rows: Rows) -> float:
    """What one row weighs, where whole weights say how often rows were seen; otherwise what a row weighs on average.

    The average is that over the weight, so that rows that hardly count do not count. Class weights count on average.
    """
    counts, top = _counts(rows), float(rows.weight.max())
    weight = rows.weight / top
    seen = weight / rows.factor
    one = float(seen @ seen / seen.sum()) if counts is None else _count_of_one(counts) / top
    return top * one * float(weight.sum() / seen.sum())


def _counts(rows: Rows) -> Array | None:
    """How often rows were seen, where all weights (before class weights) are whole numbers."""
    seen = rows.weight / rows.factor
    whole = np.round(seen)
    if seen.max() >= MOST_COUNT or (np.abs(seen - whole) > ROUNDING * whole).any():
        return None
    return np.asarray(whole)


def _count_of_one(seen: Array) -> float:
    """What counts as one row: the largest number that divides all counts, or more where copies would be too many."""
    most = max(MOST_COPIES * len(seen), LEAST_COPIES)
    return max(float(np.gcd.reduce(seen.astype(np.int64))), float(seen.sum()) / most)


def _shuffled(marks: Array) -> Array:
    """An order of rows with these marks, equal ones side by side, as good as random."""
    new = np.append(True, marks[1:] != marks[:-1])
    begin = np.maximum.accumulate(np.where(new, np.arange(len(marks)), 0))
    copy = (np.arange(len(marks)) - begin).astype(np.uint64)
    return np.argsort(_stirred(_stirred(copy + ODD) ^ marks), kind="stable")


def dealt(codes: Array, count: int, share: float = 1.0) -> Array:
    """The fold of each row, (n,): those of each class in turn; -1 where a class has only one.

    So every fold has rows of each class to learn from. Of each class only a share takes part; the others have -2.
    """
    fold = np.full(len(codes), NEVER_HELD)
    begin = 0
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        if len(mine) > 1:
            most, place = max(int(np.ceil(share * len(mine))), LEAST_OF_CLASS), np.arange(len(mine))
            fold[mine] = np.where(place < most, (place + begin) % count, NOT_TRIED)
            begin += min(most, len(mine))  # small classes do not all begin with the first fold
    return fold


def digest(table: Table, seed: int) -> Array:
    """A number for the content of each row, (n,), as good as random."""
    marks = np.full(table.n, np.uint64(seed) + ODD)
    for j in range(len(table.names)):
        marks = _stirred(marks ^ _words(table, j))
    return marks


def _stirred(words: Array) -> Array:
    words = words * ODD
    return np.asarray((words ^ (words >> SHIFT)) * ODD)


def _words(table: Table, j: int) -> Array:
    """Cells as words: the bits of numbers, the place among the values of all else."""
    if table.numeric(j):
        column = table.column(j).astype(np.float64)
        same = np.where(np.isnan(column), np.nan, column) + 0.0  # one NaN, one zero
        return _stirred(np.ascontiguousarray(same).view(np.uint64))
    return _stirred(distinct_inverse(table, j)[1].astype(np.uint64))
