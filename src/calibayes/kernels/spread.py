"""How far numbers spread, read once: in blocks of rows that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.diagonal import power_sums
from calibayes.kernels.native import numbers as native
from calibayes.kernels.native import twin
from calibayes.kernels.threads import by_stretch

CELLS = 2**16
"""Numbers in a block of rows: half a megabyte in float64."""


def _blocks(x: Array) -> Iterator[Array]:
    rows = max(CELLS // max(x[:1].size, 1), 1)
    return (x[start : start + rows] for start in range(0, len(x), rows))


def extent(x: Array) -> tuple[float, float]:
    """Least and largest number, both NaN where there is a NaN; of no numbers 0 and 0."""
    if not x.size:
        return 0.0, 0.0
    x = x.reshape(-1, 1) if x.ndim == 1 else x
    low, high = np.transpose(by_stretch(lambda rows: ends(x[rows]), len(x), x[:1].nbytes))
    return float(np.min(low)), float(np.max(high))


@twin(native.ends)
def ends(x: Array) -> tuple[float, float]:
    """The same of some rows, at least one."""
    low, high = np.transpose([(np.min(block), np.max(block)) for block in _blocks(x)])
    return float(np.min(low)), float(np.max(high))


def variances(x: Array, near: Array) -> Array:
    """Variance of each column, (d,), of rows (n, d) without missing cells; ``near`` is a point in their midst."""

    def of(rows: slice) -> Array:
        return np.stack(power_sums(x[rows], near, np.ones((len(x[rows]), 1))))

    _, first, second = np.sum(by_stretch(of, len(x), x[:1].nbytes), axis=0)[:, 0]
    return np.maximum(second / len(x) - (first / len(x)) ** 2, 0.0)
