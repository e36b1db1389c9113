"""Folds that depend on what rows hold and how often, not on where they stand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from calibayes.core.protocols import Array
from calibayes.estimators.checks import WHOLE, whole_number
from calibayes.estimators.reading import Rows
from calibayes.tables.levels import distinct_inverse
from calibayes.tables.read import Table

MANY_ROWS = 3000
FOLDS, FEWER_FOLDS = 5, 3
TRIAL_ROWS = 20_000
"""Rows that are enough to say how far to train and how much each member counts."""
LEAST_OF_CLASS = 50
"""Rows of a class that a trial has at least, if there are so many."""
MOST_COUNT = 2.0**53
MOST_COPIES = 8
"""A row of weight 2 does as two rows do, if all of them together are not more than so many times the rows."""
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
        count = whole_number("cv", _folds_for(len(rows.codes)) if cv is None else cv, 2)
        share = min(TRIAL_ROWS / len(rows.codes), 1.0) if cv is None else 1.0
        rows, groups = units(rows, seed)
        fold = dealt(groups, rows.codes, count, share)
        chosen = fold != NOT_TRIED
        splits = [fold[chosen] == number for number in range(count) if (fold == number).any()]
        return Trial(rows.only(chosen), splits)
    codes = np.zeros(n, dtype=int)
    codes[rows.where] = rows.codes
    tests = [test for _, test in check_cv(cv, codes, classifier=True).split(codes, codes)]
    return Trial(rows, [np.isin(rows.where, test) for test in tests])


def _folds_for(n: int) -> int:
    return FEWER_FOLDS if n >= MANY_ROWS else FOLDS


def units(rows: Rows, seed: int) -> tuple[Rows, Array]:
    """Rows to deal out, and a number for each, (n,), as good as random: rows of the same number stay together.

    Where weights are whole numbers, they say how often a row was seen: it becomes as many rows of weight 1, which may
    come to lie on both sides of a fold as rows of a sample do (all weights are divided by what they have in common).
    Other weights do not say that: rows of the same content, of whatever class, stay together then.
    """
    marks = digest(rows.table, seed)
    found, first, which = np.unique(
        _stirred(marks) ^ _stirred(rows.codes.astype(np.uint64)), return_index=True, return_inverse=True
    )
    total = np.bincount(which.ravel(), rows.weight, minlength=len(found))
    unit = _common(rows.weight)
    if unit > 0 and total.sum() / unit <= MOST_COPIES * len(rows.codes):
        alike = rows.only(np.repeat(first, np.rint(total / unit).astype(int)))
        return alike._replace(weight=np.full(len(alike.codes), unit)), np.arange(len(alike.codes))
    return rows, np.unique(marks, return_inverse=True)[1].ravel()


def _common(weight: Array) -> float:
    """The largest whole number of which all weights are multiples; 0 where there is none."""
    if not ((weight == np.round(weight)).all() and weight.max() < MOST_COUNT):
        return 0.0
    return float(np.gcd.reduce(weight.astype(np.int64)))


def dealt(groups: Array, codes: Array, count: int, share: float = 1.0) -> Array:
    """The fold of each row, (n,): within each class groups of rows in turn, in the order of their numbers.

    A class never goes to one fold as a whole: its rows have -1 then, and are in none. Of groups only a share takes part;
    the rows of the others have -2.
    """
    of_group = np.full(int(groups.max()) + 1, len(codes))
    np.minimum.at(of_group, groups, codes)
    fold = np.full(len(of_group), NEVER_HELD)
    begin = 0
    for code in np.unique(of_group):
        mine = np.flatnonzero(of_group == code)
        most = max(int(np.ceil(share * len(mine))), LEAST_OF_CLASS)
        place = np.arange(len(mine))
        fold[mine] = np.where(place < most, (place + begin) % count, NOT_TRIED)
        begin += min(most, len(mine))  # small classes do not all begin with the first fold
    for code in np.unique(codes):
        mine = groups[codes == code]
        where = np.unique(fold[mine])
        if len(where[where != NOT_TRIED]) < 2:
            fold[mine] = NEVER_HELD
    return np.asarray(fold[groups])


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
