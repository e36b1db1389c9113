"""Order statistics of rows that carry weights: a weight counts as that many copies of its row."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def spread(columns: Array, weights: Array) -> Array:
    """A robust standard deviation of each column, (d,): the least of its own and of its inter-quartile range / 1.349.

    Where half of the rows are equal the range is 0 and says nothing, so the standard deviation stands alone.
    """
    deviation = standard_deviation(columns, weights)
    low, high = quantiles(columns, weights, np.array([0.25, 0.75]))
    quartiles = (high - low) / 1.349
    return np.where(quartiles > 0, np.minimum(deviation, quartiles), deviation)


def standard_deviation(columns: Array, weights: Array) -> Array:
    """With the number of rows less one below the squares, (d,); 0 for a constant column, whatever rounding says."""
    total = weights.sum()
    centerd = columns - weights @ columns / total
    found = np.sqrt(weights @ centerd**2 / max(total - 1.0, 1.0))
    return np.where(np.ptp(columns, axis=0) > 0, found, 0.0)


def quantiles(columns: Array, weights: Array, shares: Array) -> Array:
    """Values below which given shares of the copies lie, (shares, d), with a straight line between neighbors."""
    order = np.argsort(columns, axis=0, kind="stable")
    values, reached = np.take_along_axis(columns, order, axis=0), np.cumsum(weights[order], axis=0)
    places = shares * max(float(weights.sum()) - 1.0, 0.0)
    low = np.floor(places)
    part = places - low
    return np.stack(
        [
            (1 - part) * _values_at(column, copies, low) + part * _values_at(column, copies, low + 1)
            for column, copies in zip(values.T, reached.T, strict=True)
        ],
        axis=1,
    )


def _values_at(values: Array, reached: Array, places: Array) -> Array:
    """Values of the copies at some places, counted from 0."""
    found = np.searchsorted(reached, places + 1e-9, side="right")
    return np.asarray(values[np.minimum(found, len(values) - 1)])


def mid_ranks(columns: Array, weights: Array) -> Array:
    """The rank of each cell among the copies of its column, equal cells sharing the mean of theirs, (n, d)."""
    return np.stack([_mid_ranks(column, weights) for column in columns.T], axis=1)


def _mid_ranks(column: Array, weights: Array) -> Array:
    _, group = np.unique(column, return_inverse=True)
    mass = np.bincount(group, weights)
    return np.asarray((np.cumsum(mass) - 0.5 * mass + 0.5)[group])
