"""Columns of independent numbers, read once: power sums, extent, variances and diagonal Gaussian densities.

x (n, d) is float32 or float64; NaN is a missing value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import by_row, floats, is_matrix, twin
from calibayes.kernels.numbers import gaussian, missing, moments
from calibayes.kernels.threads import map_row_ranges


def native_log_density(module: Any, x: Array, mean: Array, variance: Array) -> Any:
    if not is_matrix(x, "f") or not len(mean) or x.shape[1] == 0:
        return NotImplemented
    out = np.empty((len(x), len(mean)))
    module.diagonal_gaussian(by_row(x), floats(mean), floats(variance), out)
    return out


def native_power_sums(module: Any, x: Array, center: Array, weights: Array) -> Any:
    if not is_matrix(x, "f") or not is_matrix(weights, "fiub") or x.shape[1] == 0 or weights.shape[1] == 0:
        return NotImplemented
    out = np.empty((3, weights.shape[1], x.shape[1]))
    module.power_sums(by_row(x), floats(center), floats(weights), out)
    return out[0], out[1], out[2]


def native_ends(module: Any, x: Array) -> Any:
    if not is_matrix(x, "f") or not x.size:
        return NotImplemented
    return module.ends(by_row(x))


@twin(native_log_density)
def log_density(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells under Gaussians with means and variances (k, d), (n, k)."""
    x = np.asarray(x, dtype=np.float64)
    density = missing.marginal_diagonal if np.isnan(x).any() else gaussian.diagonal_gaussian
    return np.asarray(density(x, mean, variance))


@twin(native_power_sums)
def power_sums(x: Array, center: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weighted sums over the known cells of 1, x - center and its square, (k, d) each; weights (n, k) of any sign."""
    known, filled = missing.known_and_filled(np.asarray(x, dtype=np.float64) - center)
    return moments.first(known, weights), moments.first(filled, weights), moments.squares(filled, weights)


CELLS = 2**16
"""Numbers in a block of rows: half a megabyte in float64."""


def _blocks(x: Array) -> Iterator[Array]:
    rows = max(CELLS // max(x[:1].size, 1), 1)
    return (x[start : start + rows] for start in range(0, len(x), rows))


def extent(x: Array) -> tuple[float, float]:
    """Least and largest number, both NaN where there is a NaN; of no numbers 0 and 0."""
    if not x.size:
        return 0.0, 0.0
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    low, high = np.transpose(map_row_ranges(lambda rows: ends(x[rows]), len(x), x[:1].nbytes))
    return float(np.min(low)), float(np.max(high))


@twin(native_ends)
def ends(x: Array) -> tuple[float, float]:
    """The same of some rows, at least one."""
    low, high = np.transpose([(np.min(block), np.max(block)) for block in _blocks(x)])
    return float(np.min(low)), float(np.max(high))


def variances(x: Array, near: Array) -> Array:
    """Variance of each column, (d,), of rows (n, d) without missing cells; ``near`` is a point in their midst."""

    def of(rows: slice) -> Array:
        return np.stack(power_sums(x[rows], near, np.ones((len(x[rows]), 1))))

    _, first, second = np.sum(map_row_ranges(of, len(x), x[:1].nbytes), axis=0)[:, 0]
    return np.maximum(second / len(x) - (first / len(x)) ** 2, 0.0)
