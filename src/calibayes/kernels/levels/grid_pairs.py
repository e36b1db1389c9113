"""Pairs of columns on cells: counts at the corners around each row, and densities between them.

Tables are (k, cells, cells). Where a table has one cell more, the last is for an entry that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import logsumexp

from calibayes.core.protocols import Array
from calibayes.kernels.levels.grid import Corners


def _four(where: Corners) -> Iterator[tuple[Array, Array, Array]]:
    """Cell in the first and in the second column, and share, (n,), of each of the corners around the rows."""
    sides = ((where.lower, 1.0 - where.share), (where.upper, where.share))
    for left, left_share in sides:
        for right, right_share in sides:
            yield left[:, 0], right[:, 1], left_share[:, 0] * right_share[:, 1]


def weighted_counts(where: Corners, weights: Array, levels: Sequence[int]) -> Array:
    """Sum of the weights per class and pair of cells, (k, cells, cells); rows with a missing cell are left out."""
    rows, columns = levels[0] + 1, levels[1] + 1
    table = np.zeros((weights.shape[1], rows * columns))
    for left, right, share in _four(where):
        flat = left * columns + right
        table += [np.bincount(flat, weight * share, minlength=rows * columns) for weight in weights.T]
    return table.reshape(-1, rows, columns)[:, :-1, :-1].copy()


def with_margins(log_density: Array, log_volumes: Sequence[Array]) -> Array:
    """log density with a further cell along both columns, at which the other column's own density is."""
    left, right = log_volumes
    k, rows, columns = log_density.shape
    table = np.zeros((k, rows + 1, columns + 1))
    table[:, :-1, :-1] = log_density
    table[:, -1, :-1] = logsumexp(log_density + left[:, None], axis=1)
    table[:, :-1, -1] = logsumexp(log_density + right, axis=2)
    return table


def interpolated(where: Corners, table: Array) -> Array:
    """log density of each row, (n, k), bilinear (in the density) between the corners around it."""
    found, shares = [], []
    for left, right, share in _four(where):
        found.append(table[:, left, right].T)
        shares.append(share[:, None])
    top = np.max(found, axis=0)
    density = sum(share * np.exp(value - top) for share, value in zip(shares, found, strict=True))
    return np.asarray(np.log(density) + top + where.log_tail.sum(axis=1)[:, None])


def conditional(where: Corners, table: Array, known: int) -> Array:
    """Probabilities of the cells of one column, (n, k, cells), from a table whose first cells are of the known one."""
    share = where.share[:, known, None, None]
    swapped = np.swapaxes(table, 0, 1)
    mixed = (1.0 - share) * swapped[where.lower[:, known]] + share * swapped[where.upper[:, known]]
    return np.asarray(mixed / mixed.sum(axis=2, keepdims=True))


def draw(probability: Array, classes: Array, rng: np.random.Generator) -> Array:
    """A pair of cells for each class code, (n, 2)."""
    uniform, drawn = rng.random(len(classes)), np.zeros(len(classes), dtype=np.intp)
    for c, table in enumerate(probability):
        steps = np.cumsum(table)
        mine = classes == c
        drawn[mine] = np.searchsorted(steps[:-1], uniform[mine] * steps[-1], side="right")
    return np.stack(np.divmod(drawn, probability.shape[2]), axis=1)
