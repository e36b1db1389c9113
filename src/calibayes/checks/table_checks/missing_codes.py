"""CB016: numbers such as -999 or 99999 that may stand for a missing value.

Found is the least or the largest number of a column if it is written in nines or eights only (or is -1 below numbers that are
never negative and reach beyond ten), is in at least three rows and 0.2 % of them, and is apart: farther from the next number
than all other numbers are from each other. For -1, which is next to 0, being the only negative number counts instead.
"""

from __future__ import annotations

import re

import numpy as np

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.core.protocols import Array
from calibayes.tables.text import listed

LEAST_ROWS, LEAST_SHARE = 3, 0.002
LEAST_VALUES = 3
"""Least number of other values: a column of two values is a flag."""
LARGEST_COUNT = 10


def look(subject: Subject) -> Evidence | None:
    """Evidence of numbers that may stand for missing values."""
    found = {column.name: missing_codes(column) for column in subject.columns}
    found = {name: codes for name, codes in found.items() if codes}
    if not found:
        return None
    described = [
        f"{code:g} in {percent(share)} of {name!r}" for name, codes in found.items() for code, share in codes
    ]
    return Evidence(
        f"Numbers that are far from all others, and look like codes for missing values: {listed(described, 5)}.",
        tuple(found),
        {f"share of {codes[0][0]:g} in {name}": codes[0][1] for name, codes in list(found.items())[:20]},
    )


def missing_codes(column: Column) -> list[tuple[float, float]]:
    """Numbers of a column that look like codes for missing values, and their shares of the known cells."""
    if column.values.dtype.kind not in "fiu" or column.numbers is None:
        return []
    known = column.numbers[np.isfinite(column.numbers)]
    values, rows = np.unique(known, return_counts=True)
    if len(values) <= LEAST_VALUES:
        return []
    least = max(LEAST_ROWS, LEAST_SHARE * len(known))
    ends = ((values[0], rows[0], values[1:]), (values[-1], rows[-1], values[:-1]))
    return [
        (float(end), float(count / len(known)))
        for end, count, others in ends
        if count >= least and _looks_like_a_code(float(end), others)
    ]


def _looks_like_a_code(end: float, others: Array) -> bool:
    if end == -1:
        return bool(others[0] >= 0 and others[-1] > LARGEST_COUNT and (others == np.rint(others)).all())
    if not re.fullmatch(r"-?(9+|8+)(\.9+)?", f"{end:.10g}"):
        return False
    with np.errstate(over="ignore"):  # numbers near the largest one
        return bool(np.abs(others - end).min() > others[-1] - others[0])


CHECK = Check("CB016", "numbers that stand for missing values", look)
