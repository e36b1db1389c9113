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
    """Columns of a data frame of some library, with its own column labels and categories."""

    library: Any
    labels: tuple[Any, ...]
    categorical: tuple[bool, ...]

    def made_of(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        typed = [as_type(column, kind) for column, kind in zip(columns, types, strict=True)]
        cells = {
            name: column.tolist() if column.dtype.kind == "O" else column
            for name, column in zip(names, typed, strict=True)
        }
        frame = nw.from_dict(cells, backend=self.library)
        declared = [name for name, yes in zip(names, self.categorical, strict=True) if yes]
        if declared:
            frame = frame.with_columns(nw.col(*declared).cast(nw.String).cast(nw.Categorical))
        native = frame.to_native()
        if list(self.labels) != list(names) and hasattr(native, "set_axis"):
            native = native.set_axis(list(self.labels), axis=1)
        return native


def origin_of(table: Any) -> Origin:
    """The kind of a table as a person passed it."""
    if not nw.dependencies.is_into_dataframe(table):
        return FromArray()
    frame = nw.from_native(table, eager_only=True)
    declared = tuple(isinstance(kind, nw.Categorical | nw.Enum) for kind in frame.schema.dtypes())
    return FromFrame(frame.implementation, tuple(frame.columns), declared)


def as_type(column: Array, kind: np.dtype[Any]) -> Array:
    """A column in the type it had in training, where its cells allow it."""
    numeric = column.dtype.kind in "iuf"
    if kind.kind in "iu" and numeric:
        whole = np.isfinite(column).all() and (column == np.rint(column)).all()
        bounds = np.iinfo(kind)
        return np.clip(column, bounds.min, bounds.max).astype(kind) if whole else column
    if kind.kind == "b":
        known = np.isfinite(column).all() if numeric else all(value is not None for value in column)
        return column.astype(bool) if known else column
    return column.astype(kind) if kind.kind == "f" and numeric else column
