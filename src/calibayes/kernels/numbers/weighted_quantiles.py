"""Quantiles of weighted numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array

ROUNDING = 1e-12


def quantiles(values: Array, weight: Array, shares: Sequence[float]) -> list[float]:
    """The values below which these shares of the weight lie; the middle of two neighbors where any between would do.

    A row of weight 2 counts as two rows.

    >>> quantiles(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), (0.5, 1.0))
    [2.5, 4.0]
    """
    order = np.argsort(values, kind="stable")
    ranked, below = values[None, order], np.cumsum(weight[order])[None]
    return [float(at_share(ranked, below, share)[0]) for share in shares]


def at_share(ranked: Array, below: Array, share: float) -> Array:
    """The same for one share, of several columns: (c, n) values in their order, and the weight up to each of them."""
    whole, last = below[:, -1:], ranked.shape[1] - 1
    low = (below < (share - ROUNDING) * whole).sum(axis=1)
    high = (below <= (share + ROUNDING) * whole).sum(axis=1)
    column = np.arange(len(ranked))
    return np.asarray((ranked[column, np.minimum(low, last)] + ranked[column, np.minimum(high, last)]) / 2)
