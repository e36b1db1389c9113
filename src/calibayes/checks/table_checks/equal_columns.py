"""CB014: columns that are equal, or hold the same information in other units or words.

Two columns of numbers are the same if one is a monotone function of the other (equal or reversed ranks), two columns of levels if
their levels correspond one to one and occur at least twice on average (levels that occur once correspond to any others). Naive
Bayes counts the evidence of such columns twice.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.table_checks.identifiers import is_identifier
from calibayes.checks.text import quoted
from calibayes.core.protocols import Array

LEAST_ROWS = 20


def look(subject: Subject) -> Evidence | None:
    """Evidence of groups of equal columns."""
    groups: dict[bytes, list[str]] = {}
    for column in subject.columns:
        if subject.n >= LEAST_ROWS and len(column.levels) > 1 and _can_repeat(column):
            groups.setdefault(_content(column), []).append(column.name)
    equal = [names for names in groups.values() if len(names) > 1]
    if not equal:
        return None
    first = equal[0]
    return Evidence(
        f"Columns {quoted(first)} hold the same information in all {subject.n:,} rows that were examined"
        + (f"; there are {len(equal)} such groups of columns" if len(equal) > 1 else "")
        + ". Naive Bayes counts the evidence of such columns more than once.",
        tuple(name for names in equal for name in names),
        {"groups of equal columns": len(equal), "columns": sum(map(len, equal))},
    )


def _can_repeat(column: Column) -> bool:
    """Whether an equal column would be unlikely by chance."""
    if column.numbers is None and 2 * len(column.levels) > column.known:
        return False
    return not is_identifier(column)


def _content(column: Column) -> bytes:
    """Bytes that are equal for columns that hold the same information."""
    if column.numbers is None:
        return b"levels" + bytes(column.codes.astype(np.int64))
    return b"numbers" + bytes(_ranks(column.numbers))


def _ranks(numbers: Array) -> Array:
    """Ranks of the distinct numbers, -1 if missing; reversed columns have equal ranks.

    Of the ranks and the reversed ranks, those are returned that are smaller in the first row in which they differ.
    """
    known = np.isfinite(numbers)
    values, ranks = np.unique(numbers[known], return_inverse=True)
    ranks = ranks.reshape(-1)
    reverse = len(values) - 1 - ranks
    differing = np.flatnonzero(ranks != reverse)
    chosen = reverse if len(differing) and reverse[differing[0]] < ranks[differing[0]] else ranks
    codes = np.full(len(numbers), -1, dtype=np.int64)
    codes[known] = chosen
    return codes


CHECK = Check("CB014", "equal columns", look)
