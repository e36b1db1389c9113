"""Squared distances of rows from the means of classes, each in units of its class's covariance, (n, k).

Rows are taken in blocks that stay in cache while all classes look at them.
"""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.room import Room, in_blocks
from calibayes.kernels.triangular import multiply, row_squares

FEW_CELLS = 2**15
"""Cells of rows and classes below which calls take longer than multiplications: one product for all classes then."""
EXACT_ENOUGH = 2**-13
"""Largest rounding error of a whitened coordinate in float32, its spread being 1; beyond it float64 is used."""


def to_own_means(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Distances of rows x, (n, d), from means (k, d) by factors (k, d, d) of covariances with variances (k, d)."""
    factors = [product_factor(x, *of_class) for of_class in zip(whitener, variance, strict=True)]
    if x.size * len(mean) <= FEW_CELLS and all(factor.dtype == np.float64 for factor in factors):
        away = np.subtract(x, mean[:, None, :], dtype=np.float64)
        white = np.matmul(away, np.swapaxes(whitener, 1, 2))
        return np.einsum("knd,knd->nk", white, white)
    result, room = np.empty((len(x), len(mean))), Room()
    for rows in in_blocks(*x.shape):
        for c, factor in enumerate(factors):
            result[rows, c] = row_squares(whitened(room, x[rows], mean[c], factor))
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
        white = whitened(room, x[rows], middle, factor)
        result[rows] = np.maximum(row_squares(white)[:, None] + own - white @ twice, 0.0)
    return result


def linear_scores(x: Array, centre: Array, slopes: Array, offsets: Array, variance: Array) -> Array:
    """Offsets (k,) plus products of rows (n, d), about a centre, with slopes (k, d)."""
    factor = product_factor(x, slopes, variance).T
    if x.dtype == np.float64 and (centre**2 <= variance).all():  # no digits to save: the origin is near
        offsets, centre = offsets - slopes @ centre, None
    result, room = np.empty((len(x), len(slopes))), Room()
    for rows in in_blocks(*x.shape):
        away = x[rows] if centre is None else room.away(x[rows], centre, factor.dtype)
        np.add(away @ factor, offsets, out=result[rows])
    return result


def whitened(room: Room, x: Array, mean: Array, factor: Array) -> Array:
    """factor (x - mean) of each row, in the type of the factor."""
    away = room.away(x, mean, factor.dtype)
    multiply(away, factor)
    return away


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
