"""Gaussian kernels on a device: moments, log densities and covariance factors, by blocked matrix products."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from calibayes.backends.device.array import DeviceArray, Placement, row_ranges, sums_over_rows, to_numpy
from calibayes.kernels import gaussian_density, moments
from calibayes.kernels.dispatch import device_version

COLUMN_PARTS, FEWEST_COLUMNS = 4, 64
"""Triangular products are computed in so many parts, each without the zeros beyond it, if a part has enough columns."""
PADDING = 2
"""Columns before those of the rows: ones, so that a product also adds a constant, and zeros, which keep rows aligned."""
FAR = 2.0**20
"""Squared distance of a class mean, in standard deviations, beyond which a class is centered on its own mean: squares
about a common point would have a rounding error above 2**-32."""


def column_parts(d: int) -> list[slice]:
    """Consecutive parts of d columns."""
    parts = min(COLUMN_PARTS, max(d // FEWEST_COLUMNS, 1))
    ends = [d * part // parts for part in range(parts + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def squared_lengths(place: Placement, x: Any) -> Any:
    """Sum of squares along the last axis."""
    return place.xp.linalg.vector_norm(x, axis=-1) ** 2


# -- densities -----------------------------------------------------------------------------------------------------


@device_version(gaussian_density.diagonal_log_density)
def diagonal_log_density(x: DeviceArray, mean: Any, variance: Any) -> DeviceArray:
    """Squares are expanded about the mean of the class means: two products for all classes."""
    place, xp = x.placement, x.placement.xp
    mean, precision = x.raw(mean), 1.0 / x.raw(variance)
    middle = xp.mean(mean, axis=0)
    shift = mean - middle
    constant = 0.5 * xp.sum(xp.log(precision), axis=1) - 0.5 * x.shape[1] * gaussian_density.LOG_TWO_PI
    if bool(xp.max(shift**2 * precision) > FAR):
        roots = xp.sqrt(precision)
        scaled = lambda c, difference: difference * roots[c, :]
        return x.wrap(constant - 0.5 * _distances_by_mean(place, x.values, mean, scaled))
    parts = []
    for rows in row_ranges(x.shape[0], 24 * x.shape[1]):
        block = place.float64(x.values[rows, :]) - middle
        parts.append(block * block @ (-0.5 * precision).T + block @ (shift * precision).T)
    return x.wrap(xp.concat(parts) + (constant - 0.5 * xp.sum(shift**2 * precision, axis=1)))


def _distances_by_mean(place: Placement, x: Any, mean: Any, scaled: Callable[[int, Any], Any]) -> Any:
    """Squared lengths (n, k) of the scaled differences from the mean of each class, class by class."""
    parts = []
    for rows in row_ranges(x.shape[0], 24 * x.shape[1]):
        block, classes = place.float64(x[rows, :]), range(mean.shape[0])
        distances = [squared_lengths(place, scaled(c, block - mean[c, :])) for c in classes]
        parts.append(place.xp.stack(distances, axis=1))
    return place.xp.concat(parts)


@device_version(gaussian_density.full_gaussian)
def full_gaussian(
    x: DeviceArray, mean: Any, covariance: Any, whitener: Any, log_determinant: Any
) -> DeviceArray:
    place, mean, whitener = x.placement, x.raw(mean), x.raw(whitener)
    constant = -0.5 * (x.raw(log_determinant) + x.shape[1] * gaussian_density.LOG_TWO_PI)
    distances = _distances_shared if whitener.shape[0] == 1 else _distances_by_class
    return x.wrap(constant - 0.5 * distances(place, x.values, mean, whitener))


def _distances_by_class(place: Placement, x: Any, mean: Any, whitener: Any) -> Any:
    """Squared Mahalanobis distances, (n, k): one product per part of the whitened columns, for all classes."""
    xp, (k, d) = place.xp, mean.shape
    middle = xp.mean(mean, axis=0)
    shift = (whitener @ (mean - middle)[:, :, None])[:, :, 0]
    if bool(xp.max(xp.sum(shift**2, axis=1)) > FAR):
        return _distances_by_mean(place, x, mean, lambda c, difference: difference @ whitener[c, :, :].T)
    factors = [_padded_factor(place, whitener, shift, part) for part in column_parts(d)]
    parts = []
    for rows in row_ranges(x.shape[0], 8 * (d + PADDING + k * d // len(factors))):
        block = _padded_rows(place, x[rows, :], middle)
        squares = place.zeros((block.shape[0], k))
        for factor in factors:
            white = block[:, : factor.shape[0]] @ factor
            squares = squares + squared_lengths(place, xp.reshape(white, (block.shape[0], k, -1)))
        parts.append(squares)
    return xp.concat(parts)


def _padded_rows(place: Placement, x: Any, center: Any) -> Any:
    """Columns of one and zero before x - center."""
    xp, n = place.xp, x.shape[0]
    one = xp.ones((n, 1), dtype=xp.float64, device=place.device)
    return xp.concat([one, place.zeros((n, PADDING - 1)), place.float64(x) - center], axis=1)


def _padded_factor(place: Placement, whitener: Any, shift: Any, part: slice) -> Any:
    """Whitened columns of a part, minus the shift, as a factor (padding + columns, k * columns of the part)."""
    xp, k = place.xp, whitener.shape[0]
    triangle = xp.permute_dims(whitener[:, part, : part.stop], (2, 0, 1))
    flat = xp.reshape(triangle, (part.stop, -1))
    first = xp.reshape(-shift[:, part], (1, -1))
    return xp.concat([first, place.zeros((PADDING - 1, k * (part.stop - part.start))), flat])


def _distances_shared(place: Placement, x: Any, mean: Any, whitener: Any) -> Any:
    """Squared Mahalanobis distances under one covariance, (n, k): one product for all classes."""
    xp = place.xp
    middle, factor = xp.mean(mean, axis=0), whitener[0, :, :].T
    centers = (mean - middle) @ factor
    squares = xp.sum(centers**2, axis=1)
    if bool(xp.max(squares) > FAR):
        return _distances_by_mean(place, x, mean, lambda c, difference: difference @ factor)
    parts = []
    for rows in row_ranges(x.shape[0], 24 * x.shape[1]):
        white = (place.float64(x[rows, :]) - middle) @ factor
        distances = squared_lengths(place, white)[:, None] + squares - 2.0 * (white @ centers.T)
        parts.append(xp.where(distances > 0.0, distances, xp.zeros_like(distances)))
    return xp.concat(parts)


@device_version(gaussian_density.linear_scores)
def linear_scores(x: DeviceArray, center: Any, slopes: Any, offsets: Any, variance: Any) -> DeviceArray:
    place, center, slopes = x.placement, x.raw(center), x.raw(slopes)
    ranges = row_ranges(x.shape[0], 16 * x.shape[1])
    scores = [(place.float64(x.values[rows, :]) - center) @ slopes.T for rows in ranges]
    return x.wrap(place.xp.concat(scores) + x.raw(offsets))


# -- covariance factors --------------------------------------------------------------------------------------------


def cholesky(place: Placement, matrices: Any) -> Any | None:
    """Lower Cholesky factors (g, d, d), or None if a matrix is not positive definite."""
    xp = place.xp
    if hasattr(xp.linalg, "cholesky_ex"):  # PyTorch: reports a failure instead of raising it
        factors, failed = xp.linalg.cholesky_ex(matrices)
        return None if bool(xp.any(failed != 0)) else factors
    try:
        return xp.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return None


def inverse_lower(place: Placement, factors: Any) -> Any:
    """Inverses of lower triangular matrices (g, d, d)."""
    xp = place.xp
    if hasattr(xp.linalg, "solve_triangular"):  # PyTorch
        identity = xp.eye(factors.shape[1], dtype=factors.dtype, device=place.device)
        return xp.linalg.solve_triangular(factors, xp.broadcast_to(identity, factors.shape), upper=False)
    return xp.tril(xp.linalg.inv(factors))


@device_version(gaussian_density.unexplained)
def unexplained(matrices: DeviceArray) -> DeviceArray:
    """Matrices that are not positive definite are rare: NumPy finds where that shows."""
    place, xp = matrices.placement, matrices.placement.xp
    factors = cholesky(place, matrices.values)
    if factors is None:
        return matrices.wrap(place.array(gaussian_density.unexplained(to_numpy(matrices.values))))
    left = 1.0 / xp.sum(inverse_lower(place, factors) ** 2, axis=1)
    is_finite = xp.all(xp.isfinite(left), axis=1, keepdims=True)
    return matrices.wrap(xp.where(is_finite, left, xp.zeros_like(left)))


@device_version(gaussian_density.whiteners)
def whiteners(matrices: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    place, xp = matrices.placement, matrices.placement.xp
    factors = cholesky(place, matrices.values)
    if factors is None:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    logarithms = xp.log(xp.linalg.diagonal(factors))
    return matrices.wrap(inverse_lower(place, factors)), matrices.wrap(2.0 * xp.sum(logarithms, axis=1))


# -- Weighted moments on a device; only rows whose weights are not 0 enter, where these are few --------------

MOST_WEIGHTED = 0.4
"""Share of nonzero weights up to which the rows of each class are gathered; above it, products use all rows."""
BATCHES = 16
"""Number of shares of the rows whose products are computed side by side: sums over rows alone have too few results to
occupy a device."""


@device_version(moments.has_missing)
def has_missing(x: DeviceArray) -> bool:
    return False  # refused when arrays on a device are read


@device_version(moments.as_floats)
def as_floats(x: DeviceArray) -> DeviceArray:
    return x


@device_version(moments.zeroth)
def zeroth(weights: DeviceArray) -> DeviceArray:
    return weights.sum(axis=0)


@device_version(moments.power_sums)
def power_sums(
    x: DeviceArray, center: Any, weights: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    place, w, center = x.placement, x.raw(weights), x.raw(center)
    k, d = w.shape[1], x.shape[1]
    first, second = place.zeros((k, d)), place.zeros((k, d))
    for rows in row_ranges(x.shape[0], 16 * d):
        block = place.float64(x.values[rows, :]) - center
        first = first + w[rows, :].T @ block
        second = second + w[rows, :].T @ (block * block)
    count = place.xp.broadcast_to(place.xp.sum(w, axis=0)[:, None], (k, d))
    return x.wrap(count), x.wrap(first), x.wrap(second)


@device_version(moments.up_to_second)
def up_to_second(
    x: DeviceArray, center: Any, weights: DeviceArray, *, pool_second: bool = False
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    place, center, w = x.placement, x.raw(center), x.raw(weights)
    second_weights = moments.sum_over_classes(weights).values if pool_second else w
    centered = lambda rows: place.float64(x.values[rows, :]) - center
    first = sums_over_rows(place, w, x.shape[1], 16 * x.shape[1], centered)
    return weights.sum(axis=0), x.wrap(first), x.wrap(_outer(place, x.values, center, second_weights))


@device_version(moments.sum_over_classes)
def sum_over_classes(weights: DeviceArray) -> DeviceArray:
    total = weights.sum(axis=1, keepdims=True)
    largest = abs(weights).max()
    total[abs(total) <= moments.ROUNDING * largest] = 0.0
    return total


def _outer(place: Placement, x: Any, center: Any, weights: Any) -> Any:
    """Weighted sums of outer products of x - center, (k, d, d)."""
    xp = place.xp
    is_weighted = weights != 0.0
    counts = DeviceArray(xp.sum(xp.astype(is_weighted, xp.int64), axis=0), place).tolist()
    if sum(counts) > MOST_WEIGHTED * x.shape[0] * weights.shape[1]:
        return _outer_of_all(place, x, center, weights)
    return _outer_of_weighted(place, x, center, weights, is_weighted, counts)


def _outer_of_all(place: Placement, x: Any, center: Any, weights: Any) -> Any:
    """`_outer` by products with all rows, for all classes at once."""
    d, k = x.shape[1], weights.shape[1]
    total = place.zeros((k, d, d))
    for rows in row_ranges(x.shape[0], 8 * d * (2 + k // len(column_parts(d)))):
        block = place.float64(x[rows, :]) - center
        total = total + _symmetric_products(place, block[None, :, :], weights[rows, :][None, :, :])
    return total


def _outer_of_weighted(
    place: Placement, x: Any, center: Any, weights: Any, is_weighted: Any, counts: list[int]
) -> Any:
    """`_outer` by products with the rows of each class whose weight is not 0, filled up with rows of weight 0."""
    xp, d, k = place.xp, x.shape[1], weights.shape[1]
    rows, cells = _weighted_rows(place, weights, is_weighted, counts)
    total = place.zeros((k, d, d))
    for part in row_ranges(rows.shape[1], 24 * d * k):
        block = xp.take(x, xp.reshape(rows[:, part], (-1,)), axis=0)
        block = xp.reshape(place.float64(block) - center, (k, -1, d))
        total = total + _symmetric_products(place, block, cells[:, part][:, :, None])
    return total


def _weighted_rows(place: Placement, weights: Any, is_weighted: Any, counts: list[int]) -> tuple[Any, Any]:
    """Positions of the rows with a weight in each class, and these weights, (k, most); row 0 with weight 0 after them."""
    xp, (n, k) = place.xp, weights.shape
    most = max(-(-max(counts) // BATCHES) * BATCHES, BATCHES)
    classes, rows = xp.nonzero(is_weighted.T)  # by class, and within a class by row
    end = xp.zeros((1,), dtype=rows.dtype, device=place.device)
    values = xp.take(xp.reshape(weights.T, (-1,)), classes * n + rows)
    starts = np.cumsum([0, *counts[:-1]])
    places = np.arange(most)
    found = np.where(places < np.array(counts)[:, None], starts[:, None] + places, sum(counts))
    index = place.array(found.ravel(), "int64")
    rows = xp.take(xp.concat([rows, end]), index)
    values = xp.take(xp.concat([values, place.zeros((1,))]), index)
    return xp.reshape(rows, (k, most)), xp.reshape(values, (k, most))


def _symmetric_products(place: Placement, x: Any, weights: Any) -> Any:
    """Sums over rows of weight times x x', (g * k, d, d), for g groups of rows (g, n, d) and weights (g, n, k).

    Only the lower triangles are computed, in parts of the columns.
    """
    xp, (groups, n, d), k = place.xp, x.shape, weights.shape[2]
    whole = n - n % BATCHES
    triangles = place.zeros((groups * k, d, d))
    for batches, rows in ((BATCHES, slice(0, whole)), (1, slice(whole, n))):
        if rows.stop == rows.start:
            continue
        shape = (groups * batches, (rows.stop - rows.start) // batches)
        block = xp.reshape(x[:, rows, :], (*shape, d))
        weighted = xp.reshape(weights[:, rows, :], (*shape, k, 1))
        strips = [_strip(place, block, weighted, part, groups) for part in column_parts(d)]
        triangles = triangles + xp.concat(strips, axis=1)
    return xp.tril(triangles) + xp.matrix_transpose(xp.tril(triangles, k=-1))


def _strip(place: Placement, x: Any, weights: Any, part: slice, groups: int) -> Any:
    """Some rows of the products of all groups, (g * k, columns of the part, d), 0 beyond the lower triangle."""
    xp, (batches, n, d), k, width = place.xp, x.shape, weights.shape[2], part.stop - part.start
    scaled = xp.reshape(x[:, :, None, part] * weights, (batches, n, k * width))
    products = xp.matmul(xp.matrix_transpose(scaled), x[:, :, : part.stop])
    sums = xp.sum(xp.reshape(products, (groups, batches // groups, k * width, part.stop)), axis=1)
    sums = xp.reshape(sums, (groups * k, width, part.stop))
    return xp.concat([sums, place.zeros((groups * k, width, d - part.stop))], axis=2)
