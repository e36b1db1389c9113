"""CB003: one column alone predicts the class almost without error (target leakage).

Often such a column was recorded after the class was known. The rows are divided into two stratified halves. A column is divided
into cells: at most 32 quantile ranges of a number, at most 1,000 levels otherwise, and one cell for missing values. The most
frequent class of each cell in one half is the prediction for the other half, and vice versa. The error is compared with that of
always predicting the most frequent class. A column is reported if it removes 98 % of those errors, and at least 90 % with 99 %
confidence (upper limit of the Wilson interval of its error), so that a few rows are not enough.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.cells import cells_of
from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent, quoted
from calibayes.core.protocols import Array

REMOVED, SURELY_REMOVED = 0.98, 0.90
"""Share of the errors of the most frequent class that a column must remove, and its lower confidence limit."""
DEVIATIONS = 2.5758
"""Quantile of the normal distribution for 99 %, two-sided."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of columns that predict the class nearly without error."""
    tested = subject.codes[subject.halves >= 0]  # the only row of a class is never predicted
    base = float(1.0 - np.bincount(tested).max() / len(tested)) if len(tested) else 0.0
    if base == 0.0:
        return None
    errors = {column.name: held_out_error(column, subject) for column in subject.columns}
    found = {name: error for name, error in errors.items() if _removes(error, base, len(tested))}
    if not found:
        return None
    name, error = min(found.items(), key=lambda item: item[1])
    return Evidence(
        f"Column {name!r} alone predicts the class of {percent(1 - error)} of the held-out rows correctly; always predicting the "
        f"most frequent class is correct for {percent(1 - base)}. Check whether {quoted(list(found))} would be known at the time "
        "of prediction.",
        tuple(found),
        {"error of the most frequent class": base, **{f"error of {name}": found[name] for name in found}},
    )


def _removes(error: float, base: float, n: int) -> bool:
    return error <= (1 - REMOVED) * base and wilson_upper(error, n) <= (1 - SURELY_REMOVED) * base


def wilson_upper(share: float, n: int) -> float:
    """Upper end of the Wilson interval of a share of n rows."""
    square = DEVIATIONS**2 / n
    spread = DEVIATIONS * np.sqrt(share * (1 - share) / n + square / (4 * n))
    return float((share + square / 2 + spread) / (1 + square))


def held_out_error(column: Column, subject: Subject) -> float:
    """Share of rows whose class is not the most frequent one of their cell in the other half."""
    wrong = tested = 0
    for half in (0, 1):
        test = subject.halves == half
        predicted = _predictions(column, subject.codes, ~test, subject.k)
        wrong += int((predicted[test] != subject.codes[test]).sum())
        tested += int(test.sum())
    return wrong / max(tested, 1)


def _predictions(column: Column, codes: Array, training: Array, k: int) -> Array:
    """The most frequent class of the training rows in the cell of each row, (n,); of all of them in an empty cell."""
    cells, size = cells_of(column, training)
    counts = np.bincount(cells[training] * k + codes[training], minlength=size * k).reshape(size, k)
    overall = counts.sum(axis=0)
    by_cell = np.where(counts.any(axis=1), counts.argmax(axis=1), overall.argmax())
    return np.asarray(by_cell[cells])


CHECK = Check("CB003", "a column alone gives the class away", look)
