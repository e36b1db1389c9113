"""Quantiles of weighted numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array

ROUNDING = 1e-12


def quantiles(values: Array, weight: Array, shares: Sequence[float]) -> list[float]:
    """The values below which these shares of the weight lie; the middle of two neighbours where any between would do.

    A row of weight 2 counts as two rows.

    >>> quantiles(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), (0.5, 1.0))
    [2.5, 4.0]
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weight[order])
    found = []
    for share in shares:
        wanted, slack, last = share * below[-1], ROUNDING * below[-1], len(values) - 1
        low = np.searchsorted(below, wanted - slack)
        high = np.searchsorted(below, wanted + slack, side="right")
        found.append(float((values[order[min(low, last)]] + values[order[min(high, last)]]) / 2))
    return found
