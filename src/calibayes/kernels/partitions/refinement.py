"""Move the log factors of the leaves of given trees by what further rows show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.partitions.growth import full_steps
from calibayes.kernels.partitions.residuals import leaf_sums
from calibayes.kernels.posterior.logspace import log_normalize


def leaf_changes(
    codes: Array,
    leaves: Sequence[int],
    labels: Array,
    weight: Array,
    log_scores: Array,
    rate: float,
    prior: float,
) -> Array:
    """Changes of the log factors, (k, leaves of all trees), tree by tree as in growth.

    Rows have leaves ``codes`` (n, trees), class codes ``labels`` (n,) and log scores (n, k) under all trees. Each tree
    takes a step on the residuals that the changes of the trees before it leave. With a negative rate, which takes rows
    away, all trees take theirs on the same residuals: these would grow from tree to tree, without bound.
    """
    scores, changes = log_scores.copy(), [np.zeros((0, log_scores.shape[1]))]
    for own, count in zip(codes.T, leaves, strict=True):
        sums = leaf_sums(count, own.astype(np.int32), labels, np.exp(log_normalize(scores)[0]), weight)
        changes.append(rate * full_steps(sums, prior))
        if rate > 0:
            scores += changes[-1][own]
    return np.ascontiguousarray(np.concatenate(changes).T)
