"""Independent columns of numbers: power sums, range, variances and diagonal Gaussian densities in one pass.

x (n, d) is float32 or float64; NaN is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, is_matrix, row_major, twin
from calibayes.kernels.numbers import gaussian, missing, moments
from calibayes.kernels.threads import map_row_ranges

CELLS = 2**16
"""Numbers in a block of rows: half a megabyte in float64."""


def native_log_density(module: Any, x: Array, mean: Array, variance: Array) -> Any:
    if not is_matrix(x, "f") or not len(mean) or x.shape[1] == 0:
        return NotImplemented
    out = np.empty((len(x), len(mean)))
    module.diagonal_gaussian(row_major(x), as_float64(mean), as_float64(variance), out)
    return out


def native_power_sums(module: Any, x: Array, center: Array, weights: Array) -> Any:
    if not is_matrix(x, "f") or not is_matrix(weights, "fiub") or x.shape[1] == 0 or weights.shape[1] == 0:
        return NotImplemented
    out = np.empty((3, weights.shape[1], x.shape[1]))
    module.power_sums(row_major(x), as_float64(center), as_float64(weights), out)
    return out[0], out[1], out[2]


def native_minimum_and_maximum(module: Any, x: Array) -> Any:
    if not is_matrix(x, "f") or not x.size:
        return NotImplemented
    return module.ends(row_major(x))


@twin(native_log_density)
def log_density(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells under independent Gaussians with means and variances (k, d), (n, k)."""
    x = np.asarray(x, dtype=np.float64)
    density = missing.marginal_diagonal if np.isnan(x).any() else gaussian.diagonal_gaussian
    return np.asarray(density(x, mean, variance))


@twin(native_power_sums)
def power_sums(x: Array, center: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weighted sums over the known cells of 1, x - center and (x - center)^2, (k, d) each; weights (n, k) of any sign."""
    known, filled = missing.known_and_filled(np.asarray(x, dtype=np.float64) - center)
    return moments.first(known, weights), moments.first(filled, weights), moments.squares(filled, weights)


@twin(native_minimum_and_maximum)
def minimum_and_maximum(x: Array) -> tuple[float, float]:
    """Smallest and largest number of x (n, d), not empty; both NaN if there is a NaN."""
    low, high = np.transpose([(np.min(block), np.max(block)) for block in _blocks(x)])
    return float(np.min(low)), float(np.max(high))


def _blocks(x: Array) -> Iterator[Array]:
    """Consecutive blocks of rows with about `CELLS` numbers."""
    rows = max(CELLS // max(x[:1].size, 1), 1)
    return (x[start : start + rows] for start in range(0, len(x), rows))


def extent(x: Array) -> tuple[float, float]:
    """`minimum_and_maximum` of x (n,) or (n, d) in parallel; 0 and 0 if x is empty."""
    if not x.size:
        return 0.0, 0.0
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    low, high = np.transpose(map_row_ranges(lambda rows: minimum_and_maximum(x[rows]), len(x), x[:1].nbytes))
    return float(np.min(low)), float(np.max(high))


def variances(x: Array, near: Array) -> Array:
    """Variance of each column, (d,), of rows (n, d) without missing values.

    Sums are taken about ``near`` (d,), a point close to the means, so that little precision is lost.
    """

    def range_sums(rows: slice) -> Array:
        return np.stack(power_sums(x[rows], near, np.ones((len(x[rows]), 1))))

    _, first, second = np.sum(map_row_ranges(range_sums, len(x), x[:1].nbytes), axis=0)[:, 0]
    return np.maximum(second / len(x) - (first / len(x)) ** 2, 0.0)
