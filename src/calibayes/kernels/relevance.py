"""How much columns say of the class, each by itself."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.kernels.counts import offsets, weighted_counts
from calibayes.kernels.weighted_quantiles import quantiles

PARTS = 10


def relevance(x: Array, shares: Array) -> Array:
    """Mutual information of a column's tenths and the class, (d,), in nats, beyond what chance alone would give.

    ``x`` is (n, d) without missing cells, ``shares`` (n, k) the weight of each row in each class.

    >>> labels = np.eye(2)[np.arange(200) % 2]
    >>> relevance(np.stack([np.arange(200) % 2, np.arange(200)], axis=1), labels).round(2).tolist()
    [0.69, 0.0]
    """
    weight = shares.sum(axis=1)
    cuts = [part / PARTS for part in range(1, PARTS)]
    edges = [np.unique(np.array(quantiles(column, weight, cuts))) for column in x.T]
    tenths = [np.searchsorted(own, column) for own, column in zip(edges, x.T, strict=True)]
    counts = weighted_counts(np.stack(tenths, axis=1), shares, offsets((PARTS,) * x.shape[1]))
    joint = counts.reshape(shares.shape[1], x.shape[1], PARTS) / weight.sum()
    cells, classes = joint.sum(axis=0), joint.sum(axis=2)
    information = (
        xlogy(joint, joint).sum(axis=(0, 2))
        - xlogy(cells, cells).sum(axis=1)
        - xlogy(classes, classes).sum(axis=0)
    )
    chance = ((cells > 0).sum(axis=1) - 1) * ((classes > 0).sum(axis=0) - 1) / (2 * weight.sum())
    return np.asarray(np.maximum(information - chance, 0.0))
