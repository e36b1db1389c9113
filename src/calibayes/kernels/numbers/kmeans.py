"""k-means in one dimension, over distinct values with weights."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

TOLERANCE = 1e-4
PASSES = 300


def centers(values: Array, weight: Array, start: Array) -> Array:
    """Centers of the clusters that Lloyd's iteration finds, in ascending order.

    ``values`` are distinct and ascending. It ends when no value changes its cluster, or when the centers move by less
    than a ten-thousandth of the variance, as in scikit-learn's KMeans. Values of weight w act like w equal rows.
    """
    mean = np.average(values, weights=weight)
    away = values - mean
    enough = TOLERANCE * np.average(away**2, weights=weight)
    found, cluster = start - mean, np.full(len(values), -1)
    for _ in range(PASSES):
        before, cluster = cluster, np.argmin(found * found - 2.0 * away[:, None] * found, axis=1)
        moved = _means(away, weight, cluster, found)
        shift = np.sum((moved - found) ** 2)
        found = moved
        if np.array_equal(before, cluster) or shift <= enough:
            break
    return np.sort(found) + mean


def _means(values: Array, weight: Array, cluster: Array, found: Array) -> Array:
    """Means of the clusters; an empty one takes over a row of those farthest from their centers."""
    k = len(found)
    mass = np.bincount(cluster, weight, minlength=k)
    total = np.bincount(cluster, weight * values, minlength=k)
    empty = np.flatnonzero(mass == 0)
    if len(empty):
        for target, row in zip(empty, _farthest(values, weight, cluster, found, len(empty)), strict=True):
            share = min(1.0, weight[row])
            total[cluster[row]] -= share * values[row]
            mass[cluster[row]] -= share
            total[target], mass[target] = share * values[row], share
    return np.where(mass > 0, total / np.where(mass > 0, mass, 1.0), found)


def _farthest(values: Array, weight: Array, cluster: Array, found: Array, count: int) -> Array:
    """The ``count`` rows farthest from their centers; a value of weight w stands for w rows."""
    order = np.argsort(-((values - found[cluster]) ** 2), kind="stable")
    copies = np.maximum(np.ceil(weight[order]).astype(np.intp), 1)
    return np.repeat(order, np.minimum(copies, count))[:count]
