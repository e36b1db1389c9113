"""Columns of numbers as positions on a uniform grid, for kernel densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_finite, require_length
from calibayes.encoders.encoder import FixedLayout
from calibayes.kernels.grids import TAILS, log_volumes
from calibayes.tables.summary import ColumnSummary, TableSummary
from calibayes.tables.table import Table, numeric_matrix
from calibayes.tables.text import counted

REACH = 5.0
"""Largest distance of a grid from the quartiles, in interquartile ranges: about seven standard deviations of a normal."""
PADDING = 3.0
"""Margin beyond the values on a grid, in bandwidths of the normal reference rule."""
LEAST_PADDING = 1e-9
"""Least margin, relative to the values on a grid: neighboring points must differ in floating point."""
ZERO_PADDING = 0.5
"""Margin of a column that is all zero."""
MOST_CELLS, MOST_POINTS = 2**24, 128
"""Points of all columns of an encoder from a model file: at most the first number, or the second in each column."""


@dataclass(frozen=True)
class Grid(FixedLayout):
    """Numbers as positions on a uniform grid over the bulk of each column: 0 is the first point, 1 the second, ...

    The grid covers the range of the values, cut at five interquartile ranges beyond the quartiles, with a margin of
    three bandwidths on both sides. Positions are not rounded; outliers beyond the grid have positions below 0 or above
    ``points - 1``. A missing value is NaN.

    Parameters
    ----------
    points : int, default=128
        Number of points of the grid of each column.
    """

    points: int = 128
    indices: tuple[int, ...] = ()
    origin: Array = field(default_factory=lambda: np.zeros(0))
    """Value at the first point of each column, (d,)."""
    step: Array = field(default_factory=lambda: np.zeros(0))
    """Distance between neighboring points of each column, (d,)."""
    outliers: tuple[int, ...] = ()
    """Number of training rows beyond the grid of each column."""

    data_dependence = "grids over numbers are found in the training rows"

    def __post_init__(self) -> None:
        if self.points < 4:
            raise ValueError(f"a grid needs at least four points, got {self.points}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Grid:
        columns = [summary.numbers(j) for j in indices]
        ends = np.array([grid_ends(column) for column in columns])
        outliers = [_rows_beyond(column, *pair) for column, pair in zip(columns, ends, strict=True)]
        return replace(
            self,
            indices=tuple(indices),
            origin=ends[:, 0],
            step=(ends[:, 1] - ends[:, 0]) / (self.points - 1),
            outliers=tuple(outliers),
        )

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        d = len(self.indices)
        require(
            self.points * d <= max(MOST_CELLS, MOST_POINTS * d),
            f"{self.points} points in each of {d} columns are more than {MOST_CELLS} together",
        )
        require_finite("origin", self.origin, (d,))
        require(bool((require_finite("step", self.step, (d,)) > 0).all()), "step must be positive")
        require_length("outliers", self.outliers, d)
        require(all(outliers >= 0 for outliers in self.outliers), "outliers contains negative numbers")

    def encode(self, table: Table) -> Array:
        columns = numeric_matrix(table, self.indices).astype(np.float64)
        return np.asarray((columns - self.origin) / self.step)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list((self.origin + self.step * encoded).T)

    def layout(self) -> Mapping[str, Any]:
        d = len(self.indices)
        return {
            "levels": (self.points + TAILS,) * d,
            "ordered": (self.points,) * d,
            "log_volume": np.concatenate([log_volumes(self.points, step) for step in self.step]),
            "gridded": True,
        }

    def unite(self, other: Grid) -> tuple[Grid, None, None]:
        if not (np.array_equal(self.origin, other.origin) and np.array_equal(self.step, other.step)):
            raise ValueError("models with different grids of numbers cannot be merged")
        return self, None, None

    def remarks(self) -> list[str]:
        return [
            f"{self.points} points" + (f", {counted(outliers, 'row')} beyond them" if outliers else "")
            for outliers in self.outliers
        ]


def grid_ends(column: ColumnSummary) -> tuple[float, float]:
    """First and last point of the grid of a column; rows of weight 0 are ignored."""
    has_weight = column.weight > 0 if column.weight.any() else column.weight == 0
    values = column.values[has_weight]
    weights = column.weight[has_weight] if column.weight.any() else np.ones(len(values))
    low, high = _quartiles(values, weights)
    if low == high:  # half of the rows have one value: take the quartiles of the distinct values
        low, high = _quartiles(values, column.distinct[has_weight])
    reach = REACH * (high - low)
    first, last = column.low[has_weight][0], column.high[has_weight][-1]
    ends = max(first, low - reach), min(last, high + reach)
    padding = PADDING * _bandwidth(values, weights, ends)
    padding = max(padding, LEAST_PADDING * max(abs(ends[0]), abs(ends[1]))) or ZERO_PADDING
    return float(ends[0] - padding), float(ends[1] + padding)


def _rows_beyond(column: ColumnSummary, first: float, last: float) -> int:
    """Number of rows beyond the first and last point of a grid."""
    return int(column.rows[(column.low < first) | (column.high > last)].sum())


def _quartiles(values: Array, weights: Array) -> Array:
    """Lower and upper quartile of ascending values: the smallest value whose cumulative weight reaches the share."""
    cumulative = np.cumsum(weights)
    return np.asarray(values[np.searchsorted(cumulative, np.array([0.25, 0.75]) * cumulative[-1])])


def _bandwidth(values: Array, weights: Array, ends: tuple[float, float]) -> float:
    """Bandwidth of the normal reference rule, standard deviation times n ** -0.2, for the values between the ends."""
    inside = (values >= ends[0]) & (values <= ends[1])
    n = float(weights[inside].sum())
    mean = np.average(values[inside], weights=weights[inside])
    variance = np.average((values[inside] - mean) ** 2, weights=weights[inside])
    return float(np.sqrt(variance) * max(n, 1.0) ** -0.2)
