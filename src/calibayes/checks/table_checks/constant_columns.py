"""CB008: columns with the same value in all rows, or without any value."""

from __future__ import annotations

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.text import quoted


def look(subject: Subject) -> Evidence | None:
    """Evidence of columns whose cells are all equal, or all missing, in every row."""
    suspects = [j for j, column in enumerate(subject.columns) if is_constant(column)]
    found = [j for j in suspects if subject.is_complete or is_constant(subject.whole(j))]
    if not found:
        return None
    columns = [subject.columns[j] for j in found]
    empty = [column.name for column in columns if not column.known]
    names = tuple(column.name for column in columns)
    noun, verb = ("Column", "has") if len(names) == 1 else ("Columns", "have")
    note = f" ({quoted(empty)}: all cells are missing)" if empty else ""
    return Evidence(
        f"{noun} {quoted(names)} {verb} the same value in all {subject.total_rows:,} rows{note}.",
        names,
        {"constant columns": len(names), "of them all missing": len(empty)},
    )


def is_constant(column: Column) -> bool:
    """Whether all cells are equal, or all are missing."""
    return not column.known or (len(column.levels) == 1 and column.known == len(column.values))


CHECK = Check("CB008", "constant columns", look)
