"""Components of mixtures: columns of an array that belong to classes, the columns of a class side by side."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def log_sum_and_shares(log_parts: Array, owner: Array) -> tuple[Array, Array]:
    """log of the sum of each class's parts, (n, k), and each part's share in its class's sum, (n, parts).

    ``owner`` (parts,) is the class of each part, ascending. Where all parts of a class are 0 their shares are even.
    """
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    top = np.maximum.reduceat(log_parts, first, axis=1)
    high = top[:, owner]
    shifted = np.where(np.isfinite(high), log_parts - np.where(np.isfinite(high), high, 0.0), 0.0)
    parts = np.exp(shifted)
    total = np.add.reduceat(parts, first, axis=1)
    return top + np.log(total), parts / total[:, owner]


def drawn(shares: Array, owner: Array, classes: Array, rng: np.random.Generator) -> Array:
    """One part of each row's class, drawn by the shares (n, parts) or (1, parts), (n,)."""
    own = np.where(owner == classes[:, None], shares, 0.0)
    below = np.cumsum(own, axis=1)
    wanted = rng.random((len(classes), 1)) * below[:, -1:]
    picked = np.sum(below <= wanted, axis=1)
    last = np.searchsorted(owner, classes, side="right") - 1
    return np.minimum(picked, last)
