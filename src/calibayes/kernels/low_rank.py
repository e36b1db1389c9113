"""Gaussian Gram matrices of columns as products of thin factors."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.quantiles import quantiles

SMALLEST = 1e-9
"""Share of the largest eigenvalue of the landmarks' Gram matrix below which the others are rounding."""


def gram_factor(column: Array, share: Array, scale: float, landmarks: int, tolerance: float) -> Array:
    """F of shape (n, rank) such that F F' is near exp(-(x_l - x_m)^2 / scale), of as few columns as will do.

    Landmarks lie half at quantiles, where the rows are, and half at equal distances, so that far rows have some near
    them. What the product then leaves out of the weighted mean of the diagonal is below the tolerance, beyond what the
    landmarks leave out.
    """
    half = landmarks // 2
    among = quantiles(column[:, None], share * len(column), np.linspace(0, 1, half))[:, 0]
    points = np.unique(np.concatenate([among, np.linspace(column.min(), column.max(), landmarks - half)]))
    values, vectors = np.linalg.eigh(_gram(points, points, scale))
    kept = values > SMALLEST * values[-1]
    factor = _gram(column, points, scale) @ (vectors[:, kept] / np.sqrt(values[kept]))
    mass, directions = np.linalg.eigh((factor * share[:, None]).T @ factor)
    return np.asarray(factor @ directions[:, np.cumsum(mass) > tolerance])


def _gram(left: Array, right: Array, scale: float) -> Array:
    gaps = left[:, None] - right
    return np.exp(-(gaps**2) / scale)
