"""Columns as pandas or polars data frames, or as NumPy arrays of several types, orders and strides."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import strategies as st

from calibayes.testing.random_tables.columns import Column, Draw

INTEGERS = ("integer", "count", "huge integer")
NUMBERS = ("number", "far number", "extreme number", "infinite number", *INTEGERS)
LIBRARIES = ("numpy", "pandas", "polars")
LAYOUTS = ("C", "F", "reversed", "every second column", "every second row", "read only")


def installed_libraries() -> tuple[str, ...]:
    """The libraries among `LIBRARIES` that can be imported."""
    return tuple(library for library in LIBRARIES if find_spec(library) is not None)


def draw_containers(draw: Draw, columns: list[Column], library: str) -> tuple[Any, Any]:
    """The training rows and the new rows as tables of a library, with the same types."""
    if library == "numpy":
        return _arrays(draw, columns)
    choices = [draw(st.integers(0, 2)) for _ in columns]
    make = _pandas_frame if library == "pandas" else _polars_frame
    return make(columns, choices, "training"), make(columns, choices, "new")


def _pandas_frame(columns: list[Column], choices: list[int], part: str) -> Any:
    import pandas as pd

    series = {
        column.name: pd.Series(getattr(column, part), dtype=_pandas_type(column, choice))
        for column, choice in zip(columns, choices, strict=True)
    }
    return pd.DataFrame(series)


def _pandas_type(column: Column, choice: int) -> str:
    """The name of a type that holds the cells of a column."""
    if column.kind in INTEGERS:
        types = ("Int64", "float64", "object") if column.has_missing else ("int64", "Int64", "float64")
    elif column.kind in NUMBERS:
        types = ("float64", "Float64", "float64")
    elif column.kind == "flag":
        types = ("boolean", "object", "category") if column.has_missing else ("bool", "boolean", "object")
    else:
        types = ("object", "category", "string")
    return types[choice]


def _polars_frame(columns: list[Column], choices: list[int], part: str) -> Any:
    import polars as pl

    series = [
        pl.Series(column.name, getattr(column, part), dtype=_polars_type(column, choice))
        for column, choice in zip(columns, choices, strict=True)
    ]
    return pl.DataFrame(series)


def _polars_type(column: Column, choice: int) -> Any:
    import polars as pl

    if column.kind in INTEGERS:
        return pl.Int64
    if column.kind in NUMBERS:
        return pl.Float64
    if column.kind == "flag":
        return pl.Boolean
    return pl.Categorical if choice else pl.String


def _arrays(draw: Draw, columns: list[Column]) -> tuple[Any, Any]:
    """Arrays of the training rows and the new rows. What is not a number makes them arrays of objects."""
    layout, dtype = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(_array_types(columns)))
    training, new = (_array(columns, part, dtype) for part in ("training", "new"))
    return _in_layout(training, layout), _in_layout(new, layout)


def _array_types(columns: list[Column]) -> tuple[Any, ...]:
    """Types of an array that holds the cells of all columns."""
    kinds = {column.kind for column in columns}
    if not kinds <= {*NUMBERS, "flag"}:
        return (object,)
    if any(column.has_missing for column in columns) or not kinds <= {*INTEGERS, "flag"}:
        return (np.float64,) if "extreme number" in kinds else (np.float64, np.float32)
    if kinds == {"flag"}:
        return (np.bool_, np.float64, np.uint8)
    return (np.int64, np.float64) if "huge integer" in kinds else (np.int64, np.float64, np.int8)


def _array(columns: list[Column], part: str, dtype: Any) -> Any:
    cells = [getattr(column, part) for column in columns]
    if dtype is not object and any(column.has_missing for column in columns):
        cells = [[np.nan if cell is None else cell for cell in column] for column in cells]
    array = np.empty((len(cells[0]), len(cells)), dtype=dtype)
    for j, column in enumerate(cells):
        array[:, j] = column
    return array


def _in_layout(array: Any, layout: str) -> Any:
    """The same array in another memory layout."""
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return np.flip(np.flip(array).copy())
    if layout == "every second column":
        return np.repeat(array, 2, axis=1)[:, ::2]
    if layout == "every second row":
        return np.repeat(array, 2, axis=0)[::2]
    if layout == "read only":
        array.flags.writeable = False
    return array
