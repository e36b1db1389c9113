"""Gaussian Gram matrices of columns as products of thin factors, and the median distance that sets their width."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.quantiles import quantiles

DIGITS = 1e-13
"""How close to the median, relatively, bisection goes: nearly all that a float has."""
ROUNDING = 1e-6


def median_squared_gaps(columns: Array, weights: Array) -> Array:
    """Median over pairs of different rows of (x_l - x_m)^2, for each column, (d,).

    A weight counts as that many copies of its row. Where more than half of the pairs are equal the median is 0 and no
    scale: the mean, twice the variance, takes its place (0 for a constant column).
    """
    return np.array([_of_column(column, weights) for column in columns.T])


def _of_column(column: Array, weights: Array) -> float:
    order = np.argsort(column, kind="stable")
    values, weight = column[order], weights[order]
    total = float(weight.sum())
    pairs = 0.5 * total * (total - 1.0)
    gap, reached = _gap_of_rank(values, weight, np.floor((pairs - 1) / 2) + 1)
    other = gap if reached >= np.floor(pairs / 2) + 1 - ROUNDING else _next_gap(values, gap)
    median = 0.5 * (gap**2 + other**2)
    if median > 0:
        return float(median)
    centerd = values - weight @ values / total
    return float(2.0 * (weight @ centerd**2) / total)


def _gap_of_rank(values: Array, weight: Array, rank: float) -> tuple[float, float]:
    """The rank-th smallest gap and how many pairs are no further apart, which is quick to count in sorted rows."""
    below = np.concatenate([[0.0], np.cumsum(weight)])
    copies = float((0.5 * weight * (weight - 1.0)).sum())

    def pairs_within(gap: float) -> float:
        ends = np.searchsorted(values, values + gap, side="right")
        return float(weight @ (below[ends] - below[1:])) + copies

    low, high = 0.0, float(values[-1] - values[0])
    if pairs_within(low) >= rank - ROUNDING:
        return 0.0, pairs_within(low)
    while high - low > DIGITS * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pairs_within(middle) >= rank - ROUNDING else (middle, high)
    return high, pairs_within(high)


def _next_gap(values: Array, gap: float) -> float:
    """The least gap that is larger."""
    ends = np.searchsorted(values, values + gap, side="right")
    inside = ends < len(values)
    return float((values[ends[inside]] - values[inside]).min()) if inside.any() else gap


SMALLEST = 1e-9
"""Share of the largest eigenvalue of the landmarks' Gram matrix below which the others are rounding."""
NEAR = 1e-8
"""What the landmarks may leave out of the diagonal at a point that might have been one, times the squared share of its
neighbors: of rows that stand alone nothing but the diagonal matters, and that is kept apart."""


def gram_factor(column: Array, share: Array, scale: float, landmarks: int, tolerance: float) -> Array:
    """F of shape (n, rank) such that F F' is near exp(-(x_l - x_m)^2 / scale), of as few columns as will do.

    What the product leaves out of the weighted mean of the diagonal is below the tolerance, beyond what the landmarks
    leave out.
    """
    candidates = _candidates(column, share, landmarks)
    points = _landmarks(candidates, _neighbors(candidates, column, share, scale), scale, landmarks)
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


def _neighbors(candidates: Array, column: Array, share: Array, scale: float) -> Array:
    """Share of the rows that are near each candidate."""
    order, reach = np.argsort(column), np.sqrt(scale)
    upto = np.concatenate([[0.0], np.cumsum(share[order])])
    low, high = (np.searchsorted(column[order], candidates + sign * reach) for sign in (-1, 1))
    return np.asarray(upto[high] - upto[low])


def _landmarks(candidates: Array, neighbors: Array, scale: float, most: int) -> Array:
    """Candidates that the others are near to: one after the other, that which those before say least about.

    These are the pivots of a Cholesky factorization of the candidates' Gram matrix, broken off when nothing is left.
    """
    lines, left, worth = np.zeros((most, len(candidates))), np.ones(len(candidates)), neighbors**2
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
