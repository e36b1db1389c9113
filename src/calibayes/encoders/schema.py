"""What each column of a table is taken for, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from calibayes.encoders.numbers import Encoder, HasRemarks
from calibayes.tables.read import Table, holds_booleans

NUMERIC, CATEGORICAL = "numeric", "categorical"
NUMBERS = "numbers"
CONTENTS = {"f": NUMBERS, "i": NUMBERS, "u": NUMBERS, "b": "booleans"}
"""What the columns of a NumPy type hold; all others hold text or categories."""


def content(table: Table, j: int) -> str:
    """What a column holds: "numbers", "booleans", "text" or "categories"."""
    column = table.column(j)
    if column.dtype.kind != "O":
        return CONTENTS.get(column.dtype.kind, "text")
    if holds_booleans(column):
        return "booleans"
    return "text" if any(isinstance(value, str) for value in column) else "categories"


def natural_kind(table: Table, j: int) -> str:
    """Numbers are numeric, whole ones too, however few they are; all else is categorical."""
    return NUMERIC if table.numeric(j) else CATEGORICAL


class Column(NamedTuple):
    """What a column is taken for."""

    name: str
    kind: str
    reason: str
    """What it holds, or "given" where a person said its kind; then what became of it."""
    missing: int
    """Number of missing cells."""


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a training table. Its text is a table, a line a column."""

    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        """The column of a name."""
        return next(column for column in self.columns if column.name == name)

    def text(self) -> str:
        """A plain-text table: name, kind, reason and missing cells of each column."""
        lines = [Column._fields, *(tuple(str(cell) for cell in column) for column in self.columns)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(Column._fields))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def __repr__(self) -> str:
        return self.text()


def schema(
    table: Table,
    encoders: Mapping[str, Encoder],
    chosen: Mapping[str, tuple[int, ...]],
    given: frozenset[int] = frozenset(),
) -> Schema:
    """The schema of a table whose columns went to fitted encoders, by kind; ``given`` are those a person decided."""
    columns: dict[int, Column] = {}
    for kind, encoder in encoders.items():
        remarks = encoder.remarks() if isinstance(encoder, HasRemarks) else [""] * len(chosen[kind])
        for j, remark in zip(chosen[kind], remarks, strict=True):
            source = "given" if j in given else content(table, j)
            reason = f"{source}: {remark}" if remark else source
            columns[j] = Column(table.names[j], kind, reason, int(table.absent(j).sum()))
    return Schema(tuple(columns[j] for j in sorted(columns)))
