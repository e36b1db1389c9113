"""Numbers as positions on a uniform grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import counted, numbers, refuse_empty
from calibayes.kernels.levels.grid import TAILS, log_volumes
from calibayes.tables.read import Table

REACH = 5.0
"""Interquartile ranges beyond the quartiles that a grid goes at most: about seven standard deviations of a normal."""
PADDING = 3.0
"""Bandwidths of a normal reference that a grid goes beyond the values on it."""
LEAST = 1e-9
"""Least padding, relative to the numbers on a grid: steps must be told apart in floating point."""
ALONE = 0.5
"""Padding about a column that is all zero."""


@dataclass(frozen=True)
class Grid:
    """A uniform grid over the bulk of each column, and positions on it: 0 at the first point, one more at each next.

    It covers the values, or where some are far out what lies within five interquartile ranges of the quartiles, and
    three bandwidths more on both sides. Positions beyond it are below 0 or above the last point. A missing cell is NaN.

    Parameters
    ----------
    points : int, default=128
    """

    points: int = 128
    indices: tuple[int, ...] = ()
    origin: Array = field(default_factory=lambda: np.zeros(0))
    """Value at the first point of each column, (d,)."""
    step: Array = field(default_factory=lambda: np.zeros(0))
    """Distance of the points of each column, (d,)."""
    beyond: tuple[int, ...] = ()
    """How many training rows lie beyond each grid."""

    def __post_init__(self) -> None:
        if self.points < 4:
            raise ValueError(f"a grid needs at least four points, got {self.points}")

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Grid:
        columns = numbers(table, indices).astype(np.float64)
        known = ~np.isnan(columns)
        refuse_empty(table, indices, ~known)
        ends = np.array(
            [covered(x[there], weight[there]) for x, there in zip(columns.T, known.T, strict=True)]
        )
        beyond = np.sum((columns < ends[:, 0]) | (columns > ends[:, 1]), axis=0)
        return replace(
            self,
            indices=tuple(indices),
            origin=ends[:, 0],
            step=(ends[:, 1] - ends[:, 0]) / (self.points - 1),
            beyond=tuple(beyond.tolist()),
        )

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices).astype(np.float64)
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

    def extend(self, table: Table) -> tuple[Grid, None]:
        return self, None

    def unite(self, other: Grid) -> tuple[Grid, None, None]:
        if not (np.array_equal(self.origin, other.origin) and np.array_equal(self.step, other.step)):
            raise ValueError(
                "the models have different grids: numbers that were counted on two cannot be added up"
            )
        return self, None, None

    def restricted_to(self, counts: Array) -> tuple[Grid, None]:
        return self, None

    data_dependence = "grids over numbers are laid over the training rows"

    def remarks(self) -> list[str]:
        return [
            f"{self.points} points" + (f", {counted(beyond, 'row')} beyond them" if beyond else "")
            for beyond in self.beyond
        ]


def covered(values: Array, weight: Array) -> tuple[float, float]:
    """The ends of the grid of a column."""
    counts = weight > 0 if weight.any() else weight == 0
    distinct, row = np.unique(values[counts], return_inverse=True)
    mass = np.bincount(row, weight[counts]) if weight.any() else np.ones(len(distinct))
    low, high = _quartiles(distinct, mass)
    if low == high:  # half of the rows share a value: the others say how wide the column is
        low, high = _quartiles(distinct, np.ones(len(distinct)))
    reach = REACH * (high - low)
    ends = max(distinct[0], low - reach), min(distinct[-1], high + reach)
    padding = PADDING * _bandwidth(distinct, mass, ends)
    padding = max(padding, LEAST * max(abs(ends[0]), abs(ends[1]))) or ALONE
    return float(ends[0] - padding), float(ends[1] + padding)


def _quartiles(values: Array, mass: Array) -> Array:
    below = np.cumsum(mass)
    return np.asarray(values[np.searchsorted(below, np.array([0.25, 0.75]) * below[-1])])


def _bandwidth(values: Array, mass: Array, ends: tuple[float, float]) -> float:
    """The normal reference of the rows between the ends."""
    there = (values >= ends[0]) & (values <= ends[1])
    n = float(mass[there].sum())
    mean = np.average(values[there], weights=mass[there])
    variance = np.average((values[there] - mean) ** 2, weights=mass[there])
    return float(np.sqrt(variance) * max(n, 1.0) ** -0.2)
