"""The columns that a reader must give, and what they hold: numbers, text, flags or durations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.table import CodedColumn, Table
from calibayes.tables.text import listed
from calibayes.tables.training_table import NUMBER_KINDS

NUMBER, TEXT, FLAG, DURATION, AS_WRITTEN = "number", "text", "flag", "duration", "as written"
"""What a column holds; a column that is read as it is written is not looked at, only passed on."""


@dataclass(frozen=True)
class ExpectedColumn:
    """Name of a column, and what it holds."""

    name: str
    holds: str


@dataclass(frozen=True)
class Expected:
    """What is read of a table.

    Attributes
    ----------
    features : tuple of ExpectedColumn
        The columns of the model, in its order.
    labels, weight : ExpectedColumn, optional
    passed_on : tuple of str
        Names of columns that are given back as they are written.
    """

    features: tuple[ExpectedColumn, ...]
    labels: ExpectedColumn | None = None
    weight: ExpectedColumn | None = None
    passed_on: tuple[str, ...] = ()
    by_position: bool = False
    """Whether the model has no names of columns: its columns are those of the table, in their order."""

    @property
    def columns(self) -> dict[str, str]:
        """Name -> what it holds, of all columns that are read and interpreted."""
        roles = [column for column in (self.labels, self.weight) if column is not None]
        return {column.name: column.holds for column in (*self.features, *roles)}


class Piece(NamedTuple):
    """Consecutive rows."""

    table: Table
    labels: Any
    """An array or a `CodedColumn`, (n,); None if there is no column of labels."""
    weight: Array | None
    passed_on: dict[str, list[str]]


def holds(kind: str) -> str:
    """What a column of a kind of `TrainingTable` holds; dates are text, which the model converts itself."""
    if kind in NUMBER_KINDS:
        return NUMBER
    return {"boolean": FLAG, "duration": DURATION}.get(kind, TEXT)


def holds_labels(classes: Array) -> str:
    """What a column of labels holds, from the classes of a model."""
    return {"b": FLAG, "i": NUMBER, "u": NUMBER, "f": NUMBER}.get(np.asarray(classes).dtype.kind, TEXT)


def require_columns(names: Sequence[str], needed: Iterable[str], where: str) -> None:
    """Raises ValueError if a table lacks columns."""
    lacking = [name for name in dict.fromkeys(needed) if name not in names]
    if lacking:
        noun = "column" if len(lacking) == 1 else "columns"
        raise ValueError(
            f"{where} has no {noun} {', '.join(map(repr, lacking))}; its columns are {listed(names)}"
        )


def piece_of(expected: Expected, columns: dict[str, Any], passed_on: dict[str, list[str]]) -> Piece:
    """Rows from the arrays of their columns."""
    names = tuple(column.name for column in expected.features)
    content = tuple(columns[name] for name in names)
    coded = {j: (c.values, c.codes) for j, c in enumerate(content) if isinstance(c, CodedColumn)}
    table = Table(names, content, tuple(c.dtype for c in content), distinct_cache=coded)
    labels = None if expected.labels is None else columns[expected.labels.name]
    weight = None if expected.weight is None else columns[expected.weight.name]
    return Piece(table, labels, weight, passed_on)
