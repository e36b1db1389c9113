"""Columns of arrays and data frames for the checks. Cells of any type are accepted, also those that no model accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from scipy.sparse import csc_array

from calibayes.core.protocols import Array
from calibayes.kernels.event_counts import is_sparse
from calibayes.tables.read import is_frame, object_array, read_array, refuse_lazy, series_values
from calibayes.tables.table import missing_mask


@dataclass(frozen=True)
class Column:
    """One column of some rows.

    Attributes
    ----------
    name : str
    values : (n,) array
        Numbers, booleans, dates, durations or objects.
    """

    name: str
    values: Array

    @cached_property
    def missing(self) -> Array:
        """Which cells are missing, (n,) booleans."""
        return missing_mask(self.values)

    @cached_property
    def numbers(self) -> Array | None:
        """Numbers, dates and durations as (n,) floats, NaN where missing or infinite; None for levels and text."""
        if self.values.dtype.kind in "mM":
            return np.where(self.missing, np.nan, self.values.astype(np.int64).astype(np.float64))
        if self.values.dtype.kind not in "fiu":
            return None
        numbers = self.values.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)

    @property
    def is_text(self) -> bool:
        """Whether the cells are Python objects, such as strings."""
        return self.values.dtype.kind in "OUS"

    @cached_property
    def codes(self) -> Array:
        """Number of the distinct value of each cell, (n,), by first occurrence; -1 where missing."""
        return self._factorized[0]

    @property
    def levels(self) -> Array:
        """The distinct values, by first occurrence."""
        return self._factorized[1]

    @cached_property
    def level_rows(self) -> Array:
        """Rows of each distinct value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))

    @cached_property
    def known(self) -> int:
        """Number of cells that are not missing."""
        return int((~self.missing).sum())

    @cached_property
    def _factorized(self) -> tuple[Array, Array]:
        try:
            codes, levels = pd.factorize(self.values)
        except TypeError:  # lists and other cells without a hash
            texts = np.array([repr(value) for value in self.values], dtype=object)
            texts[self.missing] = None
            codes, levels = pd.factorize(texts)
        return np.where(self.missing, -1, codes), np.asarray(levels)


def column_count(X: Any, rows: int) -> int:
    """Number of columns. Raises ValueError unless X is a table of so many rows, TypeError if it is lazy."""
    refuse_lazy(X)
    shape = _shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(
            f"X must be a data frame or an array of shape (n, d) with at least one column, got {type(X).__name__} of shape {shape}"
        )
    if shape[0] != rows:
        raise ValueError(f"X has {shape[0]} rows and y has {rows} labels: give one label for each row")
    return int(shape[1])


def _shape(X: Any) -> tuple[int, ...]:
    return tuple(X.shape) if hasattr(X, "shape") else np.shape(np.asarray(X, dtype=object))


def read_columns(X: Any, rows: Array, columns: Array) -> tuple[Column, ...]:
    """Some columns of some rows, by position."""
    if is_frame(X):
        return tuple(_frame_columns(nw.from_native(X, eager_only=True), rows, columns))
    if is_sparse(X):
        return tuple(_sparse_columns(csc_array(X), rows, columns))
    array = np.asarray(object_array(X) if isinstance(X, list) else X)
    table = read_array(array[np.ix_(rows, columns)], [f"x{j}" for j in columns])
    return tuple(Column(name, table.column(place)) for place, name in enumerate(table.names))


def _frame_columns(frame: Any, rows: Array, columns: Array) -> Iterator[Column]:
    names = frame.columns
    for j in columns.tolist():
        series = frame[:, j][rows.tolist()]  # by position: names may be integers
        yield Column(str(names[j]), _cells(series))


def _sparse_columns(matrix: Any, rows: Array, columns: Array) -> Iterator[Column]:
    for j in columns.tolist():
        yield Column(f"x{j}", matrix[:, [j]].toarray()[:, 0][rows])


def _cells(series: Any) -> Array:
    """A column of a data frame as an array; as objects if its cells have types that no model accepts together."""
    try:
        return series_values(series)
    except (TypeError, ValueError):
        return np.asarray(series.to_numpy(), dtype=object)


# -- Discretization of a column into cells: quantile ranges of numbers, levels otherwise, and one cell for missing values

RANGES, LEVELS = 32, 1_000
"""Largest number of ranges, and of levels; all further levels share one cell."""


def cells_of(column: Column, chosen: Array, ranges: int = RANGES) -> tuple[Array, int]:
    """The cell of each row, (n,), and the number of cells; the last cell is for missing values.

    Ranges and levels are determined from the rows where ``chosen`` is true.
    """
    numbers = column.numbers
    if numbers is None:
        return _level_cells(column, chosen)
    known = np.isfinite(numbers)
    edges = np.unique(
        np.quantile(numbers[known & chosen], np.arange(1, ranges) / ranges, method="inverted_cdf")
        if (known & chosen).any()
        else np.zeros(0)
    )
    cells = np.where(known, np.searchsorted(edges, numbers, side="left"), len(edges) + 1)
    return cells, len(edges) + 2


def _level_cells(column: Column, chosen: Array) -> tuple[Array, int]:
    rows = np.bincount(column.codes[chosen] + 1, minlength=len(column.levels) + 1)[1:]
    # Ties are broken at random, not by first occurrence: cells must not depend on the order of the rows.
    ties = np.random.default_rng(0).permutation(len(rows))
    kept = np.lexsort((ties, -rows))[:LEVELS]
    places = np.full(len(column.levels) + 1, len(kept))
    places[kept] = np.arange(len(kept))
    places[-1] = len(kept) + 1  # codes of missing values are -1
    return places[column.codes], len(kept) + 2
