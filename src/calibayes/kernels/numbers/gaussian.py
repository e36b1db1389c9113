"""Gaussian log densities, (n, k): covariance factors, Mahalanobis distances, triangular products."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, lapack

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import namespace
from calibayes.kernels.numbers.moments import Room, in_blocks

ROUTINES = {"d": ("dtrmm", ctypes.c_double), "f": ("strmm", ctypes.c_float)}
"""By the letter of an array's type: the routine, and the number it takes."""


@cache
def _routine(name: str) -> Any:
    """The BLAS routine of that name, its eleven arguments all by reference."""
    capsule = ctypes.py_object(vars(cython_blas)["__pyx_capi__"][name])
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(pointer_of(capsule, name_of(capsule)))


def multiply(rows: Array, factor: Array) -> None:
    """Replace each row x, (n, d), by the lower triangular ``factor`` (d, d) times x.

    Both are of one type, float32 or float64, and lie row by row in memory; what is above the diagonal is not read.
    """
    (n, d), letter, size = rows.shape, rows.dtype.char, rows.itemsize
    if factor.shape != (d, d) or factor.dtype.char != letter or letter not in ROUTINES:
        raise ValueError(
            f"cannot multiply {rows.dtype} {rows.shape} by triangular {factor.dtype} {factor.shape}"
        )
    if not (n and d):
        return
    if rows.strides[1] != size or factor.strides[1] != size:
        raise ValueError("rows and factors must lie row by row in memory")
    name, number = ROUTINES[letter]
    sizes = [
        ctypes.c_int(s) for s in (d, n, max(factor.strides[0] // size, d), max(rows.strides[0] // size, d))
    ]
    _call(name, number(1.0), sizes, factor, rows)


def _call(name: str, one: Any, sizes: list[Any], factor: Array, rows: Array) -> None:
    """BLAS reads arrays column by column: rows are columns to it, and a lower triangle an upper one, transposed."""
    d, n, factor_stride, row_stride = (ctypes.addressof(size) for size in sizes)
    left, upper, transposed, general = (ctypes.c_char(letter) for letter in (b"L", b"U", b"T", b"N"))
    letters = [ctypes.addressof(letter) for letter in (left, upper, transposed, general)]
    data = (factor.ctypes.data, factor_stride, rows.ctypes.data, row_stride)
    _routine(name)(*letters, d, n, ctypes.addressof(one), *data)


def row_squares(rows: Array) -> Array:
    """Sum of squares of each row, (n,), in float64; of float32 from short stretches."""
    width = rows.shape[1] if rows.dtype == np.float64 else STRETCH
    parts = [rows[:, start : start + width] for start in range(0, rows.shape[1], max(width, 1))]
    return np.sum([np.einsum("nd,nd->n", part, part) for part in parts], axis=0, dtype=np.float64)


STRETCH = 64
"""How many squares are added up in float32."""


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
    centers = (mean - middle) @ whitener.T
    factor, own = product_factor(x, whitener, variance), np.sum(centers**2, axis=1)
    twice = np.ascontiguousarray(2.0 * centers.T, dtype=factor.dtype)
    result, room = np.empty((len(x), len(mean))), Room()
    for rows in in_blocks(*x.shape):
        white = whitened(room, x[rows], middle, factor)
        result[rows] = np.maximum(row_squares(white)[:, None] + own - white @ twice, 0.0)
    return result


def linear_scores(x: Array, center: Array, slopes: Array, offsets: Array, variance: Array) -> Array:
    """Offsets (k,) plus products of rows (n, d), about a center, with slopes (k, d)."""
    factor = product_factor(x, slopes, variance).T
    if x.dtype == np.float64 and (center**2 <= variance).all():  # no digits to save: the origin is near
        offsets, center = offsets - slopes @ center, None
    result, room = np.empty((len(x), len(slopes))), Room()
    for rows in in_blocks(*x.shape):
        away = x[rows] if center is None else room.away(x[rows], center, factor.dtype)
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


def pivots(matrix: Array) -> Array:
    """Variance of each column given those before it, (d,); not positive from where the matrix is not definite."""
    if not np.isfinite(matrix).all():
        return np.zeros(len(matrix))
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0)
    left = np.asarray(np.diag(factor) ** 2)
    if failed:
        left[failed - 1 :] = 0.0
    return left


def whiteners(matrices: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (g, d, d) and log determinants (g,) of covariance matrices."""
    inverses = np.empty(matrices.shape)
    for matrix, inverse in zip(matrices, inverses, strict=True):
        inverse[:] = _inverse_factor(matrix)
    return inverses, -2.0 * np.sum(np.log(np.diagonal(inverses, axis1=1, axis2=2)), axis=1)


def _inverse_factor(matrix: Array) -> Array:
    """LAPACK reads arrays column by column: the upper factor it sees is our lower one, row by row."""
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return lapack.dtrtri(factor, lower=0, overwrite_c=1)[0].T


def variance_from_natural(natural: Array, floor: float) -> Array:
    """-1 / (2 natural) where that is at least the floor, else the floor: a natural parameter must be negative."""
    valid = natural < 0
    return np.maximum(-0.5 / np.where(valid, natural, -1.0), floor) * valid + floor * ~valid


def covariance_from_natural(natural: Array, floor: float) -> Array:
    """-1/2 of the inverse of a symmetric matrix, its eigenvalues floored."""
    values, vectors = np.linalg.eigh(natural)
    return np.asarray((vectors * variance_from_natural(values, floor)) @ vectors.T)


LOG_TWO_PI = math.log(2 * math.pi)


def diagonal_gaussian(x: Array, mean: Array, variance: Array) -> Array:
    """Independent columns: mean and variance (k, d)."""
    xp = namespace(x, mean)
    constant = -0.5 * (xp.sum(xp.log(variance), axis=1) + x.shape[1] * LOG_TWO_PI)
    squares = [xp.sum((x - mean[c, :]) ** 2 / variance[c, :], axis=1) for c in range(mean.shape[0])]
    return constant - 0.5 * xp.stack(squares, axis=1)


def full_gaussian(x: Array, mean: Array, covariance: Array, whitener: Array, log_determinant: Array) -> Array:
    """Dependent columns: mean (k, d); covariances with their inverse Cholesky factors and log determinants.

    There is one covariance for each class, (k, d, d), or one that all classes share, (1, d, d).
    """
    constant = -0.5 * (log_determinant + x.shape[1] * LOG_TWO_PI)
    by_hand = not isinstance(x, np.ndarray)
    squares = _distances(x, mean, whitener) if by_hand else _in_blocks(x, mean, covariance, whitener)
    return constant - 0.5 * squares


def linear(x: Array, mean: Array, variance: Array, times_precision: Callable[[Array], Array]) -> Array:
    """What differs between classes of one covariance: linear in x, about the middle of the means.

    ``times_precision`` multiplies rows by the inverse covariance, whose columns have these variances, (d,).
    """
    middle = mean.mean(axis=0)
    slopes = times_precision(mean - middle)
    offsets = -0.5 * np.sum(slopes * (mean - middle), axis=1)
    return linear_scores(x, middle, slopes, offsets, variance)


def _in_blocks(x: Array, mean: Array, covariance: Array, whitener: Array) -> Array:
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    if len(whitener) == 1:
        return to_shared(x, mean, whitener[0], variance[0])
    return to_own_means(x, mean, whitener, variance)


def _distances(x: Array, mean: Array, whitener: Array) -> Array:
    """The same in any array library, (n, k)."""
    xp = namespace(x, mean)
    if whitener.shape[0] == 1:
        white, centers = x @ whitener[0, ...].T, mean @ whitener[0, ...].T
        squares = [xp.sum((white - centers[c, :]) ** 2, axis=1) for c in range(mean.shape[0])]
    else:
        squares = [xp.sum(((x - mean[c, :]) @ whitener[c, ...].T) ** 2, axis=1) for c in range(mean.shape[0])]
    return xp.stack(squares, axis=1)
