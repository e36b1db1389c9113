"""Numbers with independent columns, x (n, d) of float32 or float64: each row is read once. NaN is a missing cell."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import densities, missing, moments
from calibayes.kernels.native import numbers as native
from calibayes.kernels.native import twin


@twin(native.log_density)
def log_density(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells under Gaussians with means and variances (k, d), (n, k)."""
    x = np.asarray(x, dtype=np.float64)
    density = missing.marginal_diagonal if np.isnan(x).any() else densities.diagonal_gaussian
    return np.asarray(density(x, mean, variance))


@twin(native.power_sums)
def power_sums(x: Array, centre: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Weighted sums over the known cells of 1, x - centre and its square, (k, d) each; weights (n, k) of any sign."""
    known, filled = missing.known_and_filled(np.asarray(x, dtype=np.float64) - centre)
    return moments.first(known, weights), moments.first(filled, weights), moments.squares(filled, weights)
