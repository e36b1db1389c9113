"""Mutual information of each column with the class."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import offsets, weighted_counts
from calibayes.kernels.numbers.quantiles import inverse_cdf_quantile, sort_columns

BINS, FEW_VALUES = 10, 20
"""Number of quantile bins of a column; a column of at most `FEW_VALUES` distinct values has one bin per value instead."""
CELLS = 2**18
"""Cells that are processed at a time."""


def relevance(x: Array, shares: Array, rows: float) -> Array:
    """Mutual information in nats of the binned values of each column and the class, less its bias, (d,); at least 0.

    ``x`` (n, d) has no missing values; ``shares`` (n, k) is the weight of each row in each class; ``rows`` is the number
    of rows that all weights together represent. The bias, (bins - 1) (classes - 1) / (2 rows), is the expectation for
    an independent column.

    >>> labels = np.eye(2)[np.arange(200) % 2]
    >>> relevance(np.stack([np.arange(200) % 2, np.arange(200)], axis=1), labels, 200).round(2).tolist()
    [0.69, 0.0]
    """
    step = max(CELLS // max(len(x), 1), 1)
    parts = [
        _block_relevance(x[:, start : start + step], shares, rows) for start in range(0, x.shape[1], step)
    ]
    return np.concatenate(parts)


def _block_relevance(x: Array, shares: Array, rows: float) -> Array:
    weight = shares.sum(axis=1)
    edges = _edges(x, weight)
    bins = np.zeros(x.shape, dtype=np.int64)
    for edge in edges:
        bins += x > edge
    column_starts = offsets((len(edges) + 1,) * x.shape[1])
    joint = weighted_counts(bins, shares, column_starts) / weight.sum()
    classes, marginal = shares.sum(axis=0) / weight.sum(), joint.sum(axis=0)
    first = column_starts[:-1]
    information = (
        np.add.reduceat(xlogy(joint, joint).sum(axis=0), first)
        - np.add.reduceat(xlogy(marginal, marginal), first)
        - xlogy(classes, classes).sum()
    )
    sizes = np.add.reduceat(marginal > 0, first, dtype=np.int64)
    bias = (sizes - 1) * ((classes > 0).sum() - 1) / (2 * rows)
    return np.asarray(np.maximum(information - bias, 0.0))


def _edges(x: Array, weight: Array) -> Array:
    """Upper edges of the bins of each column, (edges, d), inf for unused ones.

    All distinct values but the largest if they are few, else quantiles.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    edges = np.full((FEW_VALUES - 1, x.shape[1]), np.inf)
    edges[0] = low
    several = np.flatnonzero(~((x == low) | (x == high)).all(axis=0))
    ranked, cumulative = sort_columns(np.ascontiguousarray(x[:, several].T), weight)
    distinct = np.diff(ranked, axis=1, prepend=-np.inf) > 0
    few = distinct.sum(axis=1) <= FEW_VALUES
    for line in np.flatnonzero(few):
        values = ranked[line, distinct[line]][:-1]
        edges[: len(values), several[line]] = values
    for part in range(1, BINS):
        edges[part - 1, several[~few]] = inverse_cdf_quantile(ranked[~few], cumulative[~few], part / BINS)
    return edges[: max(int(np.isfinite(edges).any(axis=1).sum()), 1)]
