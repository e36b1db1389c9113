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
from scipy import stats

from calibayes.analysis.two_sample_tests import SampleCounts, holm, homogeneity, merged
from calibayes.checks.check import Evidence, clause, percent
from calibayes.checks.column_checks import is_identifier
from calibayes.checks.model_checks import best_of
from calibayes.checks.subject import ExaminedColumn, Subject, cells_of
from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import mixed
from calibayes.kernels.level_counts import places_in_class

LEAST_SHARE, EQUAL_ROWS = 0.01, 5
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
    return rows >= max(LEAST_SHARE * subject.n, EQUAL_ROWS)


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
    # column -> pairs of rows that agree in all other columns, whether or not they agree in this one
    tested = rich or range(len(chances))
    agreeing = {j: _pairs(hashes - _words(subject, j), subject.codes, within) for j in tested}
    if rich:
        return all(equal >= BEYOND_CHANCE * agreeing[j] * chances[j] for j in rich)
    return sum(pairs - equal for pairs in agreeing.values()) < equal


def _chance(column: ExaminedColumn) -> float:
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


# -- CB009: classes with fewer than ten rows -----------------------------------------------------------------
#
# With five folds, fewer than two of them are in each fold: too few to estimate a density or an error.

LEAST_ROWS = 10


def find_rare_classes(subject: Subject) -> Evidence | None:
    """Evidence of classes with few rows in the whole table."""
    order = np.argsort(subject.class_rows, kind="stable")
    sizes = {subject.classes[i]: int(subject.class_rows[i]) for i in order}
    rare = {name: rows for name, rows in sizes.items() if rows < LEAST_ROWS}
    if not rare:
        return None
    first, rows = next(iter(rare.items()))
    classes = clause(list(rare), "Class {} has", "Classes {} have")
    return Evidence(
        f"{classes} fewer than {LEAST_ROWS} rows ({first!r}: {rows} of {subject.total_rows:,}): "
        "densities and errors of these classes are not reliable.",
        values={f"rows of {name}": count for name, count in list(rare.items())[:20]},
    )


# -- CB006: the first rows of the table differ from the last rows, or the error differs between folds --------
#
# The class frequencies of the first and the second half of the rows are compared. For each column, the first half of the rows of each
# class is compared with the second half, so that a change of the class frequencies alone does not count. The tests are those of
# `drift`: a chi-square test and, for numbers, a rank test, adjusted for the number of columns (Holm). A difference is reported if
# its p-value is below 0.001 and the total variation distance is at least 0.1. The errors of the best model of a comparison are
# compared between folds by a chi-square test at the same level.

LEVEL = 0.001
LEAST_DISTANCE = 0.1


def find_row_order(subject: Subject) -> Evidence | None:
    """Evidence of rows that are not in random order, or of folds that differ."""
    found = [_classes(subject), _columns(subject), _folds(subject)]
    evidence = [one for one in found if one is not None]
    if not evidence:
        return None
    return Evidence(
        " ".join(one.message for one in evidence),
        tuple(name for one in evidence for name in one.columns),
        {name: value for one in evidence for name, value in one.values.items()},
    )


def _classes(subject: Subject) -> Evidence | None:
    last = np.arange(subject.n) >= subject.n / 2
    counts = _counts(subject.codes, subject.k + 1, last, is_ordered=False)
    distance = _distance(counts)
    if homogeneity(counts) >= LEVEL or distance < LEAST_DISTANCE:
        return None
    shares = counts.old[0] / counts.old.sum(), counts.new / counts.new.sum()
    most = int(np.argmax(np.abs(shares[1] - shares[0])))
    return Evidence(
        f"The class frequencies change along the table: class {subject.classes[most]!r} is {percent(shares[0][most])} of the first "
        f"half of the rows and {percent(shares[1][most])} of the second half.",
        values={"distance of the classes": distance},
    )


def _columns(subject: Subject) -> Evidence | None:
    rows_of_class = np.bincount(subject.codes, minlength=subject.k)
    last = places_in_class(subject.codes) >= rows_of_class[subject.codes] / 2
    columns = [column for column in subject.columns if _has_values(column) and not is_identifier(column)]
    compared = [_compared(column, last) for column in columns]
    p_values = holm(np.array([homogeneity(counts) for counts in compared]))
    distances = {
        column.name: _distance(counts)
        for column, counts, p in zip(columns, compared, p_values, strict=True)
        if p < LEVEL and _distance(counts) >= LEAST_DISTANCE
    }
    if not distances:
        return None
    names = sorted(distances, key=lambda name: -distances[name])
    moved = clause(names, "column {}", "columns {}")
    return Evidence(
        f"The first half of the rows of each class differs from the second half in {moved} "
        f"(total variation distance of {names[0]!r}: {distances[names[0]]:.2f} on a scale from 0 to 1).",
        tuple(names),
        {f"distance of {name}": distances[name] for name in names[:20]},
    )


def _folds(subject: Subject) -> Evidence | None:
    if not subject.results:
        return None
    name, _, folds = best_of(subject.results)
    errors = np.array([fold.error for fold in folds])
    mean, rows = errors.mean(), (subject.compared_rows or subject.total_rows) / len(errors)
    if len(errors) < 2 or not 0 < mean < 1:
        return None
    square = float((((errors - mean) ** 2) / (mean * (1 - mean) / rows)).sum())
    if stats.chi2.sf(square, len(errors) - 1) >= LEVEL or np.ptp(errors) < LEAST_DISTANCE:
        return None
    low, high = float(errors.min()), float(errors.max())
    return Evidence(
        f"The error of {name} is {percent(low)} in one fold and {percent(high)} in another, a larger difference "
        "than expected by chance.",
        values={"lowest error of a fold": low, "highest error of a fold": high},
    )


def _has_values(column: ExaminedColumn) -> bool:
    return bool(column.known if column.numbers is None else np.isfinite(column.numbers).any())


def _compared(column: ExaminedColumn, last: Array) -> SampleCounts:
    cells, size = cells_of(column, np.ones(len(last), dtype=bool))
    return _counts(cells, size, last, is_ordered=column.numbers is not None)


def _counts(cells: Array, size: int, last: Array, *, is_ordered: bool) -> SampleCounts:
    old, new = (np.bincount(cells[part], minlength=size) for part in (~last, last))
    return SampleCounts(old[None].astype(np.float64), new.astype(np.float64), is_ordered)


def _distance(counts: SampleCounts) -> float:
    """Total variation distance, after small cells are merged."""
    small = merged(counts)
    if len(small.new) < 2 or not small.new.sum() or not small.old.sum():
        return 0.0
    return float(np.abs(small.new / small.new.sum() - small.old[0] / small.old.sum()).sum() / 2)
