"""Weighted moments on a device; only rows whose weights are not 0 enter, where these are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.kernels.device.array import DeviceArray
from calibayes.kernels.device.gaussian import centered, column_parts
from calibayes.kernels.device.placement import Placement, row_ranges
from calibayes.kernels.dispatch import device_version
from calibayes.kernels.numbers import moments

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
        block = centered(place, x.values[rows, :], center)
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
    first = _first(place, x.values, center, w)
    return weights.sum(axis=0), x.wrap(first), x.wrap(_outer(place, x.values, center, second_weights))


@device_version(moments.sum_over_classes)
def sum_over_classes(weights: DeviceArray) -> DeviceArray:
    total = weights.sum(axis=1, keepdims=True)
    largest = abs(weights).max()
    total[abs(total) <= moments.ROUNDING * largest] = 0.0
    return total


def _first(place: Placement, x: Any, center: Any, weights: Any) -> Any:
    """Weighted sums of x - center, (k, d)."""
    total = place.zeros((weights.shape[1], x.shape[1]))
    for rows in row_ranges(x.shape[0], 16 * x.shape[1]):
        total = total + weights[rows, :].T @ centered(place, x[rows, :], center)
    return total


def _outer(place: Placement, x: Any, center: Any, weights: Any) -> Any:
    """Weighted sums of outer products of x - center, (k, d, d)."""
    xp = place.xp
    is_weighted = weights != 0.0
    counts = [int(count) for count in _listed(place, xp.sum(xp.astype(is_weighted, xp.int64), axis=0))]
    if sum(counts) > MOST_WEIGHTED * x.shape[0] * weights.shape[1]:
        return _outer_of_all(place, x, center, weights)
    return _outer_of_weighted(place, x, center, weights, is_weighted, counts)


def _listed(place: Placement, values: Any) -> list[Any]:
    """The entries of a small array, by one copy to the host."""
    entries: list[Any] = DeviceArray(values, place).tolist()
    return entries


def _outer_of_all(place: Placement, x: Any, center: Any, weights: Any) -> Any:
    """`_outer` by products with all rows, for all classes at once."""
    d, k = x.shape[1], weights.shape[1]
    total = place.zeros((k, d, d))
    for rows in row_ranges(x.shape[0], 8 * d * (2 + k // len(column_parts(d)))):
        block = centered(place, x[rows, :], center)
        by_class = place.xp.broadcast_to(block[None, :, :], (1, *block.shape))
        total = total + _symmetric_products(place, by_class, weights[rows, :][None, :, :])
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
        block = xp.reshape(centered(place, block, center), (k, -1, d))
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
    lower = xp.tril(triangles)
    return lower + xp.matrix_transpose(xp.tril(triangles, k=-1))


def _strip(place: Placement, x: Any, weights: Any, part: slice, groups: int) -> Any:
    """Some rows of the products of all groups, (g * k, columns of the part, d), 0 beyond the lower triangle."""
    xp, (batches, n, d), k, width = place.xp, x.shape, weights.shape[2], part.stop - part.start
    scaled = xp.reshape(x[:, :, None, part] * weights, (batches, n, k * width))
    products = xp.matmul(xp.matrix_transpose(scaled), x[:, :, : part.stop])
    sums = xp.sum(xp.reshape(products, (groups, batches // groups, k * width, part.stop)), axis=1)
    sums = xp.reshape(sums, (groups * k, width, part.stop))
    return xp.concat([sums, place.zeros((groups * k, width, d - part.stop))], axis=2)
