"""Base of kernel densities: counts on cells, smoothed over neighboring cells, with a prior from pooled counts.

The entries of binned columns are codes of cells (`Codes`), those of gridded columns positions between the points of a
grid (`Positions`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol, Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import (
    probabilities_of,
    require_arrays,
    require_finite,
    require_length,
    require_sums_of_one,
)
from calibayes.families.counts.pseudo_counts import floored, keep_nonnegative
from calibayes.families.kernel.bandwidths import Bandwidth, Silverman, check_bandwidth
from calibayes.families.model import UNBOUND
from calibayes.kernels.levels import counts, grid
from calibayes.kernels.levels.grid import Corners

PRIOR_ROWS = 3.0
POOLED_PSEUDO_COUNT = 0.5
"""Pseudo-count of each cell of a column in the pooled counts, so that no cell has probability 0. The cells of a pair of
columns share the pseudo-counts of the cells of both."""


class CellEncoding(Protocol):
    """Operations that differ between columns of codes and columns of positions.

    A table (k, cells) has the cells of all columns side by side.
    """

    def missing(self, columns: Array) -> Array:
        """Which entries are missing, (n, d) booleans."""

    def corners(self, columns: Array) -> Corners:
        """The cells on both sides of each entry, counted within its column."""

    def counts(self, columns: Array, weights: Array) -> Array:
        """Sum of the weights per class and cell, (k, cells)."""

    def terms(self, columns: Array, table: Array) -> Array:
        """Log density of each entry, (n, k, d), from that of the cells, (k, cells); 0 where an entry is missing."""

    def total(self, columns: Array, table: Array) -> Array:
        """Log density of each row, (n, k): the sum of `terms` over columns."""

    def sample_within(self, codes: Array, rng: np.random.Generator) -> Array:
        """Entries drawn from within given cells, (n, d)."""

    def point_estimate(self, probability: Array, j: int) -> Array:
        """One entry of column j for each row, (n,), from the probabilities of its cells, (n, cells)."""


def cell_encoding(layout: Layout) -> CellEncoding:
    """The encoding of a layout's columns."""
    return Positions(layout.levels, layout.ordered) if layout.gridded else Codes(layout.levels)


@dataclass(frozen=True)
class Codes:
    """Each entry is the code of its cell, negative where missing; the density is constant within a cell."""

    levels: tuple[int, ...]

    @property
    def _first(self) -> Array:
        return counts.offsets(self.levels)

    def missing(self, columns: Array) -> Array:
        return np.asarray(columns < 0)

    def corners(self, columns: Array) -> Corners:
        local = np.where(columns < 0, np.array(self.levels), columns).astype(np.intp)
        return Corners(local, local, np.zeros(columns.shape), np.zeros(columns.shape))

    def counts(self, columns: Array, weights: Array) -> Array:
        return counts.weighted_counts(columns, weights, self._first)

    def terms(self, columns: Array, table: Array) -> Array:
        return counts.look_up_each(columns, table, self._first)

    def total(self, columns: Array, table: Array) -> Array:
        return counts.look_up(columns, table, self._first)

    def sample_within(self, codes: Array, rng: np.random.Generator) -> Array:
        return codes

    def point_estimate(self, probability: Array, j: int) -> Array:
        """The most probable cell."""
        return np.argmax(probability, axis=1)


@dataclass(frozen=True)
class Positions:
    """Each entry is a position on its column's grid, NaN where missing; the density is linear between points."""

    levels: tuple[int, ...]
    points: tuple[int, ...]

    def missing(self, columns: Array) -> Array:
        return np.isnan(columns)

    def corners(self, columns: Array) -> Corners:
        return grid.corners(columns, np.array(self.points))

    def counts(self, columns: Array, weights: Array) -> Array:
        return grid.position_counts(columns, np.array(self.points), weights, counts.offsets(self.levels))

    def terms(self, columns: Array, table: Array) -> Array:
        corners, tables = self.corners(columns), np.split(table, np.cumsum(self.levels)[:-1], axis=1)
        return np.stack([grid.interpolated(corners, j, cells) for j, cells in enumerate(tables)], axis=2)

    def total(self, columns: Array, table: Array) -> Array:
        return grid.position_scores(columns, np.array(self.points), table, counts.offsets(self.levels))

    def sample_within(self, codes: Array, rng: np.random.Generator) -> Array:
        return grid.draw_positions(codes, np.array(self.points), rng)

    def point_estimate(self, probability: Array, j: int) -> Array:
        """The mean position, given that it is on the grid."""
        inside = probability[:, : self.points[j]]
        return np.asarray(inside @ grid.mean_positions(self.points[j]) / inside.sum(axis=1))


@dataclass(frozen=True)
class SmoothedCounts(ABC):
    """
    Parameters
    ----------
    bandwidth : Bandwidth, default=Silverman()
        A rule of `calibayes.families.kernel.bandwidths`.
    prior_rows : float, default=3
        Pseudo-rows in each class, distributed as the pooled rows of all classes: a Dirichlet prior on the smoothed
        counts. With 0 the family is a plain kernel density, whose cells have a share of at least 1e-12.
    """

    bandwidth: Bandwidth = field(default_factory=Silverman)
    prior_rows: float = PRIOR_ROWS
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)
    bandwidths: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    """Bandwidths in cells, (k, d), set by `prepare`."""
    pooled: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    """Probabilities of the cells over all classes together, set by `prepare`."""

    reads: ClassVar[str] = "cells"
    _dimension: ClassVar[int] = 1
    """Number of columns of each density."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.prior_rows) and self.prior_rows >= 0):
            raise ValueError(f"prior_rows must be finite and must not be negative, got {self.prior_rows}")
        check_bandwidth(self.bandwidth)

    @abstractmethod
    def _margins(self, count: Array) -> list[Array]:
        """Marginal counts on the cells of each column, (k, cells) each."""

    @abstractmethod
    def _smooth(self, count: Array) -> Array:
        """Counts smoothed by the kernel."""

    @abstractmethod
    def _totals(self, count: Array) -> Array:
        """Sum over the cells of each density, broadcastable to the counts."""

    @abstractmethod
    def _log_volumes(self) -> Array:
        """Log of the volume of each cell, in the shape of the counts of one class."""

    @property
    @abstractmethod
    def _table_shape(self) -> tuple[int, ...]:
        """Shape of the counts of one class."""

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, bandwidths=np.zeros((0, 0)), pooled=np.zeros(0))

    def verify(self) -> None:
        self.layout.verify()
        k, d = len(self.layout.classes), len(self.layout.columns)
        require_length("levels", self.layout.levels, d)
        if k and (self.bandwidths.size or self.pooled.size):  # prepared
            require_finite("bandwidths", self.bandwidths, (k, d), least=0.0)
            require_finite("pooled", self.pooled, self._table_shape, least=0.0)
            require_sums_of_one("pooled", self._totals(self.pooled))

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = (len(self.layout.classes), *self._table_shape)
        require_arrays("parameters", parameters, {"log_density": shape})
        probability = probabilities_of("log_density", self._log_probability(parameters))
        require_sums_of_one("log_density", self._totals(probability))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = (len(self.layout.classes), *self._table_shape)
        require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the bandwidths and the pooled prior fixed from the counts of the data."""
        margins = self._margins(np.maximum(start["count"], 0.0))
        log_volumes = self._by_column(self._log_volume)
        widths = np.zeros((len(start["count"]), len(margins)))
        for j, (margin, volume, cells) in enumerate(zip(margins, log_volumes, self._ordered, strict=True)):
            if cells:
                widths[:, j] = self.bandwidth.width_in_cells(
                    margin[:, :cells], volume[:cells], self._dimension
                )
        prepared = replace(self, bandwidths=widths)
        total = np.maximum(prepared._smooth((pooled or start)["count"]).sum(axis=0), 0.0)
        total = total + POOLED_PSEUDO_COUNT * self._first[-1] / total.size
        return replace(prepared, pooled=total / self._totals(total))

    @cached_property
    def _first(self) -> Array:
        """Position of the first cell of each column, and the number of all cells, (d + 1,)."""
        return counts.offsets(self.layout.levels)

    @cached_property
    def _ordered(self) -> Array:
        """Number of ordered cells of each column, (d,)."""
        return np.array(self.layout.ordered or (0,) * len(self.layout.levels))

    @cached_property
    def _log_volume(self) -> Array:
        """Log of the width of each cell, all columns side by side."""
        return self.layout.log_volume if len(self.layout.log_volume) else np.zeros(self._first[-1])

    @cached_property
    def _cells(self) -> CellEncoding:
        return cell_encoding(self.layout)

    def _by_column(self, table: Array) -> list[Array]:
        """The cells of each column, from an array with the cells of all columns side by side."""
        return np.split(table, self._first[1:-1], axis=-1)

    def parameters(self, statistics: Arrays) -> Arrays:
        count = np.maximum(self._smooth(statistics["count"]), 0.0) + self.prior_rows * self.pooled
        count = floored(count, self._totals(count))
        return {"log_density": np.log(count) - np.log(self._totals(count)) - self._log_volumes()}

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].reshape(len(statistics["count"]), -1))

    def has_hidden(self, columns: Array) -> bool:
        return False  # missing values are not counted, so the statistics do not depend on the parameters

    def conjugate(self) -> Self:
        return self if self.prior_rows else replace(self, prior_rows=PRIOR_ROWS)

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        return float(self.prior_rows * np.sum(self.pooled * self._log_probability(parameters)))

    def _log_probability(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["log_density"] + self._log_volumes())
