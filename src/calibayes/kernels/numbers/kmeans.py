"""k-means in one dimension over distinct weighted values."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

TOLERANCE = 1e-4
"""Squared movement of the centers, relative to the variance, below which the iteration ends."""
PASSES = 300
"""Most passes of Lloyd's iteration."""


def centers(values: Array, weight: Array, start: Array) -> Array:
    """Cluster centers found by Lloyd's iteration from ``start`` (clusters,), ascending.

    ``values`` (n,) are distinct and ascending; a value of weight w acts like w equal rows. The iteration ends when no
    value changes its cluster or the centers move by less than `TOLERANCE`, as in scikit-learn's KMeans.
    """
    mean = np.average(values, weights=weight)
    centered = values - mean
    tolerance = TOLERANCE * np.average(centered**2, weights=weight)
    current, cluster = start - mean, np.full(len(values), -1)
    for _ in range(PASSES):
        before, cluster = cluster, np.argmin(current * current - 2.0 * centered[:, None] * current, axis=1)
        updated = _means(centered, weight, cluster, current)
        shift = np.sum((updated - current) ** 2)
        current = updated
        if np.array_equal(before, cluster) or shift <= tolerance:
            break
    return np.sort(current) + mean


def _means(values: Array, weight: Array, cluster: Array, current: Array) -> Array:
    """Means of the clusters; an empty one takes over one of the rows farthest from their centers."""
    k = len(current)
    mass = np.bincount(cluster, weight, minlength=k)
    total = np.bincount(cluster, weight * values, minlength=k)
    empty = np.flatnonzero(mass == 0)
    if len(empty):
        for target, row in zip(empty, _farthest(values, weight, cluster, current, len(empty)), strict=True):
            share = min(1.0, weight[row])
            total[cluster[row]] -= share * values[row]
            mass[cluster[row]] -= share
            total[target], mass[target] = share * values[row], share
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), current)


def _farthest(values: Array, weight: Array, cluster: Array, current: Array, count: int) -> Array:
    """Positions of the ``count`` rows farthest from their centers; a value of weight w counts as w rows."""
    order = np.argsort(-((values - current[cluster]) ** 2), kind="stable")
    copies = np.maximum(np.ceil(weight[order]).astype(np.intp), 1)
    return np.repeat(order, np.minimum(copies, count))[:count]
