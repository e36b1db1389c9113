"""Columns of Arrow as arrays: the same values and types that `tables.read.read_frame` finds, without an object per row."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.arrow_text import coded_text, holds_text, one_array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.read import series_values
from calibayes.tables.streams.arrow.modules import pyarrow


def stored_column(column: Any, name: str) -> Array | CodedColumn:
    """A chunked array of Arrow as an array, or as a `CodedColumn` if it holds text, or booleans with missing cells."""
    types, kind = pyarrow().types, column.type
    if holds_text(kind):
        return coded_text(column)
    if types.is_boolean(kind):
        return _booleans(column)
    if types.is_float64(kind) or (types.is_integer(kind) and not column.null_count):
        return one_array(column).to_numpy(zero_copy_only=False)
    return series_values(nw.from_native(column, series_only=True).alias(name))


def _booleans(column: Any) -> Array | CodedColumn:
    if not column.null_count:
        return one_array(column).to_numpy(zero_copy_only=False)
    places = column.cast(pyarrow().int8()).fill_null(2).to_numpy()
    return _used(np.array([False, True], dtype=object), places)


def _used(values: Array, places: Array) -> CodedColumn:
    """A coded column from places in sorted values (v where missing), without the values that do not occur."""
    occurs = np.bincount(places, minlength=len(values) + 1)[:-1] > 0
    new_codes = np.append(np.cumsum(occurs) - 1, occurs.sum())
    return CodedColumn(values[occurs], new_codes[places])
