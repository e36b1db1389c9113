"""k-means over distinct weighted rows in any number of columns, with missing values (NaN) in distances."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

PASSES = 300
"""Most passes of Lloyd's iteration."""
RESTARTS = 10
"""Number of runs from different starts."""


def centers(rows: Array, weight: Array, count: int, seed: int) -> Array:
    """Centers of the best of `RESTARTS` runs of Lloyd's iteration, (count, d), in lexicographic order.

    ``rows`` (n, d) are distinct, at least ``count`` of them; a row of weight w acts like w equal rows. The result does
    not depend on the order of the original rows if these are put into one order before: random numbers choose shares of
    the weight.
    """
    rng = np.random.default_rng(seed)
    runs = [
        lloyd(rows, weight, initial_centers(rows, weight, count, rng))
        for _ in range(RESTARTS if count > 1 else 1)
    ]
    best, _ = min(runs, key=lambda run: run[1])
    return best[np.lexsort(best.T[::-1])]


def squared_distances(rows: Array, points: Array) -> Array:
    """Squared Euclidean distances over the known cells of each row (n, d) to points (m, d), (n, m)."""
    known = ~np.isnan(rows)
    filled = np.where(known, rows, 0.0)
    squares = np.sum(filled**2, axis=1)[:, None] - 2.0 * filled @ points.T + known @ (points**2).T
    return np.maximum(squares, 0.0)


def initial_centers(rows: Array, weight: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows that are far apart, (count, d): k-means++ (Arthur and Vassilvitskii 2007)."""
    chosen, chance = [], weight
    nearest = np.full(len(rows), np.inf)
    for _ in range(count):
        cumulative = np.cumsum(chance)
        draw = rng.random() * cumulative[-1]
        position = min(int(np.searchsorted(cumulative, draw, side="right")), len(rows) - 1)
        chosen.append(rows[position])
        nearest = np.minimum(nearest, squared_distances(rows, rows[position][None])[:, 0])
        nearest[position] = 0.0
        chance = weight * nearest if (nearest > 0).any() else weight
    return np.stack(chosen)


def lloyd(rows: Array, weight: Array, start: Array) -> tuple[Array, float]:
    """Centers (count, d) once no row changes its cluster, and the weighted sum of squared distances to them."""
    means, cluster = start, np.full(len(rows), -1)
    for _ in range(PASSES):
        before, distances = cluster, squared_distances(rows, means)
        cluster = _refill_empty(np.argmin(distances, axis=1), distances, len(start))
        if np.array_equal(before, cluster):
            break
        share = weight[:, None] * (cluster[:, None] == np.arange(len(start)))
        means = share.T @ rows / share.sum(axis=0)[:, None]
    return means, float(weight @ squared_distances(rows, means)[np.arange(len(rows)), cluster])


def _refill_empty(cluster: Array, distances: Array, count: int) -> Array:
    """Assign to each empty cluster the farthest row of those in clusters of several rows."""
    for empty in np.setdiff1d(np.arange(count), cluster):
        sizes = np.bincount(cluster, minlength=count)
        movable = np.where(sizes[cluster] > 1, distances[np.arange(len(cluster)), cluster], -1.0)
        cluster[np.argmax(movable)] = empty
    return cluster
