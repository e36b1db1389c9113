"""Counts of the training rows in at most 32 cells of each column, by class: the reference that new rows are compared with.

The cells are chosen on some of the rows and counted on the others, so that counted rows and new rows are exchangeable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.analysis.two_sample_tests import SampleCounts
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_ascending, require_instance
from calibayes.tables.table import Table, distinct_values

MOST_CELLS = 32
"""Cells of a column, besides that of missing values."""
MOST_COUNTS = 2_000_000
"""Counts of all columns and classes together; wide tables have fewer cells in a column."""
CELL_ROWS = 2_000
"""Most rows that cells are chosen on; of fewer than four times as many rows, a quarter."""


@dataclass(frozen=True)
class ColumnCells:
    """Cells of one column and the training rows in them.

    Attributes
    ----------
    name : str
    edges : (cells - 2,) array, or None
        Lower ends of all cells of a number but the first; None for a column of levels.
    levels : tuple of str
        Levels with a cell of their own, before the cell of all others.
    counts : (k, cells) integers
        The last cell is that of missing values.
    """

    name: str
    edges: Array | None
    levels: tuple[str, ...]
    counts: Array

    def verify(self) -> None:
        """Raises ValueError if the fields, which may come from a model file, do not fit together."""
        cells = 2 + len(self.levels if self.edges is None else self.edges)
        require_array("counts", self.counts, (None, cells), "iu")
        require(bool((self.counts >= 0).all()), "counts contains negative numbers")
        if self.edges is not None:
            require_ascending("edges", require_array("edges", self.edges, (None,)))

    def compared(self, table: Table, j: int) -> SampleCounts:
        """The training rows and those of column j of a table, by cell."""
        codes = cell_codes(table, j, self.edges, self.levels)
        new = np.bincount(codes, minlength=self.counts.shape[1])
        return SampleCounts(self.counts, new, self.edges is not None)


@dataclass(frozen=True)
class DriftReference:
    """What new rows are compared with: sums over training rows, and predictions for held-out rows.

    Attributes
    ----------
    columns : tuple of ColumnCells
    codes : (m,) integers
        Classes of rows that ``model`` was not trained on.
    log_posterior : (m, k) array
        log p(class | x) of these rows.
    log_density : (m,) array or None
        log p(x) of these rows; None for a model without densities.
    model : estimator, optional
        The model of these predictions; None if it is the one that holds this reference.
    """

    columns: tuple[ColumnCells, ...]
    codes: Array
    log_posterior: Array
    log_density: Array | None = None
    model: Any = None

    def verify(self) -> None:
        """Raises ValueError if the fields, which may come from a model file, do not fit together."""
        m, k = require_array("log_posterior", self.log_posterior, (None, None)).shape
        require_array("codes", self.codes, (m,), "iu")
        is_class = (self.codes >= 0) & (self.codes < k)
        require(m > 0 and bool(is_class.all()), "codes of classes that do not exist")
        require(not bool(np.isnan(self.log_posterior).any()), "log_posterior contains NaN")
        if self.log_density is not None:
            require_array("log_density", self.log_density, (m,))
        for column in self.columns:
            require_instance("columns", column, ColumnCells)
            require(len(column.counts) == k, "columns has counts of other classes")
        if self.model is not None:
            require(len(getattr(self.model, "classes_", ())) == k, "model has other classes")


def compared_columns(table: Table) -> Iterator[int]:
    """Positions of the columns that are compared: all that were given but identifiers."""
    return (j for j in table.used if not table.is_derived(j))


def counted_columns(table: Table, codes: Array, k: int) -> tuple[ColumnCells, ...]:
    """Cells and counts of all columns of training rows with class codes."""
    chosen = np.random.default_rng(0).permutation(table.n)
    share = min(CELL_ROWS, table.n // 4)
    first, rest = np.sort(chosen[:share]), np.sort(chosen[share:])
    most = int(np.clip(MOST_COUNTS // (k * len(table.names)), 3, MOST_CELLS))
    sample, counted, classes = table.rows(first), table.rows(rest), codes[rest]
    return tuple(_counted(sample, counted, classes, j, k, most) for j in compared_columns(table))


def _counted(sample: Table, counted: Table, classes: Array, j: int, k: int, most: int) -> ColumnCells:
    values = numbers_of(sample, j)
    edges = None if values is None else _edges(values, most)
    levels = _most_frequent_levels(sample, j, most) if edges is None else ()
    cells = 2 + len(levels if edges is None else edges)
    codes = cell_codes(counted, j, edges, levels)
    counts = np.bincount(classes * cells + codes, minlength=k * cells).reshape(k, cells)
    return ColumnCells(counted.names[j], edges, levels, counts)


def numbers_of(table: Table, j: int) -> Array | None:
    """Column j as numbers, NaN where missing; None if it holds levels."""
    if table.is_numeric(j):
        return np.asarray(table.column(j), dtype=np.float64)
    if table.dtype_kind(j) in "mM":
        column = table.column(j)
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    return None


def _edges(values: Array, most: int) -> Array:
    """Lower ends of the cells: quantiles of the values that are known, without the least."""
    known = values[np.isfinite(values)]
    if not len(known):
        return np.zeros(0)
    levels = np.unique(np.quantile(known, np.arange(most) / most, method="inverted_cdf"))
    return levels[levels > known.min()]


def _most_frequent_levels(table: Table, j: int, most: int) -> tuple[str, ...]:
    """The most frequent levels."""
    values, codes = distinct_values(table, j)
    counts = np.bincount(codes[codes < len(values)], minlength=len(values))
    return tuple(str(values[i]) for i in np.argsort(-counts, kind="stable")[: most - 1])


def cell_codes(table: Table, j: int, edges: Array | None, levels: tuple[str, ...]) -> Array:
    """The cell of each row in column j, (n,)."""
    if edges is None:
        values, codes = distinct_values(table, j)
        places: dict[Any, int] = {level: cell for cell, level in enumerate(levels)}
        cells = np.array([places.get(str(value), len(levels)) for value in values] + [len(levels) + 1])
        return np.asarray(cells[codes])
    numbers = numbers_of(table, j)
    if numbers is None:
        raise ValueError(f"column {table.names[j]!r} held numbers in training, and does not now")
    return np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="right"))
