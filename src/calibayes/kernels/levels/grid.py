"""Positions on a uniform grid: linear binning, and linear interpolation of a density between the grid points.

A column of p points has p + 2 cells: the points in order, then the range below the grid and the range above it. A
position is counted at the two neighboring points, with linear weights. Outside the grid the density decreases as that
of a Lomax distribution of shape 2 whose scale is the length of the grid: it integrates to one over the half line, and
its tail is heavy enough for values a million times as far out. Positions are in grid steps, NaN if missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin

TAILS = 2
"""Number of cells after the points of a grid: below the grid, above it."""


class Corners(NamedTuple):
    """The two neighboring cells of each entry, numbered within its column, (n, d) each.

    A missing entry has the cell after the last one of its column.
    """

    lower: Array
    upper: Array
    share: Array
    """Weight of the upper cell; the lower one has the rest."""
    log_tail: Array
    """log of the density relative to that at the end of the grid, for entries outside the grid; 0 inside."""


def corners(positions: Array, points: Array) -> Corners:
    """The corners of positions (n, d) on grids with ``points`` (d,) points."""
    last, missing = points - 1.0, np.isnan(positions)
    inside = np.clip(np.where(missing, 0.0, positions), 0.0, last)
    floor = np.minimum(np.floor(inside), last - 1.0)
    excess = np.where(missing, 0.0, np.maximum(-positions, positions - last))
    single = missing | (excess > 0)
    single_cell = points + np.where(missing, TAILS, positions > last)
    return Corners(
        np.where(single, single_cell, floor).astype(np.intp),
        np.where(single, single_cell, floor + 1.0).astype(np.intp),
        np.where(single, 0.0, inside - floor),
        -3.0 * np.log1p(np.maximum(excess, 0.0) / last),
    )


def log_volumes(points: int, step: float) -> Array:
    """log of the volume of each cell, its probability divided by its density, (points + 2,); ``step`` in column units.

    The volume of a point is one step, and half a step at the ends of the grid.
    """
    volume = np.full(points + TAILS, step)
    volume[[0, points - 1]] /= 2.0
    volume[points:] *= (points - 1.0) / 2.0
    return np.log(volume)


def corner_counts(where: Corners, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), each entry divided between its two corners."""
    cells = [_table_cells(corner, first).ravel() for corner in (where.lower, where.upper)]
    shares = [(1.0 - where.share).ravel(), where.share.ravel()]
    d, size = where.share.shape[1], first[-1] + 1
    sums = [
        sum(
            np.bincount(cell, np.repeat(weight, d) * share, minlength=size)[:-1]
            for cell, share in zip(cells, shares, strict=True)
        )
        for weight in weights.T
    ]
    return np.reshape(np.asarray(sums), (weights.shape[1], size - 1))


def _table_cells(local: Array, first: Array) -> Array:
    """Cells numbered over all columns, (n, d); the total number of cells for a missing entry."""
    return np.where(local < np.diff(first), local + first[:-1], first[-1])


def _native_supports(positions: Any, points: Array) -> bool:
    return (
        is_matrix(positions, "f")
        and positions.dtype == np.float64
        and positions.shape[1] > 0
        and points.min() > 1
    )


def native_position_counts(module: Any, positions: Array, points: Array, weights: Array, first: Array) -> Any:
    if not _native_supports(positions, points) or not is_matrix(weights, "fiub") or weights.shape[1] == 0:
        return NotImplemented
    out = np.zeros((weights.shape[1], int(first[-1])))
    module.binned_counts(row_major(positions), as_int64(points), as_float64(weights), as_int64(first), out)
    return out


def native_position_scores(module: Any, positions: Array, points: Array, table: Array, first: Array) -> Any:
    if not _native_supports(positions, points) or not len(table):
        return NotImplemented
    out = np.empty((len(positions), len(table)))
    module.binned_sums(row_major(positions), as_int64(points), as_float64(table), as_int64(first), out)
    return out


@twin(native_position_counts)
def position_counts(positions: Array, points: Array, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), of positions (n, d) on grids of ``points`` (d,)."""
    return corner_counts(corners(positions, points), weights, first)


@twin(native_position_scores)
def position_scores(positions: Array, points: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the log density of positions (n, d), (n, k), from the log density at the cells, (k, cells)."""
    where, sums = corners(positions, points), np.zeros((len(positions), len(table)))
    for j, column_table in enumerate(np.split(table, first[1:-1], axis=1)):
        sums += interpolated(where, j, column_table)
    return sums


def interpolated(where: Corners, j: int, table: Array) -> Array:
    """log density of the entries of column j, (n, k), from that at its cells, (k, cells); 0 for a missing entry."""
    top = table.max()
    density = np.exp(np.concatenate([table.T - top, np.zeros((1, len(table)))]))
    share = where.share[:, j, None]
    value = (1.0 - share) * density[where.lower[:, j]] + share * density[where.upper[:, j]]
    known = where.lower[:, j, None] < table.shape[1]
    return np.where(known, np.log(value) + top + where.log_tail[:, j, None], 0.0)


def draw_positions(codes: Array, points: Array, rng: np.random.Generator) -> Array:
    """Positions (n, d) drawn from the density of given cells (n, d): triangular around a point, Lomax in the tails."""
    last, (left, right) = points - 1.0, rng.random((2, *codes.shape))
    triangular = codes + (left - right)
    reflected = np.where(
        triangular < 0, -triangular, np.where(triangular > last, 2.0 * last - triangular, triangular)
    )
    excess = last * (1.0 / np.sqrt(1.0 - left) - 1.0)
    tail = np.where(codes == points, -excess, last + excess)
    return np.where(codes < points, reflected, tail)


def mean_positions(points: int) -> Array:
    """Mean position under the triangular density of each point, (points,)."""
    means = np.arange(points, dtype=np.float64)
    means[0], means[-1] = 1.0 / 3.0, points - 1.0 - 1.0 / 3.0
    return means
