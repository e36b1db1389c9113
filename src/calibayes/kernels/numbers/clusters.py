"""k-means over distinct rows with weights, in any number of columns."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

PASSES = 300
RESTARTS = 10


def centers(rows: Array, weight: Array, count: int, seed: int) -> Array:
    """Centers of the best of several runs of Lloyd's iteration, (count, d), in lexicographic order.

    ``rows`` are distinct, at least ``count`` of them. Rows of weight w act like w equal rows, and the order of the rows
    in the table leaves no trace if they are sorted: random numbers choose shares of the weight, not rows.
    """
    rng = np.random.default_rng(seed)
    runs = [
        lloyd(rows, weight, spread(rows, weight, count, rng)) for _ in range(RESTARTS if count > 1 else 1)
    ]
    best, _ = min(runs, key=lambda run: run[1])
    return best[np.lexsort(best.T[::-1])]


def squared_distances(rows: Array, points: Array) -> Array:
    """Over the known cells of each row, (n, points)."""
    known = ~np.isnan(rows)
    filled = np.where(known, rows, 0.0)
    squares = np.sum(filled**2, axis=1)[:, None] - 2.0 * filled @ points.T + known @ (points**2).T
    return np.maximum(squares, 0.0)


def spread(rows: Array, weight: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows far from each other to begin with (k-means++ of Arthur and Vassilvitskii 2007)."""
    chosen, chance = [], weight
    nearest = np.full(len(rows), np.inf)
    for _ in range(count):
        below = np.cumsum(chance)
        picked = min(int(np.searchsorted(below, rng.random() * below[-1], side="right")), len(rows) - 1)
        chosen.append(rows[picked])
        nearest = np.minimum(nearest, squared_distances(rows, rows[picked][None])[:, 0])
        nearest[picked] = 0.0
        chance = weight * nearest if (nearest > 0).any() else weight
    return np.stack(chosen)


def lloyd(rows: Array, weight: Array, start: Array) -> tuple[Array, float]:
    """Centers when no row changes its cluster, and the weighted sum of squared distances to them."""
    found, cluster = start, np.full(len(rows), -1)
    for _ in range(PASSES):
        before, distances = cluster, squared_distances(rows, found)
        cluster = _none_empty(np.argmin(distances, axis=1), distances, len(start))
        if np.array_equal(before, cluster):
            break
        share = weight[:, None] * (cluster[:, None] == np.arange(len(start)))
        found = share.T @ rows / share.sum(axis=0)[:, None]
    return found, float(weight @ squared_distances(rows, found)[np.arange(len(rows)), cluster])


def _none_empty(cluster: Array, distances: Array, count: int) -> Array:
    """A cluster that has lost all its rows takes over the farthest row of a cluster that has several."""
    for empty in np.setdiff1d(np.arange(count), cluster):
        sizes = np.bincount(cluster, minlength=count)
        away = np.where(sizes[cluster] > 1, distances[np.arange(len(cluster)), cluster], -1.0)
        cluster[np.argmax(away)] = empty
    return cluster
