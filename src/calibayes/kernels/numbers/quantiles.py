"""Quantiles, ranks and spread of weighted columns.

A weight counts as that many copies of its row. There are three definitions of a quantile, for three uses:

- `quantiles`: linear interpolation between neighboring copies (definition 7 of Hyndman and Fan 1996, the default of
  `numpy.quantile`). Needs weights in units of rows.
- `inverse_cdf_quantiles`: a value of the sample, or the midpoint of two (definition 2; "averaged_inverted_cdf" of
  `numpy.quantile`). Does not depend on the unit of the weights.
- `histogram_quantiles`: linear interpolation of the cumulative counts of a histogram, where values are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array

NORMAL_IQR = 2.0 * 0.6744897501960817
"""Interquartile range of the standard normal distribution."""
ROUNDING = 1e-12
"""Relative tolerance when a cumulative weight is compared with a share of the total."""
COPY_ROUNDING = 1e-9
"""Absolute tolerance, in rows, when a cumulative weight is compared with a position."""


def sort_columns(columns: Array, weights: Array) -> tuple[Array, Array]:
    """Values of each column in ascending order and the cumulative weights up to each, (d, n) each.

    ``columns`` are (d, n), one column per line; ``weights`` (n,).
    """
    order = np.argsort(columns, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.cumsum(weights[order], axis=1)


def quantiles(columns: Array, weights: Array, shares: Array) -> Array:
    """Quantiles of columns (n, d) at given shares, by linear interpolation between neighboring copies, (shares, d)."""
    positions = shares * max(float(weights.sum()) - 1.0, 0.0)
    low = np.floor(positions)
    part = positions - low
    return np.stack(
        [
            (1 - part) * _copies_at(values, cumulative, low) + part * _copies_at(values, cumulative, low + 1)
            for values, cumulative in zip(*sort_columns(columns.T, weights), strict=True)
        ],
        axis=1,
    )


def _copies_at(values: Array, cumulative: Array, positions: Array) -> Array:
    """Values of the copies at given positions, counted from 0."""
    rows = np.searchsorted(cumulative, positions + COPY_ROUNDING, side="right")
    return np.asarray(values[np.minimum(rows, len(values) - 1)])


def inverse_cdf_quantiles(values: Array, weight: Array, shares: Sequence[float]) -> list[float]:
    """Quantiles of values (n,): the midpoint where a whole interval has the required share of the weight below it.

    >>> inverse_cdf_quantiles(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), (0.5, 1.0))
    [2.5, 4.0]
    """
    ranked, cumulative = sort_columns(values[None], weight)
    return [float(inverse_cdf_quantile(ranked, cumulative, share)[0]) for share in shares]


def inverse_cdf_quantile(ranked: Array, cumulative: Array, share: float) -> Array:
    """The quantile at one share of several columns, (d,), given the result of `sort_columns`, (d, n) each."""
    total, last = cumulative[:, -1:], ranked.shape[1] - 1
    low = (cumulative < (share - ROUNDING) * total).sum(axis=1)
    high = (cumulative <= (share + ROUNDING) * total).sum(axis=1)
    column = np.arange(len(ranked))
    return np.asarray((ranked[column, np.minimum(low, last)] + ranked[column, np.minimum(high, last)]) / 2)


def histogram_quantiles(counts: Array, shares: Sequence[float]) -> Array:
    """Quantiles in units of bins, (shares,), of a histogram (bins,): bin i covers i to i + 1, uniformly."""
    cumulative = np.cumsum(counts)
    below = np.array(shares) * cumulative[-1]
    bins = np.searchsorted(cumulative, below)
    return bins + 1.0 - (cumulative[bins] - below) / np.where(counts[bins] > 0, counts[bins], 1.0)


def robust_deviation(columns: Array, weights: Array) -> Array:
    """min(standard deviation, interquartile range / `NORMAL_IQR`) of each column, (d,).

    The standard deviation alone where the interquartile range is 0: with half of the rows equal it measures no spread.
    """
    deviation = standard_deviation(columns, weights)
    low, high = quantiles(columns, weights, np.array([0.25, 0.75]))
    from_quartiles = (high - low) / NORMAL_IQR
    return np.where(from_quartiles > 0, np.minimum(deviation, from_quartiles), deviation)


def standard_deviation(columns: Array, weights: Array) -> Array:
    """Sample standard deviation (divisor n - 1) of each column, (d,); exactly 0 for a constant column."""
    total = weights.sum()
    centered = columns - weights @ columns / total
    deviation = np.sqrt(weights @ centered**2 / max(total - 1.0, 1.0))
    return np.where(np.ptp(columns, axis=0) > 0, deviation, 0.0)


def mid_ranks(columns: Array, weights: Array) -> Array:
    """Rank of each cell among the copies of its column, ties sharing the mean of their ranks, (n, d)."""
    return np.stack([_mid_ranks(column, weights) for column in columns.T], axis=1)


def _mid_ranks(column: Array, weights: Array) -> Array:
    _, group = np.unique(column, return_inverse=True)
    mass = np.bincount(group, weights)
    return np.asarray((np.cumsum(mass) - 0.5 * mass + 0.5)[group])
