"""Log densities of numbers, (n, k)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array
from calibayes.kernels import distances

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
    return distances.linear_scores(x, middle, slopes, offsets, variance)


def _in_blocks(x: Array, mean: Array, covariance: Array, whitener: Array) -> Array:
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    if len(whitener) == 1:
        return distances.to_shared(x, mean, whitener[0], variance[0])
    return distances.to_own_means(x, mean, whitener, variance)


def _distances(x: Array, mean: Array, whitener: Array) -> Array:
    """The same in any array library, (n, k)."""
    xp = namespace(x, mean)
    if whitener.shape[0] == 1:
        white, centres = x @ whitener[0, ...].T, mean @ whitener[0, ...].T
        squares = [xp.sum((white - centres[c, :]) ** 2, axis=1) for c in range(mean.shape[0])]
    else:
        squares = [xp.sum(((x - mean[c, :]) @ whitener[c, ...].T) ** 2, axis=1) for c in range(mean.shape[0])]
    return xp.stack(squares, axis=1)
