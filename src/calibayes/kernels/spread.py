"""How far numbers spread, read once: in blocks of rows that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibayes.core.protocols import Array

CELLS = 2**16
"""Numbers in a block of rows: half a megabyte in float64."""


def _blocks(x: Array) -> Iterator[Array]:
    rows = max(CELLS // max(x[:1].size, 1), 1)
    return (x[start : start + rows] for start in range(0, len(x), rows))


def extent(x: Array) -> tuple[float, float]:
    """Least and largest number, both NaN where there is a NaN; of no numbers 0 and 0."""
    if not x.size:
        return 0.0, 0.0
    pairs = [(np.min(block), np.max(block)) for block in _blocks(x)]
    return float(np.min([low for low, _ in pairs])), float(np.max([high for _, high in pairs]))


def variances(x: Array, near: Array) -> Array:
    """Variance of each column, (d,), of rows (n, d) without missing cells; ``near`` is a point in their midst."""
    first, second = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for block in _blocks(x):
        away = np.subtract(block, near, dtype=np.float64)
        first += away.sum(axis=0)
        second += np.square(away, out=away).sum(axis=0)
    return np.maximum(second / len(x) - (first / len(x)) ** 2, 0.0)
