"""Folds that depend on what rows hold, not on where they stand: equal rows are in one fold, and order leaves no trace."""

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
        fold = by_content(rows.table, rows.codes, count, seed, share)
        chosen = fold != NOT_TRIED
        splits = [fold[chosen] == number for number in range(count) if (fold == number).any()]
        return Trial(rows.only(chosen), splits)
    codes = np.zeros(n, dtype=int)
    codes[rows.where] = rows.codes
    tests = [test for _, test in check_cv(cv, codes, classifier=True).split(codes, codes)]
    return Trial(rows, [np.isin(rows.where, test) for test in tests])


def _folds_for(n: int) -> int:
    return FEWER_FOLDS if n >= MANY_ROWS else FOLDS


def by_content(table: Table, codes: Array, count: int, seed: int, share: float = 1.0) -> Array:
    """The fold of each row, (n,): within each class distinct rows in turn; -1 where a class has only one.

    So every fold has rows of each class to learn from, a row that is there twice is never on both sides, and a row of
    weight 2 does as two rows do. Of distinct rows only a share takes part; the others have -2.
    """
    marks = digest(table, seed)
    fold = np.full(len(codes), NEVER_HELD)
    begin = 0
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        found, which = np.unique(marks[mine], return_inverse=True)
        if len(found) > 1:
            most = max(int(np.ceil(share * len(found))), LEAST_OF_CLASS)
            fold[mine] = np.where(which.ravel() < most, (which.ravel() + begin) % count, NOT_TRIED)
            begin += min(most, len(found))  # small classes do not all begin with the first fold
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
