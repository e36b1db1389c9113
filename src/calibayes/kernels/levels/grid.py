"""Positions on a uniform grid: linear binning, and linear interpolation of a density between the points.

A column of p points has p + 2 cells: the points in order, then what lies below them and what lies above. A position is
counted at the two points beside it, in the shares in which they are near. Beyond the grid a density falls off as that
of a Lomax distribution of shape 2 whose scale is the length of the grid: proper over the half line, and heavy enough
for values that are a million times as far out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import by_row, floats, is_matrix, twin, whole

TAILS = 2
"""Cells behind the points of a grid: below it, above it."""


class Corners(NamedTuple):
    """The cells beside each entry, (n, d) each; one cell behind the last of its column for an entry that is missing."""

    lower: Array
    upper: Array
    share: Array
    """Of the upper cell."""
    log_tail: Array
    """log of the density against that at the end of the grid; 0 on the grid."""


def corners(positions: Array, points: Array) -> Corners:
    """The corners of positions (n, d), NaN for missing ones, on grids of a number of points each, (d,)."""
    last, missing = points - 1.0, np.isnan(positions)
    inside = np.clip(np.where(missing, 0.0, positions), 0.0, last)
    floor = np.minimum(np.floor(inside), last - 1.0)
    excess = np.where(missing, 0.0, np.maximum(-positions, positions - last))
    alone = missing | (excess > 0)
    apart = points + np.where(missing, TAILS, positions > last)
    return Corners(
        np.where(alone, apart, floor).astype(np.intp),
        np.where(alone, apart, floor + 1.0).astype(np.intp),
        np.where(alone, 0.0, inside - floor),
        -3.0 * np.log1p(np.maximum(excess, 0.0) / last),
    )


def log_volumes(points: int, step: float) -> Array:
    """log of what the density at each cell is multiplied by to give its probability, (points + 2,).

    A point stands for the cell around it, which is half as wide at the ends of the grid.
    """
    volume = np.full(points + TAILS, step)
    volume[[0, points - 1]] /= 2.0
    volume[points:] *= (points - 1.0) / 2.0
    return np.log(volume)


def weighted_counts(where: Corners, weights: Array, first: Array) -> Array:
    """Sum of the weights per class and cell, (k, cells), each shared out between two corners."""
    cells = [_across(corner, first).ravel() for corner in (where.lower, where.upper)]
    shares = [(1.0 - where.share).ravel(), where.share.ravel()]
    d, size = where.share.shape[1], first[-1] + 1
    return np.stack(
        [
            sum(
                np.bincount(cell, np.repeat(weight, d) * share, minlength=size)[:-1]
                for cell, share in zip(cells, shares, strict=True)
            )
            for weight in weights.T
        ]
    )


def _taken(positions: Any, points: Array) -> bool:
    return (
        is_matrix(positions, "f")
        and positions.dtype == np.float64
        and positions.shape[1] > 0
        and points.min() > 1
    )


def native_position_counts(module: Any, positions: Array, points: Array, weights: Array, first: Array) -> Any:
    if not _taken(positions, points) or not is_matrix(weights, "fiub"):
        return NotImplemented
    out = np.zeros((weights.shape[1], int(first[-1])))
    module.binned_counts(by_row(positions), whole(points), floats(weights), whole(first), out)
    return out


def native_position_scores(module: Any, positions: Array, points: Array, table: Array, first: Array) -> Any:
    if not _taken(positions, points) or not len(table):
        return NotImplemented
    out = np.empty((len(positions), len(table)))
    module.binned_sums(by_row(positions), whole(points), floats(table), whole(first), out)
    return out


@twin(native_position_counts)
def position_counts(positions: Array, points: Array, weights: Array, first: Array) -> Array:
    """`weighted_counts` of positions (n, d) on grids of a number of points each, (d,)."""
    return weighted_counts(corners(positions, points), weights, first)


@twin(native_position_scores)
def position_scores(positions: Array, points: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the log density of positions, (n, k), from that at the cells, (k, cells)."""
    where, rows = corners(positions, points), np.zeros((len(positions), len(table)))
    for j, own in enumerate(np.split(table, first[1:-1], axis=1)):
        rows += interpolated(where, j, own)
    return rows


def interpolated(where: Corners, j: int, table: Array) -> Array:
    """log density of the entries of column j, (n, k), from that at its cells, (k, cells); 0 for a missing one."""
    top = table.max()
    density = np.exp(np.concatenate([table.T - top, np.zeros((1, len(table)))]))
    share = where.share[:, j, None]
    value = (1.0 - share) * density[where.lower[:, j]] + share * density[where.upper[:, j]]
    there = where.lower[:, j, None] < table.shape[1]
    return np.where(there, np.log(value) + top + where.log_tail[:, j, None], 0.0)


def spread(codes: Array, points: Array, rng: np.random.Generator) -> Array:
    """Positions drawn from the density that belongs to each cell: a tent about a point, half of one at the ends."""
    last, (left, right) = points - 1.0, rng.random((2, *codes.shape))
    tent = codes + (left - right)
    folded = np.where(tent < 0, -tent, np.where(tent > last, 2.0 * last - tent, tent))
    excess = last * (1.0 / np.sqrt(1.0 - left) - 1.0)
    tail = np.where(codes == points, -excess, last + excess)
    return np.where(codes < points, folded, tail)


def centers(points: int) -> Array:
    """Mean position in the tent about each point, (points,)."""
    middle = np.arange(points, dtype=np.float64)
    middle[0], middle[-1] = 1.0 / 3.0, points - 1.0 - 1.0 / 3.0
    return middle


def _across(local: Array, first: Array) -> Array:
    """Cells of all columns side by side; one behind the last for a missing entry."""
    return np.where(local < np.diff(first), local + first[:-1], first[-1])
