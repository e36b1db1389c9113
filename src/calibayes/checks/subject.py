"""The input of the checks: a sample of the labeled rows by column, and a model or the results of a comparison.

Checks use at most `MOST_ROWS` rows and about `MOST_CELLS` cells, drawn at random and kept in the order of the table, to bound
their computing time. Columns that are constant, identifiers or full of rare levels in the sample are examined again in all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
from scipy.sparse import csc_array

from calibayes.compare import FoldResult
from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.kernels.event_counts import is_sparse
from calibayes.model.checked_rows import read_target
from calibayes.model.splits import shuffled_folds
from calibayes.model.training_rows import HeldOut
from calibayes.tables.conversion import ColumnConversion, known_converters
from calibayes.tables.read import is_frame, object_array, read_array, refuse_lazy, series_values
from calibayes.tables.table import Table, missing_mask


@dataclass(frozen=True)
class ExaminedColumn:
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
    shape = tuple(X.shape) if hasattr(X, "shape") else np.shape(np.asarray(X, dtype=object))
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(
            f"X must be a data frame or an array of shape (n, d) with at least one column, got {type(X).__name__} of shape {shape}"
        )
    if shape[0] != rows:
        raise ValueError(f"X has {shape[0]} rows and y has {rows} labels: give one label for each row")
    return int(shape[1])


def read_columns(
    X: Any, rows: Array, columns: Array, conversion: ColumnConversion | None = None
) -> tuple[ExaminedColumn, ...]:
    """Some columns of some rows, by position, with the ``conversion`` of a model, or that which a model would learn."""
    if is_frame(X):
        frame = nw.from_native(X, eager_only=True)
        # By position: names may be integers.
        parts = [(str(frame.columns[j]), frame[:, j][rows.tolist()]) for j in columns.tolist()]
        return tuple(
            ExaminedColumn(name, _cells(part))
            if isinstance(part.dtype, nw.Categorical | nw.Enum)
            else _as_modeled(name, _cells(part), conversion)
            for name, part in parts
        )
    if is_sparse(X):
        matrix = csc_array(X)
        cells = ((j, matrix[:, [j]].toarray()[:, 0][rows]) for j in columns.tolist())
        return tuple(ExaminedColumn(f"x{j}", values) for j, values in cells)
    array = np.asarray(object_array(X) if isinstance(X, list | tuple) else X)
    table = read_array(array[np.ix_(rows, columns)], [f"x{j}" for j in columns])
    return tuple(_as_modeled(name, table.column(place), conversion) for place, name in enumerate(table.names))


def _as_modeled(name: str, values: Array, conversion: ColumnConversion | None) -> ExaminedColumn:
    """A column, of text as dates if a model reads it so."""
    if values.dtype.kind not in "OU":
        return ExaminedColumn(name, values)
    table = Table((name,), (values.astype(object),))
    converter = known_converters(table, conversion).get(name)
    return ExaminedColumn(name, values if converter is None else converter.read(table, 0))


def _cells(series: Any) -> Array:
    """A column of a data frame as an array; as objects if its cells have types that no model accepts together."""
    try:
        return series_values(series)
    except (TypeError, ValueError):
        return np.asarray(series.to_numpy(), dtype=object)


# -- Discretization of a column into cells: quantile ranges of numbers, levels otherwise, and one cell for missing values

RANGES, LEVELS = 32, 1_000
"""Largest number of ranges, and of levels; all further levels share one cell."""


def cells_of(column: ExaminedColumn, chosen: Array) -> tuple[Array, int]:
    """The cell of each row, (n,), and the number of cells; the last cell is for missing values.

    Ranges and levels are determined from the rows where ``chosen`` is true.
    """
    numbers = column.numbers
    if numbers is None:
        return _level_cells(column, chosen)
    known = np.isfinite(numbers)
    edges, values = np.zeros(0), numbers[known & chosen]
    if len(values):
        edges = np.unique(np.quantile(values, np.arange(1, RANGES) / RANGES, method="inverted_cdf"))
    cells = np.where(known, np.searchsorted(edges, numbers, side="left"), len(edges) + 1)
    return cells, len(edges) + 2


def _level_cells(column: ExaminedColumn, chosen: Array) -> tuple[Array, int]:
    rows = np.bincount(column.codes[chosen] + 1, minlength=len(column.levels) + 1)[1:]
    # Ties are broken at random, not by first occurrence: cells must not depend on the order of the rows.
    ties = np.random.default_rng(0).permutation(len(rows))
    kept = np.lexsort((ties, -rows))[:LEVELS]
    places = np.full(len(column.levels) + 1, len(kept))
    places[kept] = np.arange(len(kept))
    places[-1] = len(kept) + 1  # codes of missing values are -1
    return places[column.codes], len(kept) + 2


# -- The rows, and the model or the results ------------------------------------------------------------------

MODEL, RESULTS = "model", "results"
"""Inputs that a check may need besides the table: a fitted model, the fold results of a comparison."""
MOST_ROWS = 50_000
MOST_CELLS = 5_000_000
"""Most cells that are examined, but at least `LEAST_ROWS` rows."""
LEAST_ROWS = 1_000
MOST_COLUMNS = 5_000
"""Most columns that are examined; if there are more, they are drawn at random."""


@dataclass(frozen=True)
class Subject:
    """Labeled rows, and optionally a model that was fitted to them or the results of a comparison.

    Attributes
    ----------
    columns : tuple of ExaminedColumn
        The columns of the sampled rows.
    codes : (n,) integers
        Class of each sampled row, a position in ``classes``.
    classes : tuple of str
    class_rows : (k,) integers
        Labeled rows of each class in the whole table.
    total_rows, total_columns : int
        Labeled rows and columns of the whole table.
    whole : function
        Position in ``columns`` -> that column in all labeled rows.
    model : fitted classifier, optional
    results : tuple of FoldResult
    held_out : HeldOut, optional
        Predictions for rows that the model was not trained on; by default ``model.held_out_``.
    compared_rows : int, optional
        Number of rows that the results are from; by default all labeled rows.
    """

    columns: tuple[ExaminedColumn, ...]
    codes: Array
    classes: tuple[str, ...]
    class_rows: Array
    total_rows: int
    total_columns: int
    whole: Callable[[int], ExaminedColumn]
    model: Any = None
    results: tuple[FoldResult, ...] = ()
    held_out: HeldOut | None = None
    compared_rows: int | None = None

    @property
    def n(self) -> int:
        """Number of sampled rows."""
        return len(self.codes)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def is_complete(self) -> bool:
        """Whether all labeled rows are examined."""
        return self.n == self.total_rows

    @property
    def given(self) -> set[str]:
        """Which of `MODEL` and `RESULTS` are given."""
        given = {MODEL: self.model is not None, RESULTS: bool(self.results)}
        return {name for name in given if given[name]}

    @property
    def most_frequent_error(self) -> float:
        """Share of all labeled rows that are not of the most frequent class."""
        return float(1.0 - self.class_rows.max() / self.class_rows.sum())

    @property
    def scope(self) -> str:
        """Which rows and columns are examined."""
        rows = f"all {self.n:,} rows" if self.is_complete else f"{self.n:,} of {self.total_rows:,} rows"
        d, total = len(self.columns), self.total_columns
        columns = counted(d, "column") if d == total else f"{d:,} of {total:,} columns"
        is_all = self.is_complete and d == total
        return f"{rows}, {columns}" + ("" if is_all else " (drawn at random)")

    def confirmed(self, test: Callable[[ExaminedColumn], bool]) -> list[ExaminedColumn]:
        """The columns of the sampled rows that have a property, there and in all labeled rows."""
        places = [j for j, column in enumerate(self.columns) if test(column)]
        return [self.columns[j] for j in places if self.is_complete or test(self.whole(j))]

    @cached_property
    def halves(self) -> Array:
        """0 or 1 for each row: stratified random halves; -1 for the only row of a class."""
        return shuffled_folds(self.codes, 2, seed=0)


def subject_of(
    X: Any,
    y: Any,
    model: Any = None,
    results: Sequence[FoldResult] | None = None,
    *,
    held_out: HeldOut | None = None,
    compared_rows: int | None = None,
) -> Subject:
    """The input of the checks. Raises ValueError if X and y have different lengths, or there is only one class."""
    target = read_target(y, unlabeled=True)
    d = column_count(X, len(target.codes))
    labeled = np.flatnonzero(target.codes >= 0)
    rng, conversion = np.random.default_rng(0), getattr(model, "conversion_", None)
    rows = _sample(labeled, int(np.clip(MOST_CELLS // d, LEAST_ROWS, MOST_ROWS)), rng)
    columns = _sample(np.arange(d), MOST_COLUMNS, rng)
    return Subject(
        columns=read_columns(X, rows, columns, conversion),
        codes=target.codes[rows],
        classes=tuple(str(label) for label in target.classes),
        class_rows=np.bincount(target.codes[labeled], minlength=len(target.classes)),
        total_rows=len(labeled),
        total_columns=d,
        whole=lambda j: read_columns(X, labeled, columns[[j]], conversion)[0],
        model=model,
        results=tuple(results or ()),
        held_out=held_out,
        compared_rows=compared_rows,
    )


def _sample(positions: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many positions, in their order."""
    return positions if len(positions) <= most else np.sort(rng.choice(positions, most, replace=False))
