"""CB016: numbers such as -999 or 99999 that may be codes for missing values.

The smallest or largest number of a column is reported if it occurs in at least three rows and 0.2 % of them, and either

- its digits are all nines or all eights, and it is farther from the nearest other number than all others are from each other, or
- it is -1, and all others are non-negative integers, some of them above ten.
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
"""Least number of other distinct values: columns with fewer are flags or small scales."""
LARGEST_COUNT = 10
"""With a code of -1, the largest number must be above this one."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of numbers that may be codes for missing values."""
    found = {column.name: missing_codes(column) for column in subject.columns}
    found = {name: codes for name, codes in found.items() if codes}
    if not found:
        return None
    described = [
        f"{code:g} in {percent(share)} of {name!r}" for name, codes in found.items() for code, share in codes
    ]
    return Evidence(
        f"Numbers that are far from all others and may be codes for missing values: {listed(described, 5)}.",
        tuple(found),
        {f"share of {codes[0][0]:g} in {name}": codes[0][1] for name, codes in list(found.items())[:20]},
    )


def missing_codes(column: Column) -> list[tuple[float, float]]:
    """Numbers of a column that may be codes for missing values, and their shares of the known cells."""
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
