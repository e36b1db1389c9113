"""Weighted sums of powers of centred numbers, x (n, d), with weights (n, k) that may be negative."""

from __future__ import annotations

import numpy as np

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array
from calibayes.kernels.room import Room, in_blocks

FEW_CELLS = 2**16
"""Cells of rows and classes below which calls take longer than multiplications."""
ROUNDING = 2.0**-39
"""A sum of weights that is a smaller share of the largest weight counts as none."""


def zeroth(weights: Array) -> Array:
    """Sum of the weights, (k,)."""
    xp = namespace(weights)
    return xp.ones(weights.shape[0], dtype=weights.dtype) @ weights


def over_classes(weights: Array) -> Array:
    """Sum over classes of each row's weights, (n, 1); what is but the rounding of weights that add up to none is 0."""
    xp = namespace(weights)
    total = weights @ xp.ones((weights.shape[1], 1), dtype=weights.dtype)
    largest = max(float(xp.max(weights)), -float(xp.min(weights)))
    return xp.where(xp.abs(total) <= ROUNDING * largest, 0.0, total)


def first(x: Array, weights: Array) -> Array:
    """Weighted sums, (k, d)."""
    return weights.T @ x


def first_about(x: Array, centre: Array, weights: Array) -> Array:
    """Weighted sums of rows about a centre (d,), in float64, (k, d)."""
    total, room = np.zeros((weights.shape[1], x.shape[1])), Room()
    for rows in in_blocks(*x.shape):
        total += weights[rows].T @ room.away(x[rows], centre)
    return total


def squares(x: Array, weights: Array) -> Array:
    """Weighted sums of squares, (k, d)."""
    return weights.T @ (x * x)


def outer(x: Array, weights: Array) -> Array:
    """Weighted sums of outer products, (k, d, d)."""
    if isinstance(x, np.ndarray):
        return outer_about(x, np.zeros(x.shape[1]), weights)
    xp = namespace(x, weights)
    return xp.stack([(x * weights[:, c : c + 1]).T @ x for c in range(weights.shape[1])])


def outer_about(x: Array, centre: Array, weights: Array) -> Array:
    """Weighted sums of outer products of rows about a centre (d,), in float64, (k, d, d).

    By products of a matrix with its own transpose, half the work of others, and none for rows without weight; where
    there is little work, by one product, which takes fewer calls.
    """
    if x.size * weights.shape[1] <= FEW_CELLS:
        some = weights.any(axis=1)
        x, weights = (x, weights) if some.all() else (x[some], weights[some])
        away = np.subtract(x, centre, dtype=np.float64)
        return np.matmul(weights.T[:, None, :] * away.T, away)
    total = np.zeros((weights.shape[1], x.shape[1], x.shape[1]))
    for of_class, weight in zip(total, weights.T, strict=True):
        above, below = np.flatnonzero(weight > 0), np.flatnonzero(~((weight > 0) | (weight == 0)))
        if len(above):
            _square(x, centre, weight, above, out=of_class)
        if len(below):
            of_class -= _square(x, centre, weight, below)
    return total


def _square(x: Array, centre: Array, weight: Array, rows: Array, out: Array | None = None) -> Array:
    """Sum of |weight| x x' over some rows about the centre, (d, d)."""
    away = np.subtract(x if len(rows) == len(x) else x[rows], centre, dtype=np.float64)
    scale = np.sqrt(np.abs(weight[rows]))
    if not (scale == 1.0).all():
        away *= scale[:, None]
    return np.matmul(away.T, away, out=out)
