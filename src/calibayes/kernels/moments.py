"""Weighted sums of powers of centred numbers, x (n, d), with weights (n, k) that may be negative."""

from __future__ import annotations

import numpy as np

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array

ROUNDING = 2.0**-39
"""A sum of weights that is a smaller share of the largest weight counts as none."""


def zeroth(weights: Array) -> Array:
    """Sum of the weights, (k,)."""
    xp = namespace(weights)
    return xp.sum(weights, axis=0)


def over_classes(weights: Array) -> Array:
    """Sum over classes of each row's weights, (n, 1); what is but the rounding of weights that add up to none is 0."""
    xp = namespace(weights)
    total = xp.sum(weights, axis=1, keepdims=True)
    return xp.where(xp.abs(total) <= ROUNDING * xp.max(xp.abs(weights)), 0.0, total)


def first(x: Array, weights: Array) -> Array:
    """Weighted sums, (k, d)."""
    return weights.T @ x


def squares(x: Array, weights: Array) -> Array:
    """Weighted sums of squares, (k, d)."""
    return weights.T @ (x * x)


def outer(x: Array, weights: Array) -> Array:
    """Weighted sums of outer products, (k, d, d)."""
    if isinstance(x, np.ndarray):
        return _rank_updates(x, weights)
    xp = namespace(x, weights)
    return xp.stack([(x * weights[:, c : c + 1]).T @ x for c in range(weights.shape[1])])


def _rank_updates(x: Array, weights: Array) -> Array:
    """By products of a matrix with its own transpose, half the work of others, and none for rows without weight."""
    total = np.zeros((weights.shape[1], x.shape[1], x.shape[1]))
    for of_class, weight in zip(total, weights.T, strict=True):
        above, below = np.flatnonzero(weight > 0), np.flatnonzero(~((weight > 0) | (weight == 0)))
        if len(above):
            _square(x, weight, above, out=of_class)
        if len(below):
            of_class -= _square(x, weight, below)
    return total


def _square(x: Array, weight: Array, rows: Array, out: Array | None = None) -> Array:
    """Sum of |weight| x x' over some rows, (d, d)."""
    some = x if len(rows) == len(x) else x[rows]
    scale = np.sqrt(np.abs(weight[rows]))
    scaled = some if (scale == 1.0).all() else some * scale[:, None]
    return np.matmul(scaled.T, scaled, out=out)
