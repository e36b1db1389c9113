"""The input of the checks: a sample of the labeled rows by column, and a model or the results of a comparison.

Checks use at most `MOST_ROWS` rows and about `MOST_CELLS` cells, drawn at random and kept in the order of the table, to bound
their computing time. Columns that are constant, identifiers or full of rare levels in the sample are examined again in all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calibayes.checks.columns import Column, column_count, read_columns
from calibayes.compare import FoldResult
from calibayes.core.protocols import Array
from calibayes.model.labels import read_target
from calibayes.model.remembered import HeldOut
from calibayes.model.splits import shuffled_folds
from calibayes.tables.text import counted

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
    columns : tuple of Column
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

    columns: tuple[Column, ...]
    codes: Array
    classes: tuple[str, ...]
    class_rows: Array
    total_rows: int
    total_columns: int
    whole: Callable[[int], Column]
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
    def has_model(self) -> bool:
        """Whether a fitted model is given."""
        return self.model is not None

    @property
    def has_results(self) -> bool:
        """Whether results of a comparison are given."""
        return bool(self.results)

    @property
    def most_frequent_error(self) -> float:
        """Share of all labeled rows that are not of the most frequent class."""
        return float(1.0 - self.class_rows.max() / self.class_rows.sum())

    @property
    def scope(self) -> str:
        """Which rows and columns are examined."""
        rows = f"all {self.n:,} rows" if self.is_complete else f"{self.n:,} of {self.total_rows:,} rows"
        d = len(self.columns)
        columns = (
            counted(d, "column") if d == self.total_columns else f"{d:,} of {self.total_columns:,} columns"
        )
        is_all = self.is_complete and d == self.total_columns
        return f"{rows}, {columns}" + ("" if is_all else " (drawn at random)")

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
    rng = np.random.default_rng(0)
    rows = _sample(labeled, int(np.clip(MOST_CELLS // d, LEAST_ROWS, MOST_ROWS)), rng)
    columns = _sample(np.arange(d), MOST_COLUMNS, rng)
    return Subject(
        columns=read_columns(X, rows, columns),
        codes=target.codes[rows],
        classes=tuple(str(label) for label in target.classes),
        class_rows=np.bincount(target.codes[labeled], minlength=len(target.classes)),
        total_rows=len(labeled),
        total_columns=d,
        whole=lambda j: read_columns(X, labeled, columns[[j]])[0],
        model=model,
        results=tuple(results or ()),
        held_out=held_out,
        compared_rows=compared_rows,
    )


def _sample(positions: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many positions, in their order."""
    if len(positions) <= most:
        return positions
    return np.sort(rng.choice(positions, most, replace=False))
