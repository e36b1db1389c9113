"""Components of mixtures: arrays (n, parts) whose columns belong to classes, those of a class side by side."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def log_sum_and_shares(log_parts: Array, owner: Array) -> tuple[Array, Array]:
    """log of the sum of the parts of each class, (n, k), and the share of each part in the sum of its class, (n, parts).

    ``owner`` (parts,) is the class of each part, ascending. Shares are equal where all parts of a class are 0.
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    top = np.maximum.reduceat(log_parts, first, axis=1)
    part_top = top[:, owner]
    finite = np.isfinite(part_top)
    parts = np.exp(np.where(finite, log_parts - np.where(finite, part_top, 0.0), 0.0))
    total = np.add.reduceat(parts, first, axis=1)
    return top + np.log(total), parts / total[:, owner]


def draw_parts(shares: Array, owner: Array, classes: Array, rng: np.random.Generator) -> Array:
    """One part of the class (n,) of each row, (n,), drawn with probabilities ``shares`` (n, parts) or (1, parts)."""
    of_class = np.where(owner == classes[:, None], shares, 0.0)
    cumulative = np.cumsum(of_class, axis=1)
    uniform = rng.random((len(classes), 1)) * cumulative[:, -1:]
    positions = np.sum(cumulative <= uniform, axis=1)
    last = np.searchsorted(owner, classes, side="right") - 1
    return np.minimum(positions, last)
