"""Squared distances of rows from the means of classes, each in units of its class's covariance, (n, k).

Rows are taken in blocks that stay in cache while all classes look at them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.triangular import multiply, row_squares

CELLS = 2**17
"""Numbers in a block of rows: a megabyte in float64."""
FEWEST_ROWS = 64
EXACT_ENOUGH = 2**-13
"""Largest rounding error of a whitened coordinate in float32, its spread being 1; beyond it float64 is used."""


def in_blocks(n: int, d: int) -> Iterator[slice]:
    """Rows that fit into cache together."""
    rows = max(CELLS // max(d, 1), FEWEST_ROWS)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


def to_own_means(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Distances of rows x, (n, d), from means (k, d) by factors (k, d, d) of covariances with variances (k, d)."""
    factors = [product_factor(x, *of_class) for of_class in zip(whitener, variance, strict=True)]
    result, room = np.empty((len(x), len(mean))), Room()
    for rows in in_blocks(*x.shape):
        for c, factor in enumerate(factors):
            result[rows, c] = row_squares(room.whitened(x[rows], mean[c], factor))
    return result


def to_shared(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Distances from means (k, d) by one factor (d, d): one product for all classes.

    Squares are multiplied out about the middle of the means, where rows and means are of like size.
    """
    middle = mean.mean(axis=0)
    centres = (mean - middle) @ whitener.T
    factor, own = product_factor(x, whitener, variance), np.sum(centres**2, axis=1)
    twice = np.ascontiguousarray(2.0 * centres.T, dtype=factor.dtype)
    result, room = np.empty((len(x), len(mean))), Room()
    for rows in in_blocks(*x.shape):
        white = room.whitened(x[rows], middle, factor)
        result[rows] = np.maximum(row_squares(white)[:, None] + own - white @ twice, 0.0)
    return result


class Room:
    """Memory for whitened rows, used again for every block and class so that it stays in cache."""

    def __init__(self) -> None:
        self._cells: dict[str, Array] = {}

    def whitened(self, x: Array, mean: Array, factor: Array) -> Array:
        """factor (x - mean) of each row, in the type of the factor, until the next call."""
        away = self._of(x.shape, factor.dtype)
        np.subtract(x, mean, out=away, casting="same_kind")
        multiply(away, factor)
        return away

    def _of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        n, d = shape
        if dtype.char not in self._cells or self._cells[dtype.char].size < n * d:
            self._cells[dtype.char] = np.empty(n * d, dtype=dtype)
        return self._cells[dtype.char][: n * d].reshape(shape)


def product_factor(x: Array, whitener: Array, variance: Array) -> Array:
    """The factor in the type that its products with these rows are taken in.

    float32 rows stay so where that is exact enough. A whitened coordinate has unit variance; its terms have the
    columns' variances times the squared factors, and it cannot be more exact than float32 is on them.
    """
    if x.dtype == np.float32:
        terms = float(np.sqrt(np.max(whitener**2 @ variance, initial=0.0)))
        if terms * np.finfo(np.float32).eps <= EXACT_ENOUGH:
            return np.ascontiguousarray(whitener, dtype=np.float32)
    return np.ascontiguousarray(whitener, dtype=np.float64)
