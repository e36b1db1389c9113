"""Weighted sums of powers of centred numbers, x (n, d), with weights (n, k) that may be negative."""

from __future__ import annotations

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array


def zeroth(weights: Array) -> Array:
    """Sum of the weights, (k,)."""
    xp = namespace(weights)
    return xp.sum(weights, axis=0)


def first(x: Array, weights: Array) -> Array:
    """Weighted sums, (k, d)."""
    return weights.T @ x


def squares(x: Array, weights: Array) -> Array:
    """Weighted sums of squares, (k, d)."""
    return weights.T @ (x * x)


def outer(x: Array, weights: Array) -> Array:
    """Weighted sums of outer products, (k, d, d)."""
    xp = namespace(x, weights)
    return xp.stack([(x * weights[:, c : c + 1]).T @ x for c in range(weights.shape[1])])
