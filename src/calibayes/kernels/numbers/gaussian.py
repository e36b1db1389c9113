"""Gaussian log densities, (n, k): covariance factors, squared Mahalanobis distances, triangular products.

A whitener is the inverse Cholesky factor W of a covariance: W (x - mean) has independent coordinates of variance 1, and
its squared length is the squared Mahalanobis distance.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, lapack

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, is_matrix, namespace, portable, row_major, twin
from calibayes.kernels.numbers.moments import CenteringBuffer, row_blocks

LOG_TWO_PI = math.log(2 * math.pi)
BLAS_ROUTINES = {"d": ("dtrmm", ctypes.c_double), "f": ("strmm", ctypes.c_float)}
"""By ``dtype.char``: the BLAS routine for triangular products, and the C type of its numbers."""
FLOAT32_TERMS = 64
"""Number of squares that are added up in float32 before the sum continues in float64."""
FEW_CELLS = 2**15
"""Rows times columns times classes up to which one product for all classes is faster: calls cost more than arithmetic."""
FARTHEST = 2.0**26
"""Squared distance of a class mean, in standard deviations, beyond which squares are not expanded about a common point:
their rounding error would be above 2**-26."""
FLOAT32_ERROR = 2**-13
"""Largest accepted rounding error of a whitened coordinate (of variance 1) in float32; above it float64 is used."""


@cache
def _blas_routine(name: str) -> Any:
    """The BLAS routine of that name as a C function with eleven arguments, all by reference."""
    capsule = ctypes.py_object(vars(cython_blas)["__pyx_capi__"][name])
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(pointer_of(capsule, name_of(capsule)))


def multiply_triangular(rows: Array, factor: Array) -> None:
    """Replace each row x of (n, d) by the lower triangular ``factor`` (d, d) times x, in place.

    Entries above the diagonal are not read. Raises ValueError unless both have the same type, float32 or float64,
    matching shapes, and contiguous rows.
    """
    (n, d), letter, size = rows.shape, rows.dtype.char, rows.itemsize
    if factor.shape != (d, d) or factor.dtype.char != letter or letter not in BLAS_ROUTINES:
        raise ValueError(
            f"cannot multiply {rows.dtype} {rows.shape} by triangular {factor.dtype} {factor.shape}: "
            "both must be float32 or both float64, of shapes (n, d) and (d, d)"
        )
    if not (n and d):
        return
    if rows.strides[1] != size or factor.strides[1] != size:
        raise ValueError("rows and factor must be stored row by row in memory (C order)")
    name, number = BLAS_ROUTINES[letter]
    sizes = [
        ctypes.c_int(s) for s in (d, n, max(factor.strides[0] // size, d), max(rows.strides[0] // size, d))
    ]
    _call_blas(name, number(1.0), sizes, factor, rows)


def _call_blas(name: str, one: Any, sizes: list[Any], factor: Array, rows: Array) -> None:
    """BLAS arrays are in column order: our rows are its columns, and our lower triangle its upper one, transposed."""
    d, n, factor_stride, row_stride = (ctypes.addressof(size) for size in sizes)
    left, upper, transposed, general = (ctypes.c_char(letter) for letter in (b"L", b"U", b"T", b"N"))
    letters = [ctypes.addressof(letter) for letter in (left, upper, transposed, general)]
    data = (factor.ctypes.data, factor_stride, rows.ctypes.data, row_stride)
    _blas_routine(name)(*letters, d, n, ctypes.addressof(one), *data)


def row_squares(rows: Array) -> Array:
    """Sum of squares of each row of (n, d), (n,), in float64; float32 is used for short partial sums only."""
    width = rows.shape[1] if rows.dtype == np.float64 else FLOAT32_TERMS
    parts = [rows[:, start : start + width] for start in range(0, rows.shape[1], max(width, 1))]
    return np.sum([np.einsum("nd,nd->n", part, part) for part in parts], axis=0, dtype=np.float64)


def distances_by_class(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Squared Mahalanobis distances of x (n, d) from means (k, d), one covariance per class, (n, k).

    ``whitener`` is (k, d, d); ``variance`` (k, d) are the variances of the columns.
    """
    factors = [product_factor(x, *of_class) for of_class in zip(whitener, variance, strict=True)]
    if x.size * len(mean) <= FEW_CELLS and all(factor.dtype == np.float64 for factor in factors):
        centered = np.subtract(x, mean[:, None, :], dtype=np.float64)
        white = np.matmul(centered, np.swapaxes(whitener, 1, 2))
        return np.einsum("knd,knd->nk", white, white)
    result, buffer = np.empty((len(x), len(mean))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        for c, factor in enumerate(factors):
            result[rows, c] = row_squares(whitened(buffer, x[rows], mean[c], factor))
    return result


def distances_shared(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Squared Mahalanobis distances of x (n, d) from means (k, d), one covariance for all classes, (n, k).

    ``whitener`` is (d, d); ``variance`` (d,) are the variances of the columns. One product for all classes: squares are
    expanded about the mean of the means, where rows and means are of similar size and little precision is lost.
    """
    middle = mean.mean(axis=0)
    centers = (mean - middle) @ whitener.T
    factor, center_squares = product_factor(x, whitener, variance), np.sum(centers**2, axis=1)
    if center_squares.max() > FARTHEST:
        return distances_by_class(x, mean, *(np.stack([part] * len(mean)) for part in (whitener, variance)))
    twice = np.ascontiguousarray(2.0 * centers.T, dtype=factor.dtype)
    result, buffer = np.empty((len(x), len(mean))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        white = whitened(buffer, x[rows], middle, factor)
        result[rows] = np.maximum(row_squares(white)[:, None] + center_squares - white @ twice, 0.0)
    return result


@portable
def linear_scores(x: Array, center: Array, slopes: Array, offsets: Array, variance: Array) -> Array:
    """offsets + (x - center) @ slopes.T, (n, k): rows (n, d), slopes (k, d), offsets (k,), column variances (d,)."""
    factor = product_factor(x, slopes, variance).T
    if x.dtype == np.float64 and (center**2 <= variance).all():  # near the origin centering saves no digits
        offsets, center = offsets - slopes @ center, None
    result, buffer = np.empty((len(x), len(slopes))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        centered = x[rows] if center is None else buffer.centered(x[rows], center, factor.dtype)
        np.add(centered @ factor, offsets, out=result[rows])
    return result


def whitened(buffer: CenteringBuffer, x: Array, mean: Array, factor: Array) -> Array:
    """factor (x - mean) of each row, (n, d), in the type of the factor; valid until the buffer is used again."""
    rows = buffer.centered(x, mean, factor.dtype)
    multiply_triangular(rows, factor)
    return rows


def product_factor(x: Array, whitener: Array, variance: Array) -> Array:
    """The whitener in the type in which to multiply it with these rows.

    float32 rows are multiplied in float32 if that is precise enough. A whitened coordinate has variance 1; its terms
    have the variances of the columns times the squared factors, and its error is that of float32 on these terms.
    """
    if x.dtype == np.float32:
        terms = float(np.sqrt(np.max(whitener**2 @ variance, initial=0.0)))
        if terms * np.finfo(np.float32).eps <= FLOAT32_ERROR:
            return np.ascontiguousarray(whitener, dtype=np.float32)
    return np.ascontiguousarray(whitener, dtype=np.float64)


def pivots(matrix: Array) -> Array:
    """Variance of each column given those before it, (d,), from a covariance (d, d): squared Cholesky pivots.

    0 from the first column at which the matrix is not positive definite; all 0 if it is not finite.
    """
    if not np.isfinite(matrix).all():
        return np.zeros(len(matrix))
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0)
    diagonal = np.diag(factor).copy()
    if failed:
        diagonal[failed - 1 :] = 0.0  # not factored: entries of the matrix, whose squares may overflow
    return diagonal**2


@portable
def all_pivots(matrices: Array) -> Array:
    """`pivots` of each of several covariances (g, d, d), (g, d)."""
    return np.stack([pivots(matrix) for matrix in matrices])


@portable
def whiteners(matrices: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (g, d, d) and log determinants (g,) of covariance matrices (g, d, d).

    Raises LinAlgError if a matrix is not positive definite.
    """
    inverses = np.empty(matrices.shape)
    for matrix, inverse in zip(matrices, inverses, strict=True):
        inverse[:] = _inverse_factor(matrix)
    return inverses, -2.0 * np.sum(np.log(np.diagonal(inverses, axis1=1, axis2=2)), axis=1)


def _inverse_factor(matrix: Array) -> Array:
    """LAPACK arrays are in column order: its upper factor is our lower one in row order."""
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return lapack.dtrtri(factor, lower=0, overwrite_c=1)[0].T


def variance_from_natural(natural: Array, floor: float) -> Array:
    """-1 / (2 natural), at least the floor; the floor where a natural parameter is not negative, as it must be."""
    valid = natural < 0
    return np.maximum(-0.5 / np.where(valid, natural, -1.0), floor) * valid + floor * ~valid


def covariance_from_natural(natural: Array, floor: float) -> Array:
    """-1/2 of the inverse of a symmetric matrix (d, d), its eigenvalues at least the floor."""
    values, vectors = np.linalg.eigh(natural)
    return np.asarray((vectors * variance_from_natural(values, floor)) @ vectors.T)


def diagonal_gaussian(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of x (n, d) under independent columns with means and variances (k, d), (n, k)."""
    xp = namespace(x, mean)
    constant = -0.5 * (xp.sum(xp.log(variance), axis=1) + x.shape[1] * LOG_TWO_PI)
    squares = [xp.sum((x - mean[c, :]) ** 2 / variance[c, :], axis=1) for c in range(mean.shape[0])]
    return constant - 0.5 * xp.stack(squares, axis=1)


def marginal_diagonal(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells of each row under independent Gaussians (k, d), (n, k)."""
    terms = [
        np.nansum((x - m) ** 2 / v + np.log(v) + LOG_TWO_PI, axis=1)
        for m, v in zip(mean, variance, strict=True)
    ]
    return np.asarray(-0.5 * np.stack(terms, axis=1))


def native_diagonal_log_density(module: Any, x: Array, mean: Array, variance: Array) -> Any:
    if not is_matrix(x, "f") or not len(mean) or x.shape[1] == 0:
        return NotImplemented
    out = np.empty((len(x), len(mean)))
    module.diagonal_gaussian(row_major(x), as_float64(mean), as_float64(variance), out)
    return out


@twin(native_diagonal_log_density)
def diagonal_log_density(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells under independent Gaussians with means and variances (k, d), (n, k)."""
    x = np.asarray(x, dtype=np.float64)
    density = marginal_diagonal if np.isnan(x).any() else diagonal_gaussian
    return np.asarray(density(x, mean, variance))


@portable
def full_gaussian(x: Array, mean: Array, covariance: Array, whitener: Array, log_determinant: Array) -> Array:
    """Log density of x (n, d) under dependent columns with means (k, d), (n, k).

    Covariances, whiteners and log determinants: one per class, (k, d, d) and (k,), or one for all, (1, d, d) and (1,).
    """
    constant = -0.5 * (log_determinant + x.shape[1] * LOG_TWO_PI)
    if isinstance(x, np.ndarray):
        squares = _distances_numpy(x, mean, covariance, whitener)
    else:
        squares = _distances_array_api(x, mean, whitener)
    return constant - 0.5 * squares


def linear_discriminants(
    x: Array, mean: Array, variance: Array, times_precision: Callable[[Array], Array]
) -> Array:
    """Log density of classes of one covariance up to a term that all classes share: linear in x, (n, k).

    ``times_precision`` multiplies rows by the inverse covariance; ``variance`` (d,) are the variances of the columns.
    """
    middle = mean.mean(axis=0)
    slopes = times_precision(mean - middle)
    offsets = -0.5 * np.sum(slopes * (mean - middle), axis=1)
    return linear_scores(x, middle, slopes, offsets, variance)


def are_far(mean: Array, times_precision: Callable[[Array], Array]) -> bool:
    """Whether classes of one covariance are so far apart that scores about the mean of their means lose digits."""
    centered = mean - mean.mean(axis=0)
    return bool(np.sum(times_precision(centered) * centered, axis=1).max() > FARTHEST)


def _distances_numpy(x: Array, mean: Array, covariance: Array, whitener: Array) -> Array:
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    if len(whitener) == 1:
        return distances_shared(x, mean, whitener[0], variance[0])
    return distances_by_class(x, mean, whitener, variance)


def _distances_array_api(x: Array, mean: Array, whitener: Array) -> Array:
    """The same for arrays of any library, (n, k)."""
    xp = namespace(x, mean)
    if whitener.shape[0] == 1:
        white, centers = x @ whitener[0, ...].T, mean @ whitener[0, ...].T
        squares = [xp.sum((white - centers[c, :]) ** 2, axis=1) for c in range(mean.shape[0])]
    else:
        squares = [xp.sum(((x - mean[c, :]) @ whitener[c, ...].T) ** 2, axis=1) for c in range(mean.shape[0])]
    return xp.stack(squares, axis=1)
