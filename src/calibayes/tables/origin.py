"""The kind of table that training rows came in (array, data frame), so that sampled rows are returned as the same kind."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_length


class Origin(Protocol):
    """A kind of table, with its column labels and categories."""

    def build(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        """A table of this kind from columns of shape (n,), converted to their types in training where possible."""


@dataclass(frozen=True)
class FromArray:
    """A NumPy array: numeric if all columns are numbers or booleans, of dates if all are dates, else of objects."""

    def build(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        typed = [as_type(column, dtype) for column, dtype in zip(columns, types, strict=True)]
        if any(all(column.dtype.kind in kinds for column in typed) for kinds in ("fiub", "M", "m")):
            return np.stack(typed, axis=1)
        return np.stack([column.astype(object) for column in typed], axis=1)


FROM_ARRAY = FromArray()
EAGER_LIBRARIES = frozenset(
    kind for kind in nw.Implementation if kind.is_pandas_like() or kind.is_polars() or kind.is_pyarrow()
)
"""Libraries of data frames that hold their rows in memory."""


@dataclass(frozen=True)
class FromFrame:
    """A data frame of a library, with the column labels, categorical columns and days of the training frame."""

    library: Any
    labels: tuple[Any, ...]
    categorical: tuple[bool, ...]
    days: tuple[bool, ...]
    """Whether a column is of a type of dates without a time of day."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        is_eager = isinstance(self.library, nw.Implementation) and self.library in EAGER_LIBRARIES
        require(is_eager, f"{self.library!r} is no library of data frames in memory")
        are_names = all(isinstance(label, Hashable) for label in self.labels)
        require(are_names, "labels contains a value that is no name")
        for name in ("categorical", "days"):
            require_length(name, getattr(self, name), len(self.labels))

    def build(self, names: Sequence[str], types: Sequence[np.dtype[Any]], columns: Sequence[Array]) -> Any:
        typed = [as_type(column, dtype) for column, dtype in zip(columns, types, strict=True)]
        cells = [column.tolist() if column.dtype.kind == "O" else column for column in typed]
        frame = nw.from_dict(dict(zip(names, cells, strict=True)), backend=self.library)
        if categorical_names := list(compress(names, self.categorical)):
            frame = frame.with_columns(nw.col(*categorical_names).cast(nw.String).cast(nw.Categorical))
        if day_names := list(compress(names, self.days)):
            frame = frame.with_columns(nw.col(*day_names).cast(nw.Date))
        native = frame.to_native()
        if list(self.labels) != list(names) and hasattr(native, "set_axis"):
            native = native.set_axis(list(self.labels), axis=1)
        return native


def origin_of(frame: nw.DataFrame[Any]) -> Origin:
    """The kind of a data frame."""
    dtypes = frame.schema.dtypes()
    categorical = tuple(isinstance(dtype, nw.Categorical | nw.Enum) for dtype in dtypes)
    # pandas has no such type of its own.
    days = tuple(isinstance(dtype, nw.Date) and not frame.implementation.is_pandas_like() for dtype in dtypes)
    return FromFrame(frame.implementation, tuple(frame.columns), categorical, days)


def as_type(column: Array, dtype: np.dtype[Any]) -> Array:
    """A column converted to the type it had in training, or unchanged if a value does not fit it."""
    is_numeric = column.dtype.kind in "iuf"
    if dtype.kind in "iu" and is_numeric:
        is_integer = np.isfinite(column).all() and (column == np.rint(column)).all()
        bounds = np.iinfo(dtype)
        return np.clip(column, bounds.min, bounds.max).astype(dtype) if is_integer else column
    if dtype.kind == "b":
        is_complete = np.isfinite(column).all() if is_numeric else all(value is not None for value in column)
        return column.astype(bool) if is_complete else column
    return column.astype(dtype) if dtype.kind == "f" and is_numeric else column


def like_frame(built: Any, frame: Any) -> Any:
    """A built data frame with the row index and the column types of another one, as far as its values fit them.

    Anything else, and a data frame of another library, is returned unchanged.
    """
    if not nw.dependencies.is_into_dataframe(built) or type(built) is not type(frame):
        return built
    columns, models = _wrapped(built), _wrapped(frame)
    typed = [_as_series_type(column, model) for column, model in zip(columns, models, strict=True)]
    native = nw.from_native(built).with_columns(*typed).to_native()
    return native.set_axis(frame.index, axis=0) if hasattr(frame, "index") else native


def _wrapped(frame: Any) -> list[nw.Series[Any]]:
    return list(nw.from_native(frame, eager_only=True).iter_columns())


def _as_series_type(column: nw.Series[Any], model: nw.Series[Any]) -> nw.Series[Any]:
    """A column of a built frame with the type of another one, or unchanged if a value does not fit it.

    Numbers are rounded for a type of integers. For pandas its own types are used, which narwhals does not all represent.
    """
    if model.dtype.is_temporal() and column.dtype.is_numeric():
        return column  # a time of day is in hours: another unit than that of the library
    is_rounded = model.dtype.is_integer() and column.dtype.is_float() and not column.is_null().any()
    rounded = column.round(0) if is_rounded else column
    try:
        if nw.dependencies.is_pandas_series(native := rounded.to_native()):
            # Categorical types that differ in the order of their categories are equal to pandas: no conversion.
            values = native.astype(object) if hasattr(native, "cat") else native
            typed = nw.from_native(values.astype(model.to_native().dtype), series_only=True)
        else:
            typed = rounded.cast(model.dtype)
    except (TypeError, ValueError, ArithmeticError, nw.exceptions.NarwhalsError):
        return column
    return typed if typed.null_count() == column.null_count() else column
