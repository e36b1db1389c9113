"""CB015: columns with so many rare levels that many new rows have a level that does not occur in training.

The share of new rows with an unseen level is estimated by the share of rows whose level occurs once (Good 1953, after Turing).
Columns are reported if it is 5 % or more. Identifiers are reported by CB004 instead.
"""

from __future__ import annotations

from calibayes.checks.check import Check, Evidence
from calibayes.checks.columns import Column
from calibayes.checks.subject import Subject
from calibayes.checks.table_checks.identifiers import are_measured, is_identifier
from calibayes.checks.text import percent, quoted

LEAST_SHARE = 0.05
LEAST_ROWS = 50


def look(subject: Subject) -> Evidence | None:
    """Evidence of columns with many levels that occur once, confirmed in all rows."""
    suspects = [j for j, column in enumerate(subject.columns) if unseen_share(column) >= LEAST_SHARE]
    columns = {j: subject.columns[j] if subject.is_complete else subject.whole(j) for j in suspects}
    shares = {column.name: unseen_share(column) for column in columns.values()}
    found = {name: share for name, share in shares.items() if share >= LEAST_SHARE}
    if not found:
        return None
    names = sorted(found, key=lambda name: -found[name])
    noun = "Column" if len(names) == 1 else "Columns"
    return Evidence(
        f"About {percent(found[names[0]])} of new rows are expected to have a level of {names[0]!r} that no training row has. "
        f"{noun} with many rare levels: {quoted(names)}.",
        tuple(names),
        {f"share of new rows, {name}": found[name] for name in names[:20]},
    )


def unseen_share(column: Column) -> float:
    """Expected share of new rows whose level was not seen; 0 for numbers, dates, identifiers, and columns with few values."""
    if not column.is_text or column.known < LEAST_ROWS or is_identifier(column):
        return 0.0
    share = float((column.level_rows == 1).sum() / column.known)
    return 0.0 if share >= LEAST_SHARE and are_measured(column.levels) else share


CHECK = Check("CB015", "levels unseen in training", look)
