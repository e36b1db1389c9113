"""Weighted sums of powers of centered numbers, x (n, d), with weights (n, k) that may be negative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import namespace

CELLS = 2**17
"""Numbers in a block of rows: a megabyte in float64."""
FEWEST_ROWS = 64


def in_blocks(n: int, d: int) -> Iterator[slice]:
    """Rows that fit into cache together."""
    rows = max(CELLS // max(d, 1), FEWEST_ROWS)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


class Room:
    """Memory for the rows of one block, used again for every block and class."""

    def __init__(self) -> None:
        self._cells: dict[str, Array] = {}

    def away(self, x: Array, center: Array, dtype: Any = np.float64) -> Array:
        """x - center of each row, in some type, until the next call."""
        return np.subtract(x, center, out=self._of(x.shape, np.dtype(dtype)), casting="same_kind")

    def _of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        n, d = shape
        if dtype.char not in self._cells or self._cells[dtype.char].size < n * d:
            self._cells[dtype.char] = np.empty(n * d, dtype=dtype)
        return self._cells[dtype.char][: n * d].reshape(shape)


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


def first_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of rows about a center (d,), in float64, (k, d)."""
    total, room = np.zeros((weights.shape[1], x.shape[1])), Room()
    for rows in in_blocks(*x.shape):
        total += weights[rows].T @ room.away(x[rows], center)
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


def outer_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of outer products of rows about a center (d,), in float64, (k, d, d).

    By products of a matrix with its own transpose, half the work of others, and none for rows without weight; where
    there is little work, by one product, which takes fewer calls.
    """
    if x.size * weights.shape[1] <= FEW_CELLS:
        some = weights.any(axis=1)
        x, weights = (x, weights) if some.all() else (x[some], weights[some])
        away = np.subtract(x, center, dtype=np.float64)
        return np.matmul(weights.T[:, None, :] * away.T, away)
    total = np.zeros((weights.shape[1], x.shape[1], x.shape[1]))
    for of_class, weight in zip(total, weights.T, strict=True):
        above, below = np.flatnonzero(weight > 0), np.flatnonzero(~((weight > 0) | (weight == 0)))
        if len(above):
            _square(x, center, weight, above, out=of_class)
        if len(below):
            of_class -= _square(x, center, weight, below)
    return total


def _square(x: Array, center: Array, weight: Array, rows: Array, out: Array | None = None) -> Array:
    """Sum of |weight| x x' over some rows about the center, (d, d)."""
    away = np.subtract(x if len(rows) == len(x) else x[rows], center, dtype=np.float64)
    scale = np.sqrt(np.abs(weight[rows]))
    if not (scale == 1.0).all():
        away *= scale[:, None]
    return np.matmul(away.T, away, out=out)
