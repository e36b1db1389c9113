"""What a model was trained on: the schema (how it treats each column, and why), and the size of the training table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from calibayes.core.notices import text_table
from calibayes.core.verify import require
from calibayes.encoders.encoder import Encoder, HasRemarks
from calibayes.tables.conversion import IDENTIFIER
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table, holds_booleans

NUMERIC, CATEGORICAL = "numeric", "categorical"
NUMBERS = "numbers"
CONTENT_TYPES = {"f": NUMBERS, "i": NUMBERS, "u": NUMBERS, "b": "booleans", "M": "dates", "m": "dates"}
"""Kind of a NumPy type -> content type of such a column; object columns are examined, all others contain text."""


def content_type(table: Table | TableSummary, j: int) -> str:
    """What column j contains: "numbers", "booleans", "dates" (that are levels), "text" or "categories"."""
    if table.dtype_kind(j) != "O":
        return CONTENT_TYPES.get(table.dtype_kind(j), "text")
    column = table.column(j) if isinstance(table, Table) else table.contents(j)
    if holds_booleans(column):
        return "booleans"
    return "text" if any(isinstance(value, str) for value in column) else "categories"


def default_kind(table: Table | TableSummary, j: int) -> str:
    """Kind of a column unless the user chooses one: numeric for numbers, even with few distinct values, else categorical."""
    return NUMERIC if table.is_numeric(j) else CATEGORICAL


class Column(NamedTuple):
    """How a model treats a column."""

    name: str
    kind: str
    reason: str
    """Content type, or "given" if the user chose the kind; then a remark on the encoding."""
    missing: int
    """Number of missing values."""


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a training table; its ``repr`` is a plain-text table with one line for each column.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> NaiveBayes().fit([[1.0, "a"], [2.0, "b"], [3.0, "a"], [4.0, "b"]], [0, 0, 1, 1]).schema_
    name  kind         reason                              missing
    x0    kernel       numbers: 4 distinct values, 4 bins  0
    x1    categorical  text: 2 levels                      0
    """

    columns: tuple[Column, ...]

    def verify(self) -> None:
        """Raises ValueError unless the columns have different names; see `calibayes.core.verify`."""
        names = self.names
        require(len(set(names)) == len(names), "a column of the schema occurs twice")
        are_counts = all(column.missing >= 0 for column in self.columns)
        require(are_counts, "a column has a negative number of missing values")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        """The column of a name."""
        return next(column for column in self.columns if column.name == name)

    def with_further_rows(self, newest: Schema) -> Schema:
        """The columns as ``newest`` describes them, with the missing values of both."""
        counts = {column.name: column.missing for column in self.columns}
        columns = newest.columns
        totals = (column.missing + counts.get(column.name, 0) for column in columns)
        return Schema(tuple(c._replace(missing=total) for c, total in zip(columns, totals, strict=True)))

    def text(self) -> str:
        """A plain-text table: name, kind, reason and number of missing values of each column."""
        return text_table([Column._fields, *(tuple(str(cell) for cell in column) for column in self.columns)])

    __repr__ = text


def remarks_of(encoder: Encoder, count: int) -> Sequence[str]:
    """A short description of the encoding of each of its ``count`` columns; empty if it describes none."""
    return encoder.remarks() if isinstance(encoder, HasRemarks) else [""] * count


def schema(
    summary: TableSummary,
    encoders: Mapping[str, Encoder],
    chosen: Mapping[str, tuple[int, ...]],
    given: frozenset[int] = frozenset(),
) -> Schema:
    """The schema of a table.

    Parameters
    ----------
    encoders : kind -> fitted encoder
    chosen : kind -> positions of its columns
    given : positions of the columns whose kind was chosen by the user
    """
    columns = _left_out(summary)
    for kind, encoder in encoders.items():
        for j, remark in zip(chosen[kind], remarks_of(encoder, len(chosen[kind])), strict=True):
            columns[j] = _column(summary, j, kind, _reason(summary, j, given), remark)
    return Schema(tuple(columns[j] for j in sorted(columns)))


def column_types(summary: TableSummary) -> Schema:
    """The schema of a table whose columns are treated by what they contain, in one way each."""
    columns = _left_out(summary)
    for j in summary.used:
        columns[j] = _column(summary, j, default_kind(summary, j), _reason(summary, j))
    return Schema(tuple(columns[j] for j in sorted(columns)))


def _left_out(summary: TableSummary) -> dict[int, Column]:
    """The identifiers of a table."""
    identifiers = {} if summary.conversion is None else summary.conversion.identifiers
    return {j: _column(summary, j, IDENTIFIER, reason, "left out") for j, reason in identifiers.items()}


def _column(summary: TableSummary, j: int, kind: str, reason: str, remark: str = "") -> Column:
    text = f"{reason}: {remark}" if remark else reason
    return Column(summary.names[j], kind, text, summary.missing_rows(j))


def _reason(summary: TableSummary, j: int, given: frozenset[int] = frozenset()) -> str:
    """Where the kind of a column comes from, and what was done to the column before."""
    conversion = summary.conversion
    converted = conversion.remark(j) if conversion is not None and conversion.converters else ""
    return ", ".join(filter(None, ("given" if j in given else "", converted))) or content_type(summary, j)
