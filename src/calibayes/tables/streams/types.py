"""Types of the columns of all rows, from those of the chunks, and chunks converted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.origin import FromFrame
from calibayes.tables.table import Table

OBJECT, FLOAT = np.dtype(object), np.dtype(np.float64)


@dataclass(frozen=True)
class ColumnTypes:
    """Types of the columns of some chunks; ``+`` gives those of more.

    A chunk with missing cells has other types than one without: floats instead of integers, objects instead of booleans.
    """

    types: tuple[np.dtype[Any], ...]
    has_values: tuple[bool, ...]
    """Whether a column of objects has a known cell; true for all others."""

    def __add__(self, other: ColumnTypes) -> ColumnTypes:
        types = tuple(_common(*pair) for pair in zip(self.types, other.types, strict=True))
        known = tuple(a or b for a, b in zip(self.has_values, other.has_values, strict=True))
        return ColumnTypes(types, known)

    def result(self, table: Table) -> tuple[np.dtype[Any], ...]:
        """The types that `read_frame` would find for all rows; ``table`` is any of the chunks.

        A column of objects without a known cell is one of NaN, unless the source declares it categorical.
        """
        return tuple(
            FLOAT if kind == OBJECT and not known and not _is_categorical(table, j) else kind
            for j, (kind, known) in enumerate(zip(self.types, self.has_values, strict=True))
        )


def column_types(table: Table) -> ColumnTypes:
    """The types of one chunk."""
    d = range(len(table.names))
    return ColumnTypes(table.types(), tuple(table.types()[j] != OBJECT or _has_values(table, j) for j in d))


def _has_values(table: Table, j: int) -> bool:
    column = table.stored_column(j)
    return len(column.values) > 0 if isinstance(column, CodedColumn) else not table.missing_mask(j).all()


def _is_categorical(table: Table, j: int) -> bool:
    return isinstance(table.origin, FromFrame) and table.origin.categorical[j]


def _common(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    if one == other:
        return one
    return np.result_type(one, other) if one.kind in "iuf" and other.kind in "iuf" else OBJECT


def as_types(table: Table, types: Sequence[np.dtype[Any]]) -> Table:
    """A chunk with its columns converted to the types of all rows, numbers alone as one matrix: as `read_frame` does."""
    if not isinstance(table.content, tuple):
        return table
    columns = [_converted(column, kind) for column, kind in zip(table.content, types, strict=True)]
    coded = {j: entry for j, entry in table.distinct_cache.items() if columns[j].dtype == OBJECT}
    are_numbers = bool(columns) and all(kind.kind in "fiu" for kind in types)
    content: Any = np.stack(columns, axis=1) if are_numbers else tuple(columns)
    return replace(
        table, content=content, original_types=tuple(types), distinct_cache=coded, missing_cache={}
    )


def _converted(column: Array, kind: np.dtype[Any]) -> Array:
    if column.dtype == kind:
        return column
    if isinstance(column, CodedColumn):  # no cell is known
        return np.full(len(column), np.nan)
    return column.astype(kind)
