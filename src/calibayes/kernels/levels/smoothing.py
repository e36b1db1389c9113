"""Gaussian smoothing over cells that lie in order."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

FARTHEST = 8.0
"""Bandwidths beyond which nothing is given: there the kernel is at 1e-14 of its top."""


def smooth(table: Array, bandwidth: Array) -> Array:
    """The table smoothed along its last axis, (..., cells), by a Gaussian of given bandwidths (...) in cells.

    What a cell holds is shared out among the cells there are, so sums stay as they are; bandwidth 0 changes nothing.
    Neighbors are added one distance after the other. Fourier transforms would be quicker, but round off small cells
    to what is left of large ones, and the logarithm of a small cell matters as much as that of a large one.
    """
    weight = _weights(np.asarray(bandwidth, dtype=np.float64), table.shape[-1])
    apart = table / _reach(weight)
    result, given = apart.copy(), np.empty_like(apart)
    for gap in range(1, 1 + np.flatnonzero(weight.any(axis=tuple(range(weight.ndim - 1))))[-1]):
        np.multiply(apart, weight[..., gap, None], out=given)
        result[..., gap:] += given[..., :-gap]
        result[..., :-gap] += given[..., gap:]
    return np.asarray(result)


def matrices(bandwidth: Array, cells: Array) -> Array:
    """What each cell gives to each other, (d, most, most), for d tables of ``cells`` (d,) cells and bandwidths (d,).

    ``table @ matrix`` is `smooth` of the table; cells beyond a table's last give nothing and get nothing.
    """
    most = int(cells.max(initial=0))
    found = np.zeros((len(cells), most, most))
    gap = np.abs(np.arange(most)[:, None] - np.arange(most))
    for own, width, size in zip(found, np.asarray(bandwidth, dtype=np.float64), cells, strict=True):
        weight = _weights(width, int(size))
        own[:size, :size] = weight[gap[:size, :size]] / _reach(weight)[:, None]
    return found


def _weights(bandwidth: Array, cells: int) -> Array:
    """Weight of a neighbor at each distance, against 1 for the cell itself, (..., cells)."""
    gap = np.arange(cells)
    far = np.minimum(gap / np.where(bandwidth > 0, bandwidth, 1.0)[..., None], 2.0 * FARTHEST)
    near = (far <= FARTHEST) & ((bandwidth[..., None] > 0) | (gap == 0))
    return np.where(near, np.exp(-0.5 * far**2), 0.0)


def _reach(weight: Array) -> Array:
    """What all cells, one each, would give to every cell, (..., cells)."""
    one_side = np.cumsum(weight, axis=-1)
    return np.asarray(one_side + one_side[..., ::-1] - weight[..., :1])
