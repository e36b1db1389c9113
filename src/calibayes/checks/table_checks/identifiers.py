"""CB004: a column whose values are all different, such as a key or a row number.

A column of text is an identifier if 95 % of its known values are distinct, as for the estimators, which leave it out, unless
they are dates or numbers. Integers
are measured against chance: n values drawn from a range of R integers have at least n (n - 1) / (2 R) equal pairs in
expectation (fewest if all are equally likely), and no equal pair at all with probability exp(-that) at most. If none of the
values occurs twice though 12 pairs are expected (probability below 1e-5), they number the rows.
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
"""Types of cells that models read as numbers."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of identifier columns."""
    suspects = [j for j, column in enumerate(subject.columns) if is_identifier(column)]
    found = [j for j in suspects if subject.is_complete or is_identifier(subject.whole(j))]
    if not found:
        return None
    names = tuple(subject.columns[j].name for j in found)
    first = subject.columns[found[0]]
    noun, verb = ("Column", "is") if len(names) == 1 else ("Columns", "are")
    return Evidence(
        f"{noun} {quoted(names)} {verb} (nearly) different in every row: {first.name!r} has {len(first.levels)} distinct values "
        f"in {first.known} rows. Nothing can be learned from such a column for new rows.",
        names,
        {f"distinct values of {subject.columns[j].name}": len(subject.columns[j].levels) for j in found[:20]},
    )


def is_identifier(column: Column) -> bool:
    """Whether nearly all values of a text, or all of a column of integers, are distinct, beyond chance."""
    if column.known < ROWS_TO_TELL:
        return False
    if column.is_text:
        return len(column.levels) >= DISTINCT_SHARE * column.known and not are_measured(column.levels)
    return column.values.dtype.kind in "fiu" and _numbers_the_rows(column)


def are_measured(values: Array) -> bool:
    """Whether cells that are objects are numbers, dates or texts of dates, all in one format."""
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
