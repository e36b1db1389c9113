"""What kind of table the training rows came in, so that new rows can come out the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array


class Origin(Protocol):
    def made_of(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        """Columns as a table of this kind."""


@dataclass(frozen=True)
class FromArray:
    """Rows of an array: numbers where all columns are numbers, else objects."""

    def made_of(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        typed = [as_type(column, kind) for column, kind in zip(columns, types, strict=True)]
        if all(column.dtype.kind in "fiub" for column in typed):
            return np.stack(typed, axis=1)
        return np.stack([column.astype(object) for column in typed], axis=1)


@dataclass(frozen=True)
class FromFrame:
    """Columns of a data frame of some library."""

    library: Any

    def made_of(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        typed = [as_type(column, kind) for column, kind in zip(columns, types, strict=True)]
        cells = {
            name: column.tolist() if column.dtype.kind == "O" else column
            for name, column in zip(names, typed, strict=True)
        }
        return nw.from_dict(cells, backend=self.library).to_native()


def origin_of(table: Any) -> Origin:
    """The kind of a table as a person passed it."""
    if not nw.dependencies.is_into_dataframe(table):
        return FromArray()
    return FromFrame(nw.from_native(table, eager_only=True).implementation)


def as_type(column: Array, kind: np.dtype[Any]) -> Array:
    """A column in the type it had in training, where its cells allow it."""
    if kind.kind in "iu" and column.dtype.kind == "f":
        return np.rint(column).astype(kind) if np.isfinite(column).all() else column
    if kind.kind == "b" and column.dtype.kind == "O":
        return column.astype(bool) if all(value is not None for value in column) else column
    return column.astype(kind) if kind.kind == "f" and column.dtype.kind in "iuf" else column
