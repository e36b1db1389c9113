"""CB010 and CB011: columns that are mostly missing, and missing cells that depend on the class.

A column is mostly missing if more than 80 % of its cells are. The share of missing cells is compared between the classes by
Fisher's exact test for two classes, by a chi-square test for more, adjusted for the number of columns (Holm). Columns are reported
if the p-value is below 0.001 and the shares of two classes with at least 20 rows differ by a tenth or more.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent, quoted
from calibayes.core.protocols import Array
from calibayes.estimators.interface.trust.two_samples import holm

MOSTLY = 0.8
LEVEL = 0.001
LEAST_DIFFERENCE = 0.1
CLASS_ROWS = 20


def look_for_mostly_missing(subject: Subject) -> Evidence | None:
    """Evidence of columns with few known cells."""
    shares = {column.name: 1 - column.known / subject.n for column in subject.columns}
    found = {name: share for name, share in shares.items() if MOSTLY < share < 1.0}
    if not found:
        return None
    names = sorted(found, key=lambda name: -found[name])
    noun, verb = ("Column", "is") if len(names) == 1 else ("Columns", "are")
    return Evidence(
        f"{noun} {quoted(names)} {verb} missing in more than {percent(MOSTLY)} of the rows ({names[0]!r} in "
        f"{percent(found[names[0]])}).",
        tuple(names),
        {f"missing share of {name}": found[name] for name in names[:20]},
    )


def look_for_informative_gaps(subject: Subject) -> Evidence | None:
    """Evidence of columns whose missing cells depend on the class."""
    with_gaps = [column for column in subject.columns if 0 < column.known < subject.n]
    shares = {column.name: _missing_shares(column, subject) for column in with_gaps}
    p_values = holm(np.array([_p_value(column, subject) for column in with_gaps]))
    found = [
        column.name
        for column, p in zip(with_gaps, p_values, strict=True)
        if p < LEVEL and np.ptp(shares[column.name]) >= LEAST_DIFFERENCE
    ]
    if not found:
        return None
    found.sort(key=lambda name: -np.ptp(shares[name]))
    first, classes = shares[found[0]], [subject.classes[i] for i in _large_classes(subject)]
    low, high = int(np.argmin(first)), int(np.argmax(first))
    noun = "column" if len(found) == 1 else "columns"
    return Evidence(
        f"In {noun} {quoted(found)}, the share of missing cells depends on the class: {found[0]!r} is missing in "
        f"{percent(first[high])} of the rows of class {classes[high]!r} and in {percent(first[low])} of class {classes[low]!r}.",
        tuple(found),
        {f"difference of {name}": float(np.ptp(shares[name])) for name in found[:20]},
    )


def _large_classes(subject: Subject) -> Array:
    return np.flatnonzero(np.bincount(subject.codes, minlength=subject.k) >= CLASS_ROWS)


def _counts(column: Column, subject: Subject) -> Array:
    """Number of known and missing cells in each class with at least 20 rows, (classes, 2)."""
    cells = np.bincount(2 * subject.codes + column.missing, minlength=2 * subject.k).reshape(-1, 2)
    return np.asarray(cells[_large_classes(subject)], dtype=np.float64)


def _missing_shares(column: Column, subject: Subject) -> Array:
    counts = _counts(column, subject)
    return np.asarray(counts[:, 1] / counts.sum(axis=1)) if len(counts) else np.zeros(1)


def _p_value(column: Column, subject: Subject) -> float:
    counts = _counts(column, subject)
    if len(counts) < 2 or not counts.any(axis=0).all():
        return 1.0
    if len(counts) == 2:
        return float(stats.fisher_exact(counts)[1])
    return float(stats.chi2_contingency(counts)[1])


MOSTLY_MISSING = Check("CB010", "columns mostly missing", look_for_mostly_missing)
INFORMATIVE_GAPS = Check("CB011", "missing cells depend on the class", look_for_informative_gaps)
