"""The median gap between rows, without looking at every pair of them."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

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
    centred = values - weight @ values / total
    return float(2.0 * (weight @ centred**2) / total)


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
