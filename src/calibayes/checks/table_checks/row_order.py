"""CB006: the first rows of the table differ from the last rows, or the error differs between folds.

The class frequencies of the first and the second half of the rows are compared. For each column, the first half of the rows of each
class is compared with the second half, so that a change of the class frequencies alone does not count. The tests are those of
`drift`: a chi-square test and, for numbers, a rank test, adjusted for the number of columns (Holm). A difference is reported if
its p-value is below 0.001 and the total variation distance is at least 0.1. The errors of the best model of a comparison are
compared between folds by a chi-square test at the same level.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from calibayes.checks.cells import cells_of
from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.model_checks.losses import best_of
from calibayes.checks.subject import Subject
from calibayes.checks.table_checks.identifiers import is_identifier
from calibayes.checks.text import percent, quoted
from calibayes.core.protocols import Array
from calibayes.estimators.interface.trust.two_samples import Counts, holm, homogeneity, merged
from calibayes.kernels.levels.places import places_in_class

LEVEL = 0.001
LEAST_DISTANCE = 0.1


def look(subject: Subject) -> Evidence | None:
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
    noun = "column" if len(names) == 1 else "columns"
    return Evidence(
        f"The first half of the rows of each class differs from the second half in {noun} {quoted(names)} "
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
    return Evidence(
        f"The error of {name} is {percent(errors.min())} in one fold and {percent(errors.max())} in another, a larger difference "
        "than expected by chance.",
        values={
            "lowest error of a fold": float(errors.min()),
            "highest error of a fold": float(errors.max()),
        },
    )


def _has_values(column: Column) -> bool:
    return bool(column.known if column.numbers is None else np.isfinite(column.numbers).any())


def _compared(column: Column, last: Array) -> Counts:
    cells, size = cells_of(column, np.ones(len(last), dtype=bool))
    return _counts(cells, size, last, is_ordered=column.numbers is not None)


def _counts(cells: Array, size: int, last: Array, *, is_ordered: bool) -> Counts:
    old, new = (np.bincount(cells[part], minlength=size) for part in (~last, last))
    return Counts(old[None].astype(np.float64), new.astype(np.float64), is_ordered)


def _distance(counts: Counts) -> float:
    """Total variation distance, after small cells are merged."""
    small = merged(counts)
    if len(small.new) < 2 or not small.new.sum() or not small.old.sum():
        return 0.0
    return float(np.abs(small.new / small.new.sum() - small.old[0] / small.old.sum()).sum() / 2)


CHECK = Check("CB006", "rows are not in random order", look)
