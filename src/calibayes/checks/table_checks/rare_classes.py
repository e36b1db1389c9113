"""CB009: classes with fewer than ten rows.

With five folds, fewer than two of them are in each fold: too few to estimate a density or an error.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import Check, Evidence
from calibayes.checks.subject import Subject
from calibayes.checks.text import quoted

LEAST_ROWS = 10


def look(subject: Subject) -> Evidence | None:
    """Evidence of classes with few rows in the whole table."""
    order = np.argsort(subject.class_rows, kind="stable")
    rare = {
        subject.classes[i]: int(subject.class_rows[i]) for i in order if subject.class_rows[i] < LEAST_ROWS
    }
    if not rare:
        return None
    first, rows = next(iter(rare.items()))
    noun, verb = ("Class", "has") if len(rare) == 1 else ("Classes", "have")
    return Evidence(
        f"{noun} {quoted(list(rare))} {verb} fewer than {LEAST_ROWS} rows ({first!r}: {rows} of {subject.total_rows:,}): "
        "densities and errors of these classes are not reliable.",
        values={f"rows of {name}": count for name, count in list(rare.items())[:20]},
    )


CHECK = Check("CB009", "rare classes", look)
