"""Residuals and their variances as whole numbers, two in one: sums of them are exact, in any order.

A packed number is ``residual * 2**32 + variance`` in units of 1 / scale. The scale is such that the sum of all variances
is at most 2**30, so that neither part of any sum overflows. Sums of blocks, of threads and of machines are the same bits,
and the sums of one child are those of its parent minus those of the other, without rounding. Numbers are rounded up or down
by a fraction of each row, so that sums of many small ones are right on average.
"""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

LARGEST_SUM = 2.0**30
"""Largest sum of the weights of all rows, in units of 1 / scale."""
SMALLEST_SUM = 2.0**-900
"""A smaller sum of weights is taken for this one, so that the scale is finite."""
HALF = 2**32


def scale_of(weight: Array) -> float:
    """Units per row, a power of two, such that the sum of the weights (n,) fits into a packed number."""
    exponent = np.floor(np.log2(LARGEST_SUM) - np.log2(max(np.sum(weight), SMALLEST_SUM)))
    return float(2.0**exponent)


def variances(posterior: Array) -> Array:
    """P (1 - P) of posteriors (n, k), times k / (k - 1): the second derivative of the log loss if all classes may move."""
    k = posterior.shape[1]
    return np.asarray(posterior * (1.0 - posterior) * (k / (k - 1)))


def packed_residuals(labels: Array, posterior: Array, weight: Array, scale: float, fractions: Array) -> Array:
    """Packed weight * (1[label] - posterior) and weight * variance, (n, k).

    ``labels`` (n,) are class codes, ``fractions`` (n,) those by which each row is rounded.
    """
    units, rounding = (weight * scale)[:, None], fractions[:, None]
    packed = np.floor(variances(posterior) * units + rounding).astype(np.int64)
    packed -= np.floor(posterior * units + rounding).astype(np.int64) * HALF
    packed[np.arange(len(labels)), labels] += np.floor(weight * scale + fractions).astype(np.int64) * HALF
    return packed


def residual(packed: Array) -> Array:
    """The residuals of packed numbers, as floats."""
    return np.right_shift(packed - (packed & (HALF - 1)), 32).astype(np.float64)


def variance(packed: Array) -> Array:
    """The variances of packed numbers, as floats."""
    return (packed & (HALF - 1)).astype(np.float64)
