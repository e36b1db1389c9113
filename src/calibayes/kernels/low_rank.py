"""Gaussian Gram matrices of columns as products of thin factors."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.quantiles import quantiles

SMALLEST = 1e-9
"""Share of the largest eigenvalue of the landmarks' Gram matrix below which the others are rounding."""
NEAR = 1e-8
"""What the landmarks may leave out of the diagonal at a point that might have been one, times the squared share of its
neighbours: of rows that stand alone nothing but the diagonal matters, and that is kept apart."""


def gram_factor(column: Array, share: Array, scale: float, landmarks: int, tolerance: float) -> Array:
    """F of shape (n, rank) such that F F' is near exp(-(x_l - x_m)^2 / scale), of as few columns as will do.

    What the product leaves out of the weighted mean of the diagonal is below the tolerance, beyond what the landmarks
    leave out.
    """
    candidates = _candidates(column, share, landmarks)
    points = _landmarks(candidates, _neighbours(candidates, column, share, scale), scale, landmarks)
    values, vectors = np.linalg.eigh(_gram(points, points, scale))
    kept = values > SMALLEST * values[-1]
    factor = _gram(column, points, scale) @ (vectors[:, kept] / np.sqrt(values[kept]))
    mass, directions = np.linalg.eigh((factor * share[:, None]).T @ factor)
    return np.asarray(factor @ directions[:, np.cumsum(mass) > tolerance])


def _candidates(column: Array, share: Array, count: int) -> Array:
    """Quantiles, where the rows are, points at equal distances, and the rows that are furthest out on each side."""
    among = quantiles(column[:, None], share * len(column), np.linspace(0, 1, count))[:, 0]
    outermost = np.sort(column)[np.r_[:count, -count:0]] if len(column) > 2 * count else column
    return np.unique(np.concatenate([among, np.linspace(column.min(), column.max(), count), outermost]))


def _neighbours(candidates: Array, column: Array, share: Array, scale: float) -> Array:
    """Share of the rows that are near each candidate."""
    order, reach = np.argsort(column), np.sqrt(scale)
    upto = np.concatenate([[0.0], np.cumsum(share[order])])
    low, high = (np.searchsorted(column[order], candidates + sign * reach) for sign in (-1, 1))
    return np.asarray(upto[high] - upto[low])


def _landmarks(candidates: Array, neighbours: Array, scale: float, most: int) -> Array:
    """Candidates that the others are near to: one after the other, that which those before say least about.

    These are the pivots of a Cholesky factorisation of the candidates' Gram matrix, broken off when nothing is left.
    """
    lines, left, worth = np.zeros((most, len(candidates))), np.ones(len(candidates)), neighbours**2
    chosen: list[int] = []
    while len(chosen) < most and (left * worth).max() > NEAR:
        pivot = int(np.argmax(left * worth))
        before = lines[: len(chosen)]
        line = _gram(candidates[pivot : pivot + 1], candidates, scale)[0] - before[:, pivot] @ before
        lines[len(chosen)] = line / np.sqrt(left[pivot])
        left -= lines[len(chosen)] ** 2
        left[pivot] = 0.0
        chosen.append(pivot)
    return np.sort(candidates[chosen])


def _gram(left: Array, right: Array, scale: float) -> Array:
    gaps = left[:, None] - right
    return np.exp(-(gaps**2) / scale)
