"""Sums of columns that a model keeps, so that its encoders can be fitted again when rows are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_finite
from calibayes.tables import summary as limits
from calibayes.tables.summary import ColumnSummary, Moments, Sample, TableSummary, values_summary
from calibayes.tables.summary_sums import DistinctSums
from calibayes.tables.table import Table


@dataclass(frozen=True)
class KeptSums:
    """Rows and class weights of every distinct value of some columns, over all rows so far.

    A column with more than `MOST_DISTINCT` distinct numbers would be too large: then no sums are kept any more.
    """

    n: int
    """Number of rows."""
    weight: float
    """Total weight of the rows."""
    columns: Mapping[str, DistinctSums] = field(default_factory=dict)
    """Position of a column, as a string -> its sums."""
    exceeding: str = ""
    """The name of a column with too many distinct numbers; then there are no columns."""

    def plus(self, other: KeptSums, names: Sequence[str]) -> KeptSums:
        """The sums of the rows of both; ``names`` are those of all columns."""
        total = replace(self, n=self.n + other.n, weight=self.weight + other.weight)
        if exceeding := self.exceeding or other.exceeding:
            return replace(total, columns={}, exceeding=exceeding)
        columns = {key: sums.plus(other.columns[key], names[int(key)]) for key, sums in self.columns.items()}
        for key, column in columns.items():
            if len(column.values) > limits.MOST_DISTINCT and column.values.dtype.kind in "fiu":
                return replace(total, columns={}, exceeding=names[int(key)])
        return replace(total, columns=columns)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require(self.n >= 1, f"kept sums of {self.n} rows")
        require_finite("weight of kept sums", np.asarray(self.weight, dtype=np.float64), (), least=0.0)
        require(not (self.columns and self.exceeding), "kept sums of columns that are too large")
        for key, sums in self.columns.items():
            require(key.isdecimal(), f"{key!r} is no position of a column")
            require(int(sums.rows.sum()) <= self.n, f"kept sums of column {key} have too many rows")


def kept_sums(summary: TableSummary, indices: Sequence[int], k: int) -> KeptSums:
    """The sums of the columns at these positions, with weights by class, (distinct values, k + 1)."""
    nothing = KeptSums(summary.n, summary.total_weight)
    columns = {}
    for j in indices:
        column = summary.column(j)
        if not column.is_exact:
            return replace(nothing, exceeding=summary.names[j])
        by_class = column.class_weights
        weights = np.zeros((len(column.low), k + 1))  # the last classes may have no rows in this table
        weights[:, : by_class.shape[1] - 1], weights[:, k] = by_class[:, :-1], by_class[:, -1]
        columns[str(j)] = DistinctSums(column.low, column.rows, weights)
    return replace(nothing, columns=columns)


def values_table(sums: KeptSums, names: tuple[str, ...]) -> Table:
    """A table with the distinct values of each column, the last one repeated to equal lengths; other columns are 0."""
    size = max((len(column.values) for column in sums.columns.values()), default=0)
    columns: list[Array] = [np.zeros(size)] * len(names)
    for key, column in sums.columns.items():
        columns[int(key)] = column.values[np.minimum(np.arange(size), len(column.values) - 1)]
    return Table(names, tuple(columns))


@dataclass(frozen=True, eq=False)
class KeptSummary(TableSummary):
    """The summary of all rows so far, of which only sums are kept; ``head`` has the newest rows."""

    sums: KeptSums
    column_types: tuple[np.dtype[Any], ...]
    """The type of each column over all rows."""

    @property
    def n(self) -> int:
        return self.sums.n

    @property
    def total_weight(self) -> float:
        return self.sums.weight

    @property
    def unit(self) -> float:
        self._refuse("the weights of all rows")

    @property
    def sample(self) -> Sample:
        self._refuse("rows")

    def types(self) -> tuple[np.dtype[Any], ...]:
        return self.column_types

    def stored_type(self, j: int) -> np.dtype[Any]:
        return self.column_types[j]

    def dtype_kind(self, j: int) -> str:
        return self.column_types[j].kind

    def column(self, j: int) -> ColumnSummary:
        sums = self._sums(j)
        return values_summary(sums.values, sums.rows, sums.weights.sum(axis=1), lambda: sums.weights)

    def missing_rows(self, j: int) -> int:
        return self.n - int(self._sums(j).rows.sum())

    def missing_weight(self, j: int) -> float:
        return self.total_weight - float(self._sums(j).weights.sum())

    def moments(self, indices: Sequence[int]) -> Moments:
        self._refuse("moments")

    def check_numbers(self, indices: Sequence[int]) -> None:
        self._refuse("rows")

    def blocks(self, encoder: Any, counts: Any) -> Any:
        self._refuse("rows")

    def _sums(self, j: int) -> DistinctSums:
        return self.sums.columns[str(j)]

    def _refuse(self, needed: str) -> NoReturn:
        raise ValueError(
            f"keep_summary=True keeps counts of the values of single columns, and an encoder of this model learns from {needed}: "
            "set keep_summary=False"
        )
