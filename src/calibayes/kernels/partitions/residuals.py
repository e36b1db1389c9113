"""Residuals and their variances as whole numbers, two in one: sums of them are exact, in any order.

A packed number is ``residual * 2**32 + variance`` in units of 1 / scale. The scale is such that the sum of all variances
is at most 2**30, so that neither part of any sum overflows. Sums of blocks, of threads and of machines are the same bits,
and the sums of one child are those of its parent minus those of the other, without rounding. Numbers are rounded up or down
by a fraction of each row, so that sums of many small ones are right on average. Of two classes the second is enough: the
residuals of the first are the opposite ones, and the variances the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, as_type, is_matrix, twin

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
    if k < 2:
        raise ValueError(f"residuals need two classes, got {k}")
    return np.asarray(posterior * (1.0 - posterior) * (k / (k - 1)))


def native_packed_residuals(
    module: Any, labels: Array, posterior: Array, weight: Array, scale: float, fractions: Array
) -> Any:
    if not is_matrix(posterior, "f"):
        return NotImplemented
    packed = np.empty((len(posterior), packed_classes(posterior.shape[1])), dtype=np.int64)
    arrays = (as_int64(labels), as_float64(posterior), as_float64(weight))
    module.packed_residuals(*arrays, scale, as_float64(fractions), packed)
    return packed


@twin(native_packed_residuals)
def packed_residuals(labels: Array, posterior: Array, weight: Array, scale: float, fractions: Array) -> Array:
    """Packed weight * (1[label] - posterior) and weight * variance, (n, k), or (n, 1) of the second of two classes.

    ``labels`` (n,) are class codes, ``fractions`` (n,) those by which each row is rounded.
    """
    units, rounding = (weight * scale)[:, None], fractions[:, None]
    packed = np.floor(variances(posterior) * units + rounding).astype(np.int64)
    packed -= np.floor(posterior * units + rounding).astype(np.int64) * HALF
    packed[np.arange(len(labels)), labels] += np.floor(weight * scale + fractions).astype(np.int64) * HALF
    return packed[:, -packed_classes(posterior.shape[1]) :].copy()


def packed_classes(k: int) -> int:
    """Number of classes whose numbers are packed, of k."""
    return 1 if k == 2 else k


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf."""

    residual: Array
    """Of weight * (1[label] - posterior), (leaves, k)."""
    variance: Array
    """Of weight * variance, (leaves, k)."""
    mass: Array
    """Of the weights, (leaves,)."""


def native_leaf_sums(
    module: Any, leaves: int, codes: Array, labels: Array, posterior: Array, weight: Array
) -> Any:
    if not is_matrix(posterior, "f"):
        return NotImplemented
    sums = LeafSums(
        np.zeros((leaves, posterior.shape[1])), np.zeros((leaves, posterior.shape[1])), np.zeros(leaves)
    )
    arrays = (as_type(codes, np.int32), as_int64(labels), as_float64(posterior), as_float64(weight))
    module.leaf_sums(*arrays, *sums)
    return sums


@twin(native_leaf_sums)
def leaf_sums(leaves: int, codes: Array, labels: Array, posterior: Array, weight: Array) -> LeafSums:
    """Sums over rows with leaves ``codes`` (n,), class codes ``labels`` (n,) and posteriors (n, k)."""
    k = posterior.shape[1]
    observed = np.bincount(codes * k + labels, weight, minlength=leaves * k).reshape(leaves, k)
    expected, variance = (
        np.stack([np.bincount(codes, weight * column, minlength=leaves) for column in columns.T], axis=1)
        for columns in (posterior, variances(posterior))
    )
    return LeafSums(observed - expected, variance, np.bincount(codes, weight, minlength=leaves))


def residual(packed: Array) -> Array:
    """The residuals of packed numbers, as floats."""
    return np.right_shift(packed - (packed & (HALF - 1)), 32).astype(np.float64)


def variance(packed: Array) -> Array:
    """The variances of packed numbers, as floats."""
    return (packed & (HALF - 1)).astype(np.float64)
