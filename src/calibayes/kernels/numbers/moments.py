"""Weighted sums of powers of numbers: x (n, d), weights (n, k) of any sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import namespace

CELLS = 2**17
"""Numbers in a block of rows: a megabyte in float64."""
FEWEST_ROWS = 64
"""Least number of rows in a block."""
FEW_CELLS = 2**16
"""Rows times columns times classes up to which one product for all classes is faster: calls cost more than arithmetic."""
ROUNDING = 2.0**-39
"""A sum of weights below this share of the largest weight counts as 0."""


def row_blocks(n: int, d: int) -> Iterator[slice]:
    """Consecutive blocks of the rows of an (n, d) array that fit into the cache."""
    rows = max(CELLS // max(d, 1), FEWEST_ROWS)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


class CenteringBuffer:
    """Memory for the centered rows of one block, reused for every block and class."""

    def __init__(self) -> None:
        self._cells: dict[str, Array] = {}

    def centered(self, x: Array, center: Array, dtype: Any = np.float64) -> Array:
        """x - center in the given type, (n, d); valid until the next call."""
        return np.subtract(x, center, out=self._array(x.shape, np.dtype(dtype)), casting="same_kind")

    def _array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        n, d = shape
        if dtype.char not in self._cells or self._cells[dtype.char].size < n * d:
            self._cells[dtype.char] = np.empty(n * d, dtype=dtype)
        return self._cells[dtype.char][: n * d].reshape(shape)


def zeroth(weights: Array) -> Array:
    """Sum of the weights of each class, (k,)."""
    xp = namespace(weights)
    return xp.ones(weights.shape[0], dtype=weights.dtype) @ weights


def sum_over_classes(weights: Array) -> Array:
    """Sum of the weights of each row, (n, 1); 0 if it is below `ROUNDING` times the largest weight."""
    xp = namespace(weights)
    total = weights @ xp.ones((weights.shape[1], 1), dtype=weights.dtype)
    largest = max(float(xp.max(weights)), -float(xp.min(weights)))
    return xp.where(xp.abs(total) <= ROUNDING * largest, 0.0, total)


def first(x: Array, weights: Array) -> Array:
    """Weighted sums of x, (k, d)."""
    return weights.T @ x


def first_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of x - center, (k, d), in float64."""
    total, buffer = np.zeros((weights.shape[1], x.shape[1])), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        total += weights[rows].T @ buffer.centered(x[rows], center)
    return total


def squares(x: Array, weights: Array) -> Array:
    """Weighted sums of x^2, (k, d)."""
    return weights.T @ (x * x)


def outer(x: Array, weights: Array) -> Array:
    """Weighted sums of outer products x x', (k, d, d)."""
    if isinstance(x, np.ndarray):
        return outer_about(x, np.zeros(x.shape[1]), weights)
    xp = namespace(x, weights)
    return xp.stack([(x * weights[:, c : c + 1]).T @ x for c in range(weights.shape[1])])


def outer_about(x: Array, center: Array, weights: Array) -> Array:
    """Weighted sums of outer products of x - center, (k, d, d), in float64.

    Products of a matrix with its own transpose take half the work of general products, and rows of weight 0 are left
    out. For small inputs one product for all classes takes fewer calls.
    """
    if x.size * weights.shape[1] <= FEW_CELLS:
        weighted = weights.any(axis=1)
        x, weights = (x, weights) if weighted.all() else (x[weighted], weights[weighted])
        centered = np.subtract(x, center, dtype=np.float64)
        return np.matmul(weights.T[:, None, :] * centered.T, centered)
    total = np.zeros((weights.shape[1], x.shape[1], x.shape[1]))
    for class_sum, weight in zip(total, weights.T, strict=True):
        # NaN weights are neither positive nor 0: they go with the negative ones, so that the sum becomes NaN.
        positive, negative = np.flatnonzero(weight > 0), np.flatnonzero(~((weight > 0) | (weight == 0)))
        if len(positive):
            _absolute_outer(x, center, weight, positive, out=class_sum)
        if len(negative):
            class_sum -= _absolute_outer(x, center, weight, negative)
    return total


def _absolute_outer(x: Array, center: Array, weight: Array, rows: Array, out: Array | None = None) -> Array:
    """Sum of |weight| times the outer product of x - center over given rows, (d, d)."""
    centered = np.subtract(x if len(rows) == len(x) else x[rows], center, dtype=np.float64)
    scale = np.sqrt(np.abs(weight[rows]))
    if not (scale == 1.0).all():
        centered *= scale[:, None]
    return np.matmul(centered.T, centered, out=out)
