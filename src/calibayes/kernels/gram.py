"""Gaussian Gram matrices of columns: the median heuristic for their scale, and low-rank factors."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import quantiles

PRECISION = 1e-13
"""Relative precision of the bisection for the median: nearly that of float64."""
ROUNDING = 1e-6
"""Tolerance in pairs when numbers of pairs are compared."""
LEAST_EIGENVALUE = 1e-9
"""Eigenvalues of the landmarks' Gram matrix below this share of the largest are rounding errors."""
LEAST_RESIDUAL = 1e-8
"""Residual of the diagonal at a candidate, times the squared share of rows near it, below which no landmark is added.
For isolated rows only the diagonal matters, which is stored separately."""


def median_squared_gaps(columns: Array, weights: Array) -> Array:
    """Median over pairs of different rows of (x_l - x_m)^2, for each column of (n, d), (d,).

    A weight counts as that many copies of its row. Where more than half of the pairs are equal the median is 0, which is
    no scale; it is replaced by the mean, which is twice the variance (0 for a constant column).
    """
    return np.array([_median_squared_gap(column, weights) for column in columns.T])


def _median_squared_gap(column: Array, weights: Array) -> float:
    order = np.argsort(column, kind="stable")
    values, weight = column[order], weights[order]
    total = float(weight.sum())
    pairs = 0.5 * total * (total - 1.0)
    gap, reached = _gap_of_rank(values, weight, np.floor((pairs - 1) / 2) + 1)
    upper_gap = gap if reached >= np.floor(pairs / 2) + 1 - ROUNDING else _next_gap(values, gap)
    median = 0.5 * (gap**2 + upper_gap**2)
    if median > 0:
        return float(median)
    centered = values - weight @ values / total
    return float(2.0 * (weight @ centered**2) / total)


def _gap_of_rank(values: Array, weight: Array, rank: float) -> tuple[float, float]:
    """The rank-th smallest gap between sorted values (n,), and the number of pairs up to it, by bisection."""
    cumulative = np.concatenate([[0.0], np.cumsum(weight)])
    copies = float((0.5 * weight * (weight - 1.0)).sum())

    def pairs_within(gap: float) -> float:
        ends = np.searchsorted(values, values + gap, side="right")
        return float(weight @ (cumulative[ends] - cumulative[1:])) + copies

    low, high = 0.0, float(values[-1] - values[0])
    if pairs_within(low) >= rank - ROUNDING:
        return 0.0, pairs_within(low)
    while high - low > PRECISION * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if pairs_within(middle) >= rank - ROUNDING else (middle, high)
    return high, pairs_within(high)


def _next_gap(values: Array, gap: float) -> float:
    """The smallest gap between sorted values that is larger than ``gap``."""
    ends = np.searchsorted(values, values + gap, side="right")
    inside = ends < len(values)
    return float((values[ends[inside]] - values[inside]).min()) if inside.any() else gap


def gram_factor(column: Array, share: Array, scale: float, landmarks: int, tolerance: float) -> Array:
    """F (n, rank) with F F' close to exp(-(x_l - x_m)^2 / scale), of as small a rank as possible (Nystroem method).

    ``share`` (n,) are the weights of the rows, which sum to one. The error in the weighted mean of the diagonal is
    below the tolerance plus the error of the approximation by landmarks.
    """
    candidates = _candidates(column, share, landmarks)
    points = _landmarks(candidates, _neighbors(candidates, column, share, scale), scale, landmarks)
    values, vectors = np.linalg.eigh(_gram(points, points, scale))
    significant = values > LEAST_EIGENVALUE * values[-1]
    factor = _gram(column, points, scale) @ (vectors[:, significant] / np.sqrt(values[significant]))
    mass, directions = np.linalg.eigh((factor * share[:, None]).T @ factor)
    return np.asarray(factor @ directions[:, np.cumsum(mass) > tolerance])


def _candidates(column: Array, share: Array, count: int) -> Array:
    """Candidate landmarks, distinct and ascending: quantiles, equidistant points and the outermost rows on each side."""
    at_quantiles = quantiles(column[:, None], share * len(column), np.linspace(0, 1, count))[:, 0]
    outermost = np.sort(column)[np.r_[:count, -count:0]] if len(column) > 2 * count else column
    equidistant = np.linspace(column.min(), column.max(), count)
    return np.unique(np.concatenate([at_quantiles, equidistant, outermost]))


def _neighbors(candidates: Array, column: Array, share: Array, scale: float) -> Array:
    """Share of the rows within sqrt(scale) of each candidate, (candidates,)."""
    order, radius = np.argsort(column), np.sqrt(scale)
    cumulative = np.concatenate([[0.0], np.cumsum(share[order])])
    low, high = (np.searchsorted(column[order], candidates + sign * radius) for sign in (-1, 1))
    return np.asarray(cumulative[high] - cumulative[low])


def _landmarks(candidates: Array, neighbors: Array, scale: float, most: int) -> Array:
    """At most ``most`` landmarks, ascending: the pivots of a Cholesky factorization of the candidates' Gram matrix.

    Each step takes the candidate with the largest residual times squared share of neighbors, until that is small.
    """
    factor_rows, residual = np.zeros((most, len(candidates))), np.ones(len(candidates))
    priority = neighbors**2
    chosen: list[int] = []
    while len(chosen) < most and (residual * priority).max() > LEAST_RESIDUAL:
        pivot = int(np.argmax(residual * priority))
        before = factor_rows[: len(chosen)]
        row = _gram(candidates[pivot : pivot + 1], candidates, scale)[0] - before[:, pivot] @ before
        factor_rows[len(chosen)] = row / np.sqrt(residual[pivot])
        residual -= factor_rows[len(chosen)] ** 2
        residual[pivot] = 0.0
        chosen.append(pivot)
    return np.sort(candidates[chosen])


def _gram(left: Array, right: Array, scale: float) -> Array:
    """exp(-(x - y)^2 / scale) for all pairs of x (n,) and y (m,), (n, m)."""
    gaps = left[:, None] - right
    return np.exp(-(gaps**2) / scale)
