"""Gaussian log densities, (n, k): covariance factors, squared Mahalanobis distances, triangular products.

A whitener is the inverse Cholesky factor W of a covariance: W (x - mean) has independent coordinates of variance 1, and
its squared length is the squared Mahalanobis distance.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cython_lapack, lapack, solve_triangular

from calibayes.core.protocols import AnyArray, Array
from calibayes.kernels.dispatch import (
    as_float64,
    as_int64,
    as_type,
    is_matrix,
    namespace,
    native_team,
    portable,
    row_major,
    twin,
)
from calibayes.kernels.moments import CenteringBuffer, blas_capsule, row_blocks, weight_of_one

LOG_TWO_PI = math.log(2 * math.pi)
BLAS_ROUTINES = {"d": ("dtrmm", ctypes.c_double), "f": ("strmm", ctypes.c_float)}
"""By ``dtype.char``: the BLAS routine for triangular products, and the C type of its numbers."""
FLOAT32_TERMS = 64
"""Number of squares that are added up in float32 before the sum continues in float64."""
FEW_CELLS = 2**15
"""Rows times columns times classes up to which one product for all classes is faster: calls cost more than arithmetic."""
MANY_PRODUCTS = 2**20
"""Cells times columns of matrices above which they are factored by several threads."""
LAPACK = vars(cython_lapack)["__pyx_capi__"]
"""LAPACK routines in the capsules of SciPy, by name."""
FARTHEST = 2.0**26
"""Squared distance of a class mean, in standard deviations, beyond which squares are not expanded about a common point:
their rounding error would be above 2**-26."""
FLOAT32_ERROR = 2**-13
"""Largest accepted rounding error of a whitened coordinate (of variance 1) in float32; above it float64 is used."""


@cache
def _blas_routine(name: str) -> Any:
    """The BLAS routine of that name as a C function with eleven arguments, all by reference."""
    capsule = blas_capsule(name)
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    wrapped = ctypes.py_object(capsule)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(pointer_of(wrapped, name_of(wrapped)))


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
    strides = [max(matrix.strides[0] // size, d) for matrix in (factor, rows)]
    sizes = [ctypes.c_int(number) for number in (d, n, *strides)]
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
    return np.add.reduce([np.einsum("nd,nd->n", part, part) for part in parts], axis=0, dtype=np.float64)


def densities_by_class(x: Array, mean: Array, whitener: Array, variance: Array, offset: Array) -> Array:
    """``offset`` minus half the squared Mahalanobis distances of x (n, d) from means, one covariance per class, (n, k).

    Means are (k, d), whiteners (k, d, d), the variances of the columns (k, d), and offsets (k,).
    """
    factors = [product_factor(x, *of_class) for of_class in zip(whitener, variance, strict=True)]
    is_narrow = all(factor.dtype == np.float32 for factor in factors)
    if x.size * len(mean) <= FEW_CELLS and not is_narrow:
        centered = np.subtract(x, mean[:, None, :], dtype=np.float64)
        white = np.matmul(centered, np.swapaxes(whitener, 1, 2))
        return offset - 0.5 * np.einsum("knd,knd->nk", white, white)
    return class_log_densities(x, mean, np.stack(factors) if is_narrow else as_float64(whitener), offset)


def native_class_log_densities(module: Any, x: Array, mean: Array, factor: Array, offset: Array) -> Any:
    factor = as_type(factor, factor.dtype.newbyteorder("="))
    if not is_matrix(x, "f") or not mean.size or factor.dtype not in (np.float64, x.dtype):
        return NotImplemented
    out = np.empty((len(x), len(mean)))
    arrays = row_major(x), as_float64(mean), factor, as_float64(offset)
    module.class_log_densities(*arrays, blas_capsule("strmm"), blas_capsule("dtrmm"), out)
    return out


@twin(native_class_log_densities)
def class_log_densities(x: Array, mean: Array, factor: Array, offset: Array) -> Array:
    """``offset`` minus half the squared length of factor (x - mean) for each row of (n, d) and class, (n, k).

    Means are (k, d), offsets (k,), and the lower triangular factors (k, d, d), in whose type rows are multiplied; what is
    above their diagonals is not read.
    """
    factor = as_type(factor, factor.dtype.newbyteorder("="))
    result, buffer = np.empty((len(x), len(mean))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        for c in range(len(mean)):
            result[rows, c] = offset[c] - 0.5 * row_squares(whitened(buffer, x[rows], mean[c], factor[c]))
    return result


def distances_shared(x: Array, mean: Array, whitener: Array, variance: Array) -> Array:
    """Squared Mahalanobis distances of x (n, d) from means (k, d), one covariance for all classes, (n, k).

    ``whitener`` is (d, d); ``variance`` (d,) are the variances of the columns. One product for all classes: squares are
    expanded about the mean of the means, where rows and means are of similar size and little precision is lost.
    """
    middle = mean.mean(axis=0)
    centers = (mean - middle) @ whitener.T
    center_squares = np.sum(centers**2, axis=1)
    if center_squares.max() > FARTHEST:
        k = len(mean)
        factors, variances = np.stack([whitener] * k), np.stack([variance] * k)
        return -2.0 * densities_by_class(x, mean, factors, variances, np.zeros(k))
    factor = product_factor(x, whitener, variance, float(center_squares.max()))
    twice = np.ascontiguousarray(2.0 * centers.T, dtype=factor.dtype)
    result, buffer = np.empty((len(x), len(mean))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        white = whitened(buffer, x[rows], middle, factor)
        result[rows] = np.maximum(row_squares(white)[:, None] + center_squares - white @ twice, 0.0)
    return result


@portable
def linear_scores(x: Array, center: Array, slopes: Array, offsets: Array, variance: Array) -> Array:
    """offsets + (x - center) @ slopes.T, (n, k): rows (n, d), slopes (k, d), offsets (k,), column variances (d,)."""
    factor = product_factor(x, slopes, variance, 2.0 * float(np.abs(offsets).max())).T
    if x.dtype == np.float64 and (center**2 <= variance).all():  # near the origin centering saves no digits
        return np.asarray(x @ factor + (offsets - slopes @ center))
    result, buffer = np.empty((len(x), len(slopes))), CenteringBuffer()
    for rows in row_blocks(*x.shape):
        np.add(buffer.centered(x[rows], center, factor.dtype) @ factor, offsets, out=result[rows])
    return result


def whitened(buffer: CenteringBuffer, x: Array, mean: Array, factor: Array) -> Array:
    """factor (x - mean) of each row, (n, d), in the type of the factor; valid until the buffer is used again."""
    rows = buffer.centered(x, mean, factor.dtype)
    multiply_triangular(rows, factor)
    return rows


def product_factor(x: Array, whitener: Array, variance: Array, farthest: float = 0.0) -> Array:
    """The whitener in the type in which to multiply it with these rows.

    float32 rows are multiplied in float32 if that is precise enough. A whitened coordinate has variance 1; its terms
    have the variances of the columns times the squared factors, and its error is that of float32 on these terms.
    ``farthest`` is the largest square that the result is added to or subtracted from, where it has float32's error, too.
    """
    if x.dtype == np.float32:
        terms = float(np.sqrt(np.max(whitener**2 @ variance, initial=0.0)))
        if max(terms, farthest) * np.finfo(np.float32).eps <= FLOAT32_ERROR:
            return np.ascontiguousarray(whitener, dtype=np.float32)
    return np.ascontiguousarray(whitener, dtype=np.float64)


def native_inverse_factors(module: Any, matrices: Array) -> Any:
    if matrices.ndim != 3 or not matrices.size:
        return NotImplemented
    out = np.empty(matrices.shape), np.empty(matrices.shape[:2]), np.empty(len(matrices), dtype=np.int64)
    team = native_team(module) if matrices.size * len(matrices[0]) > MANY_PRODUCTS else module.Team(1)
    module.inverse_factors(as_float64(matrices), LAPACK["dpotrf"], LAPACK["dtrtri"], team, *out)
    return out


@twin(native_inverse_factors)
def inverse_factors(matrices: Array) -> tuple[Array, Array, Array]:
    """Inverse Cholesky factors of covariances (g, d, d), variances of each column given all others, (g, d), and what failed.

    If a matrix is not positive definite: the column at which that shows, from 1 on, otherwise 0, (g,); and the variances given
    the columns before, 0 from that column on. All variances of a matrix that is not finite are 0.
    """
    inverses, result = np.zeros(matrices.shape), np.zeros(matrices.shape[:2])
    failed = np.zeros(len(matrices), dtype=np.int64)
    for g, matrix in enumerate(matrices):
        # LAPACK arrays are in column order: its upper factor is our lower one in row order.
        factor, failed[g] = lapack.dpotrf(matrix.T, lower=0, clean=1)
        pivots, is_finite = np.diag(factor), np.isfinite(matrix).all()
        if not failed[g]:
            inverses[g] = lapack.dtrtri(factor, lower=0)[0].T
        if (
            is_finite and failed[g]
        ):  # beyond, entries of the matrix are not factored, and their squares may overflow
            result[g, : failed[g] - 1] = pivots[: failed[g] - 1] ** 2
        elif is_finite:
            # In units of its own pivot, the squares of a column overflow only where nothing is left.
            with np.errstate(over="ignore"):
                result[g] = pivots**2 / ((inverses[g] * pivots) ** 2).sum(axis=0)
    return inverses, result, failed


@portable
def unexplained(matrices: Array) -> Array:
    """Variance of each column given all others, (g, d), from covariances (g, d, d): the inverse diagonals of their inverses.

    If a matrix is not positive definite, the variance given the columns before, and 0 from the first column at which that shows;
    all 0 if it is not finite.
    """
    return inverse_factors(matrices)[1]


@portable
def whiteners(matrices: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (g, d, d) and log determinants (g,) of covariance matrices (g, d, d).

    Raises LinAlgError if a matrix is not positive definite.
    """
    inverses, _, failed = inverse_factors(matrices)
    if failed.any():
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return inverses, -2.0 * np.sum(np.log(np.diagonal(inverses, axis1=1, axis2=2)), axis=1)


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
    classes = zip(mean, variance, strict=True)
    terms = [np.nansum((x - m) ** 2 / v + np.log(v) + LOG_TWO_PI, axis=1) for m, v in classes]
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
def full_gaussian(
    x: AnyArray, mean: Array, covariance: Array, whitener: Array, log_determinant: Array
) -> Array:
    """Log density of x (n, d) under dependent columns with means (k, d), (n, k).

    Covariances, whiteners and log determinants: one per class, (k, d, d) and (k,), or one for all, (1, d, d) and (1,).
    """
    constant = -0.5 * (log_determinant + x.shape[1] * LOG_TWO_PI)
    if not isinstance(x, np.ndarray):
        return constant - 0.5 * _distances_array_api(x, mean, whitener)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    if len(whitener) == 1:
        return constant - 0.5 * distances_shared(x, mean, whitener[0], variance[0])
    return densities_by_class(x, mean, whitener, variance, constant)


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


def _distances_array_api(x: Array, mean: Array, whitener: Array) -> Array:
    """Squared Mahalanobis distances of arrays of any library, (n, k)."""
    xp = namespace(x, mean)
    if whitener.shape[0] == 1:
        white, centers = x @ whitener[0, ...].T, mean @ whitener[0, ...].T
        squares = [xp.sum((white - centers[c, :]) ** 2, axis=1) for c in range(mean.shape[0])]
    else:
        squares = [xp.sum(((x - mean[c, :]) @ whitener[c, ...].T) ** 2, axis=1) for c in range(mean.shape[0])]
    return xp.stack(squares, axis=1)


# -- Variances of independent columns without each row in turn, as shares of given variances -----------------

COLUMNS_AT_ONCE = 32
"""Columns whose shares are multiplied: 1e-6 to this power is no underflow, and one logarithm is enough for all."""


class ClassTables(NamedTuple):
    """Numbers of each class and column, (k, d) each; see `left_out_shares`."""

    mean: Array
    scale: Array
    inverse: Array
    least: Array


def native_left_out_shares(module: Any, x: Array, tables: ClassTables, codes: Array, change: Array) -> Any:
    if not is_matrix(x, "f") or not len(tables.mean) or x.shape[1] == 0:
        return NotImplemented
    distance, product = np.empty(len(x)), np.empty((len(x), -(-x.shape[1] // COLUMNS_AT_ONCE)))
    given = [as_float64(table) for table in tables]
    module.left_out_shares(row_major(x), as_int64(codes), *given, as_float64(change), distance, product)
    return distance, product


@twin(native_left_out_shares)
def left_out_shares(x: Array, tables: ClassTables, codes: Array, change: Array) -> tuple[Array, Array]:
    """Sums of z / share over the columns of each row, (n,), and products of the shares of 32 columns each, (n, groups).

    z is (x - mean)^2 times ``scale`` and a share 1 - z plus ``change`` (n,) times ``inverse``, with the numbers of the row's
    class, ``codes`` (n,). The sum is -1 if a share is below ``least``.
    """
    distance, product = np.zeros(len(x)), np.ones((len(x), -(-x.shape[1] // COLUMNS_AT_ONCE)))
    for c, (mean, scale, inverse, least) in enumerate(zip(*tables, strict=True)):
        rows = np.flatnonzero(codes == c)
        z = (x[rows] - mean) ** 2 * scale
        share = 1.0 - z + np.multiply.outer(change[rows], inverse)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance[rows] = np.where((share >= least).all(axis=1), np.sum(z / share, axis=1), -1.0)
        product[rows] = _products(share)
    return distance, product


def _products(share: Array) -> Array:
    """Products of up to so many columns, (n, groups)."""
    starts = range(0, share.shape[1], COLUMNS_AT_ONCE)
    groups = [share[:, start : start + COLUMNS_AT_ONCE] for start in starts]
    return np.stack([_product(group) for group in groups], axis=1) if groups else np.ones((len(share), 0))


def _product(columns: Array) -> Array:
    """The product of each row, (n,), column by column: faster than along the rows."""
    result = columns[:, 0].copy()
    for column in columns.T[1:]:
        result *= column
    return result


# -- Missing values (NaN) of Gaussian columns: patterns, conditional moments and marginal densities ----------

ROUNDS = 3
"""How often missing values of training rows are imputed, each time by the covariance of the rows imputed before."""
LEAST_RIDGE, RIDGE_PER_COLUMN = 1e-3, 0.1
"""Weight of the identity in the covariance for imputation: the larger of the first, and the second times columns / rows."""


def patterns(x: Array) -> Iterator[tuple[Array, Array]]:
    """For each pattern of missing values in x (n, d): the mask of known columns (d,) and the positions of its rows."""
    masks, group = np.unique(~np.isnan(x), axis=0, return_inverse=True)
    for number, known in enumerate(masks):
        yield known, np.flatnonzero(group.ravel() == number)


def conditional(covariance: Array, known: Array) -> tuple[Array, Array]:
    """Regression coefficients of missing on known columns, (missing, known), and the residual covariance.

    ``known`` (d,) is the mask of known columns, ``covariance`` (d, d).
    Known columns without variance have coefficients 0.
    """
    across = covariance[np.ix_(~known, known)]
    varies = np.diagonal(covariance)[known] > 0
    varying = np.flatnonzero(known)[varies]
    slopes = np.zeros(across.shape)
    slopes[:, varies] = np.linalg.solve(covariance[np.ix_(varying, varying)], across[:, varies].T).T
    return slopes, covariance[np.ix_(~known, ~known)] - slopes @ across.T


def expected_moments(x: Array, weights: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Expected weighted sums of x, (d,), and x x', (d, d), given the known cells, for the weights (n,) of one class."""
    d = x.shape[1]
    first, second = np.zeros(d), np.zeros((d, d))
    for known, rows in patterns(x):
        imputed, weight = filled_rows(x[rows], known, mean, covariance), weights[rows]
        first += weight @ imputed
        second += (imputed * weight[:, None]).T @ imputed
        if not known.all():
            _, residual = conditional(covariance, known)
            second[np.ix_(~known, ~known)] += weight.sum() * residual
    return first, second


def filled_rows(x: Array, known: Array, mean: Array, covariance: Array) -> Array:
    """Rows (n, d) of one pattern with missing values replaced by their conditional means."""
    if known.all():
        return x
    slopes, _ = conditional(covariance, known)
    imputed = x.copy()
    imputed[:, ~known] = mean[~known] + (x[:, known] - mean[known]) @ slopes.T
    return imputed


def marginal_gaussians(x: Array, means: Array, covariances: Array) -> Array:
    """Log densities of the known cells of each row under k Gaussians, (n, k); 0 if none is known.

    ``means`` (k, d); ``covariances`` (k, d, d), or (1, d, d) if they share one.
    """
    result = np.zeros((len(x), len(means)))
    for known, rows in patterns(x):
        if known.any():
            cells, among_known = x[np.ix_(rows, np.flatnonzero(known))], covariances[:, known][:, :, known]
            result[rows] = _complete_gaussians(cells, means[:, known], among_known)
    return result


def _complete_gaussians(x: Array, means: Array, covariances: Array) -> Array:
    """Log densities of complete rows, (n, k)."""
    factors = np.linalg.cholesky(covariances)
    result = np.empty((len(x), len(means)))
    for c, mean in enumerate(means):
        factor = factors[c if len(factors) > 1 else 0]
        white = solve_triangular(factor, (x - mean).T, lower=True, check_finite=False)
        log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
        result[:, c] = -0.5 * (np.sum(white**2, axis=0) + log_determinant + len(mean) * LOG_TWO_PI)
    return result


def imputation_precision(x: Array, weight: Array) -> Array:
    """The inverse covariance, (d, d), by which `impute` fills missing values of standardized rows (n, d)."""
    d, rows = x.shape[1], float(weight.sum()) / weight_of_one(weight)
    ridge = min(max(RIDGE_PER_COLUMN * d / rows, LEAST_RIDGE), 1.0)
    filled = np.nan_to_num(x, nan=0.0)
    for _ in range(ROUNDS):
        covariance = (filled * weight[:, None]).T @ filled / weight.sum()
        precision = np.linalg.inv((1.0 - ridge) * covariance + ridge * np.eye(d))
        filled = impute(x, precision)
    return precision


def impute(x: Array, precision: Array) -> Array:
    """Rows of mean 0 (n, d) with missing values replaced by their conditional means given the known cells.

    With the inverse covariance P, the conditional mean of the missing cells m given the known ones o is
    -P[m, m]^-1 P[m, o] x[o]: only matrices as small as the number of missing cells are inverted.
    """
    filled = np.nan_to_num(x, nan=0.0)
    incomplete = np.flatnonzero(np.isnan(x).any(axis=1))
    for known, rows in patterns(x[incomplete]):
        positions, absent = incomplete[rows], np.flatnonzero(~known)
        pull = filled[positions] @ precision[:, absent]
        filled[np.ix_(positions, absent)] = -np.linalg.solve(precision[np.ix_(absent, absent)], pull.T).T
    return filled


def impute_from_factors(x: Array, loadings: Array, noise: float) -> Array:
    """Rows of mean 0 (n, d) with missing values replaced by their conditional means in a factor model.

    Its covariance is B B' + noise * I with loadings B (d, factors). Given the known cells o, the factors have the mean
    (B[o]' B[o] + noise * I)^-1 B[o]' x[o].
    """
    filled = np.nan_to_num(x, nan=0.0)
    incomplete = np.flatnonzero(np.isnan(x).any(axis=1))
    for known, rows in patterns(x[incomplete]):
        positions, part = incomplete[rows], loadings[known]
        gram = part.T @ part + noise * np.eye(part.shape[1])
        factors = np.linalg.solve(gram, part.T @ filled[np.ix_(positions, np.flatnonzero(known))].T)
        filled[np.ix_(positions, np.flatnonzero(~known))] = factors.T @ loadings[~known].T
    return filled
