"""Pairs of columns on cells: bilinear counts at the four corners around each row, and interpolated densities.

Tables are (k, cells, cells). A table with one cell more along each column has missing entries in the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp

from calibayes.core.protocols import Array
from calibayes.kernels.levels.grid import Corners


def _four_corners(where: Corners) -> Iterator[tuple[Array, Array, Array]]:
    """Cell in the first column, cell in the second, and bilinear weight, (n,) each, for each of the four corners."""
    sides = ((where.lower, 1.0 - where.share), (where.upper, where.share))
    for left, left_share in sides:
        for right, right_share in sides:
            yield left[:, 0], right[:, 1], left_share[:, 0] * right_share[:, 1]


def weighted_counts(where: Corners, weights: Array, levels: Sequence[int]) -> Array:
    """Sum of the weights (n, k) per class and pair of cells, (k, cells, cells), without rows with a missing value."""
    rows, columns = levels[0] + 1, levels[1] + 1
    table = np.zeros((weights.shape[1], rows * columns))
    for left, right, share in _four_corners(where):
        flat = left * columns + right
        table += [np.bincount(flat, weight * share, minlength=rows * columns) for weight in weights.T]
    return table.reshape(-1, rows, columns)[:, :-1, :-1].copy()


def with_margins(log_density: Array, log_volumes: Sequence[Array]) -> Array:
    """log density (k, cells, cells) with one cell more along each column that holds the other column's marginal density."""
    left, right = log_volumes
    k, rows, columns = log_density.shape
    table = np.zeros((k, rows + 1, columns + 1))
    table[:, :-1, :-1] = log_density
    table[:, -1, :-1] = logsumexp(log_density + left[:, None], axis=1)
    table[:, :-1, -1] = logsumexp(log_density + right, axis=2)
    return table


def interpolated(where: Corners, table: Array) -> Array:
    """log density of each row, (n, k), from a log density (k, cells, cells): bilinear interpolation of the density."""
    corner_values, shares = [], []
    for left, right, share in _four_corners(where):
        corner_values.append(table[:, left, right].T)
        shares.append(share[:, None])
    top = np.max(corner_values, axis=0)
    density = sum(share * np.exp(value - top) for share, value in zip(shares, corner_values, strict=True))
    return np.asarray(np.log(density) + top + where.log_tail.sum(axis=1)[:, None])


def conditional(where: Corners, table: Array, known: int) -> Array:
    """Probabilities of the cells of one column given the other, (n, k, cells).

    ``known`` is the position of the given column; the first cell axis of ``table`` (k, cells, cells) is that column.
    """
    share = where.share[:, known, None, None]
    swapped = np.swapaxes(table, 0, 1)
    mixed = (1.0 - share) * swapped[where.lower[:, known]] + share * swapped[where.upper[:, known]]
    return np.asarray(mixed / mixed.sum(axis=2, keepdims=True))


def draw(probability: Array, classes: Array, rng: np.random.Generator) -> Array:
    """One pair of cells per class code (n,), (n, 2), drawn from unnormalized probabilities (k, cells, cells)."""
    uniform, flat = rng.random(len(classes)), np.zeros(len(classes), dtype=np.intp)
    for c, table in enumerate(probability):
        cumulative = np.cumsum(table)
        of_class = classes == c
        flat[of_class] = np.searchsorted(cumulative[:-1], uniform[of_class] * cumulative[-1], side="right")
    return np.stack(np.divmod(flat, probability.shape[2]), axis=1)
