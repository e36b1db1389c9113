"""Cells of binned or gridded columns: entries are codes of cells, or positions between the points of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.kernels.levels import counts, grid
from calibayes.kernels.levels.grid import Corners


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
