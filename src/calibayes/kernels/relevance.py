"""How much columns say of the class, each by itself."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.counts import offsets, weighted_counts
from calibayes.kernels.weighted_quantiles import quantiles

PARTS, FEW_VALUES = 10, 20
"""Columns of no more values than that are told apart by each of them, others by tenths."""


def relevance(x: Array, shares: Array) -> Array:
    """Mutual information of a column's values, or tenths, and the class, (d,), in nats, beyond what chance alone would give.

    ``x`` is (n, d) without missing cells, ``shares`` (n, k) the weight of each row in each class.

    >>> labels = np.eye(2)[np.arange(200) % 2]
    >>> relevance(np.stack([np.arange(200) % 2, np.arange(200)], axis=1), labels).round(2).tolist()
    [0.69, 0.0]
    """
    weight = shares.sum(axis=1)
    cells = [_cells(column, weight) for column in x.T]
    sizes = tuple(int(own.max()) + 1 for own in cells)
    counts = weighted_counts(np.stack(cells, axis=1), shares, offsets(sizes)) / weight.sum()
    # Of rows that count alike this is their number, whatever the unit of weights.
    effective = weight.sum() ** 2 / (weight @ weight)
    classes = shares.sum(axis=0) / weight.sum()
    first = offsets(sizes)[:-1]
    information = (
        np.add.reduceat(xlogy(counts, counts).sum(axis=0), first)
        - np.add.reduceat(xlogy(counts.sum(axis=0), counts.sum(axis=0)), first)
        - xlogy(classes, classes).sum()
    )
    chance = (np.array(sizes) - 1) * ((classes > 0).sum() - 1) / (2 * effective)
    return np.asarray(np.maximum(information - chance, 0.0))


def _cells(column: Array, weight: Array) -> Array:
    """Which value of a few, or which tenth, each number is; none of them empty."""
    values, which = np.unique(column, return_inverse=True)
    if len(values) <= FEW_VALUES:
        return np.asarray(which.ravel())
    edges = np.array(quantiles(column, weight, [part / PARTS for part in range(1, PARTS)]))
    return np.asarray(np.unique(np.searchsorted(edges, column), return_inverse=True)[1].ravel())
