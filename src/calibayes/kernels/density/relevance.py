"""How much columns say of the class, each by itself."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import offsets, weighted_counts
from calibayes.kernels.numbers.weighted_quantiles import at_share

PARTS, FEW_VALUES = 10, 20
"""Columns of no more values than that are told apart by each of them, others by tenths."""
CELLS = 2**18
"""Cells that are looked at together."""


def relevance(x: Array, shares: Array, rows: float) -> Array:
    """Mutual information of a column's values, or tenths, and the class, (d,), in nats, beyond what chance alone would give.

    ``x`` is (n, d) without missing cells, ``shares`` (n, k) the weight of each row in each class; all together stand for
    so many ``rows``.

    >>> labels = np.eye(2)[np.arange(200) % 2]
    >>> relevance(np.stack([np.arange(200) % 2, np.arange(200)], axis=1), labels, 200).round(2).tolist()
    [0.69, 0.0]
    """
    step = max(CELLS // max(len(x), 1), 1)
    parts = [_relevance(x[:, start : start + step], shares, rows) for start in range(0, x.shape[1], step)]
    return np.concatenate(parts)


def _relevance(x: Array, shares: Array, rows: float) -> Array:
    weight = shares.sum(axis=1)
    edges = _edges(x, weight)
    cells = np.zeros(x.shape, dtype=np.int64)
    for edge in edges:
        cells += x > edge
    cuts = offsets((len(edges) + 1,) * x.shape[1])
    counts = weighted_counts(cells, shares, cuts) / weight.sum()
    classes, whole = shares.sum(axis=0) / weight.sum(), counts.sum(axis=0)
    first = cuts[:-1]
    information = (
        np.add.reduceat(xlogy(counts, counts).sum(axis=0), first)
        - np.add.reduceat(xlogy(whole, whole), first)
        - xlogy(classes, classes).sum()
    )
    sizes = np.add.reduceat(whole > 0, first, dtype=np.int64)
    chance = (sizes - 1) * ((classes > 0).sum() - 1) / (2 * rows)
    return np.asarray(np.maximum(information - chance, 0.0))


def _edges(x: Array, weight: Array) -> Array:
    """What tells the cells of each column apart, (edges, d): all of few values but the largest, or tenths; then nothing."""
    low, high = x.min(axis=0), x.max(axis=0)
    edges = np.full((FEW_VALUES - 1, x.shape[1]), np.inf)
    edges[0] = low
    several = np.flatnonzero(~((x == low) | (x == high)).all(axis=0))
    columns = np.ascontiguousarray(x[:, several].T)
    order = np.argsort(columns, axis=1, kind="stable")
    ranked, below = np.take_along_axis(columns, order, axis=1), np.cumsum(weight[order], axis=1)
    new = np.diff(ranked, axis=1, prepend=-np.inf) > 0
    few = new.sum(axis=1) <= FEW_VALUES
    for place in np.flatnonzero(few):
        values = ranked[place, new[place]][:-1]
        edges[: len(values), several[place]] = values
    for part in range(1, PARTS):
        edges[part - 1, several[~few]] = at_share(ranked[~few], below[~few], part / PARTS)
    return edges[: max(int(np.isfinite(edges).any(axis=1).sum()), 1)]
