"""The schema of a table: how a model treats each column, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from calibayes.encoders.encoder import Encoder, HasRemarks
from calibayes.tables.table import Table, holds_booleans
from calibayes.tables.text import text_table

NUMERIC, CATEGORICAL = "numeric", "categorical"
NUMBERS = "numbers"
CONTENT_TYPES = {"f": NUMBERS, "i": NUMBERS, "u": NUMBERS, "b": "booleans"}
"""Kind of a NumPy type -> content type of such a column; object columns are examined, all others contain text."""


def content_type(table: Table, j: int) -> str:
    """What column j contains: "numbers", "booleans", "text" or "categories"."""
    column = table.column(j)
    if column.dtype.kind != "O":
        return CONTENT_TYPES.get(column.dtype.kind, "text")
    if holds_booleans(column):
        return "booleans"
    return "text" if any(isinstance(value, str) for value in column) else "categories"


def default_kind(table: Table, j: int) -> str:
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
    """The columns of a training table; its ``repr`` is a plain-text table with one line for each column."""

    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        """The column of a name."""
        return next(column for column in self.columns if column.name == name)

    def text(self) -> str:
        """A plain-text table: name, kind, reason and number of missing values of each column."""
        return text_table([Column._fields, *(tuple(str(cell) for cell in column) for column in self.columns)])

    def __repr__(self) -> str:
        return self.text()


def column_types(table: Table) -> Schema:
    """The schema of a table whose columns are treated by what they contain, in one way each."""
    columns = [
        Column(name, default_kind(table, j), content_type(table, j), int(table.missing_mask(j).sum()))
        for j, name in enumerate(table.names)
    ]
    return Schema(tuple(columns))


def schema(
    table: Table,
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
    columns: dict[int, Column] = {}
    for kind, encoder in encoders.items():
        remarks = encoder.remarks() if isinstance(encoder, HasRemarks) else [""] * len(chosen[kind])
        for j, remark in zip(chosen[kind], remarks, strict=True):
            source = "given" if j in given else content_type(table, j)
            reason = f"{source}: {remark}" if remark else source
            columns[j] = Column(table.names[j], kind, reason, int(table.missing_mask(j).sum()))
    return Schema(tuple(columns[j] for j in sorted(columns)))
