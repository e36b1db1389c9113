"""CB005 and CB007: equal rows with different labels, and rows that occur more than once.

Rows are equal if all of their cells are equal, which can happen by chance in a table with few levels. Equal rows are reported if
they are at least 1 % of the rows, at least five, and more than expected by chance:

- Let c be the probability that two cells of a column are equal. Among pairs of rows that agree in all other columns, a share c
  would agree in this column by chance. For every column with c of 5 % or less, there must be ten times as many equal pairs.
- If every column has a larger c, there must be more equal pairs than pairs that differ in exactly one column: copies have no such
  neighbors, rows that are equal by chance have many.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.core.protocols import Array
from calibayes.tables.row_hashes import mixed
from calibayes.tables.text import counted

LEAST_SHARE, LEAST_ROWS = 0.01, 5
MANY_VALUES = 0.05
"""Largest probability that two cells are equal in a column that counts as having many values."""
BEYOND_CHANCE = 10.0


def look_across_classes(subject: Subject) -> Evidence | None:
    """Evidence of equal rows with different labels."""
    groups, counts = _group_counts(subject)
    size, largest = counts.sum(axis=1), counts.max(axis=1)
    conflicting = size > largest
    rows = int(conflicting[groups].sum())
    if not _are_many(rows, subject) or not _are_copies(subject, within=False):
        return None
    unavoidable = float((size - largest).sum() / subject.n)
    return Evidence(
        f"{rows:,} of {subject.n:,} rows are equal in all columns to a row of another class "
        f"({counted(int(conflicting.sum()), 'group')} of equal rows): at least {percent(unavoidable)} of the rows cannot be "
        "predicted correctly from these columns.",
        values={"rows": rows, "groups": int(conflicting.sum()), "unavoidable error": unavoidable},
    )


def look_within_classes(subject: Subject) -> Evidence | None:
    """Evidence of rows that occur more than once with the same label."""
    groups, counts = _group_counts(subject)
    repeated = int((counts[groups, subject.codes] > 1).sum())
    if not _are_many(repeated, subject) or not _are_copies(subject, within=True):
        return None
    copies = int(np.maximum(counts - 1, 0).sum())
    return Evidence(
        f"{repeated:,} of {subject.n:,} rows occur more than once with the same label ({copies:,} of them are copies of an earlier "
        "row). If copies are in both the training and the held-out rows, the held-out error is too low.",
        values={"rows": repeated, "copies": copies},
    )


def _are_many(rows: int, subject: Subject) -> bool:
    return rows >= max(LEAST_SHARE * subject.n, LEAST_ROWS)


def _group_counts(subject: Subject) -> tuple[Array, Array]:
    """The group of equal rows of each row, (n,), and the number of rows by group and class, (groups, k).

    Group 0 is for rows that are unique, which are not counted.
    """
    groups = np.unique(_hashes(subject), return_inverse=True)[1].reshape(-1)
    size = np.bincount(groups)
    numbers = np.where(size > 1, np.cumsum(size > 1), 0)
    groups, count = numbers[groups], int((size > 1).sum()) + 1
    counts = np.bincount(groups * subject.k + subject.codes, minlength=count * subject.k)
    counts = counts.reshape(count, subject.k)
    counts[0] = 0
    return groups, counts


def _are_copies(subject: Subject, *, within: bool) -> bool:
    """Whether more pairs of rows, of the same class or of different classes, are equal than expected by chance."""
    hashes = _hashes(subject)
    equal, chances = _pairs(hashes, subject.codes, within), list(map(_chance, subject.columns))
    rich = [j for j, chance in enumerate(chances) if chance <= MANY_VALUES]
    agreeing = {j: _agreeing_elsewhere(subject, hashes, j, within) for j in rich or range(len(chances))}
    if rich:
        return all(equal >= BEYOND_CHANCE * agreeing[j] * chances[j] for j in rich)
    return sum(pairs - equal for pairs in agreeing.values()) < equal


def _agreeing_elsewhere(subject: Subject, hashes: Array, j: int, within: bool) -> float:
    """Number of pairs of rows that agree in all columns other than j, whether or not they agree in j."""
    return _pairs(hashes - _words(subject, j), subject.codes, within)


def _chance(column: Column) -> float:
    """Probability that two cells are equal."""
    rows = np.bincount(column.codes + 1).astype(np.float64)
    return float((rows**2).sum() / rows.sum() ** 2)


def _hashes(subject: Subject) -> Array:
    """A hash of each row, (n,): the sum of the hashes of its cells."""
    hashes = np.zeros(subject.n, dtype=np.uint64)
    for j in range(len(subject.columns)):
        hashes += _words(subject, j)
    return hashes


def _words(subject: Subject, j: int) -> Array:
    """A hash of each cell of a column, (n,): equal for equal cells of this column, different in other columns."""
    key = mixed(np.array([j + 1], dtype=np.uint64))
    return mixed(mixed((subject.columns[j].codes + 2).astype(np.uint64)) ^ key)


def _pairs(hashes: Array, codes: Array, within: bool) -> float:
    """Number of pairs of rows with equal hashes, of the same class or of different classes."""
    same = _count_pairs(mixed(hashes) ^ mixed(codes.astype(np.uint64)))
    return same if within else _count_pairs(hashes) - same


def _count_pairs(hashes: Array) -> float:
    sizes = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    return float((sizes * (sizes - 1)).sum() / 2)


ACROSS = Check("CB005", "equal rows in different classes", look_across_classes)
WITHIN = Check("CB007", "repeated rows", look_within_classes)
