"""CB003: one column alone gives the class away, which often means that it was recorded after the class was known.

The rows are divided into two stratified halves. In the cells of a column (at most 32 quantile ranges of a number, at most 1,000
levels otherwise, and one cell for missing values) the most frequent class of one half predicts the other half, and the other way
round. The error is compared with that of always predicting the most frequent class. A column is found if it removes 98 % of
those errors, and at least 90 % by the upper end of a 99 % Wilson interval of its own error, so that few rows prove nothing.
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
"""Of the normal distribution, for 99 %."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of columns that predict the class nearly without error."""
    base = float(1.0 - np.bincount(subject.codes).max() / subject.n)
    if base == 0.0:
        return None
    errors = {column.name: held_out_error(column, subject) for column in subject.columns}
    found = {name: error for name, error in errors.items() if _removes(error, base, subject.n)}
    if not found:
        return None
    name, error = min(found.items(), key=lambda item: item[1])
    return Evidence(
        f"From column {name!r} alone, the class of {percent(1 - error)} of the held-out rows is predicted correctly; the most "
        f"frequent class is right for {percent(1 - base)}. Was {quoted(list(found))} known before the class was?",
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
