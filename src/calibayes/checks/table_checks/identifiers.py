"""CB004: a column whose values are all different, such as a key or a row number.

A column of text is an identifier if at least 95 % of its known values are distinct, unless they are dates or numbers; estimators
leave such columns out by the same criterion. Integers are compared with chance: n values drawn from a range of R integers have at
least n (n - 1) / (2 R) equal pairs in expectation, and no equal pair with a probability of at most about exp(-n (n - 1) / (2 R)).
A column is an identifier if no value occurs twice although 12 equal pairs are expected (probability below 1e-5).
"""

from __future__ import annotations

import datetime
from numbers import Number

import numpy as np
import pandas as pd

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import quoted
from calibayes.core.protocols import Array
from calibayes.tables.conversion import DISTINCT_SHARE, ROWS_TO_TELL
from calibayes.tables.date_text import formats_of

EXPECTED_PAIRS = 12.0
MEASURED = (Number, datetime.date, datetime.timedelta, pd.Period)
"""Types of cells that models treat as numbers."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of identifier columns."""
    suspects = [j for j, column in enumerate(subject.columns) if is_identifier(column)]
    found = [j for j in suspects if subject.is_complete or is_identifier(subject.whole(j))]
    if not found:
        return None
    names = tuple(subject.columns[j].name for j in found)
    first = subject.columns[found[0]]
    noun, verb = ("Column", "has") if len(names) == 1 else ("Columns", "have")
    return Evidence(
        f"{noun} {quoted(names)} {verb} a different value in (nearly) every row: {first.name!r} has {len(first.levels):,} distinct "
        f"values in {first.known:,} rows. Such a column does not help to predict new rows.",
        names,
        {f"distinct values of {subject.columns[j].name}": len(subject.columns[j].levels) for j in found[:20]},
    )


def is_identifier(column: Column) -> bool:
    """Whether nearly all texts, or all integers of a column, are distinct, and more often than by chance."""
    if column.known < ROWS_TO_TELL:
        return False
    if column.is_text:
        return len(column.levels) >= DISTINCT_SHARE * column.known and not are_measured(column.levels)
    return column.values.dtype.kind in "fiu" and _numbers_the_rows(column)


def are_measured(values: Array) -> bool:
    """Whether the objects in a column are all numbers or dates, or all texts of dates in one format."""
    if all(isinstance(value, str) for value in values):
        return bool(formats_of(list(values)))
    return all(isinstance(value, MEASURED) for value in values)


def _numbers_the_rows(column: Column) -> bool:
    known = column.values[~column.missing].astype(np.float64)
    if len(column.levels) < len(known) or not (np.isfinite(known).all() and (known == np.rint(known)).all()):
        return False
    size = float(known.max() - known.min()) + 1.0
    return bool(len(known) * (len(known) - 1) / (2.0 * size) >= EXPECTED_PAIRS)


CHECK = Check("CB004", "identifier column", look)
