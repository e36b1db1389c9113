"""Gaussian smoothing over cells that lie in order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from calibayes.core.protocols import Array

FARTHEST = 8.0
"""Bandwidths beyond which nothing is given: there the kernel is at 1e-14 of its top."""

MOST_CELLS = 128
"""Cells up to which a kernel is kept as a matrix."""
MOST_KERNELS = 8


def smooth(table: Array, bandwidth: Array) -> Array:
    """The table smoothed along its last axis, (..., cells), by a Gaussian of given bandwidths (...) in cells.

    What a cell holds is shared out among the cells there are, so sums stay as they are; bandwidth 0 changes nothing.
    Where few bandwidths are shared by many tables of few cells, the kernel is a matrix that is kept; elsewhere neighbours
    are added one distance after the other. Fourier transforms would be quicker, but round off small cells
    to what is left of large ones, and the logarithm of a small cell matters as much as that of a large one.
    """
    bandwidth = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), table.shape[:-1])
    shared = np.unique(bandwidth)
    if table.shape[-1] <= MOST_CELLS and len(shared) <= MOST_KERNELS:
        return _by_matrix(table, bandwidth, shared)
    weight = _weights(bandwidth, table.shape[-1])
    apart = table / _reach(weight)
    result, given = apart.copy(), np.empty_like(apart)
    for gap in range(1, 1 + np.flatnonzero(weight.any(axis=tuple(range(weight.ndim - 1))))[-1]):
        np.multiply(apart, weight[..., gap, None], out=given)
        result[..., gap:] += given[..., :-gap]
        result[..., :-gap] += given[..., gap:]
    return np.asarray(result)


def _by_matrix(table: Array, bandwidth: Array, shared: Array) -> Array:
    result = np.empty(table.shape)
    for width in shared:
        own = bandwidth == width
        result[own] = table[own] @ _matrix(float(width), table.shape[-1])
    return result


@lru_cache(maxsize=256)
def _matrix(bandwidth: float, cells: int) -> Array:
    """What each cell (row) gives to each cell (column)."""
    weight = _weights(np.array(bandwidth), cells)
    gap = np.abs(np.arange(cells)[:, None] - np.arange(cells))
    return np.asarray(weight[gap] / _reach(weight)[:, None])


def _weights(bandwidth: Array, cells: int) -> Array:
    """Weight of a neighbour at each distance, against 1 for the cell itself, (..., cells)."""
    gap = np.arange(cells)
    far = np.minimum(gap / np.where(bandwidth > 0, bandwidth, 1.0)[..., None], 2.0 * FARTHEST)
    near = (far <= FARTHEST) & ((bandwidth[..., None] > 0) | (gap == 0))
    return np.where(near, np.exp(-0.5 * far**2), 0.0)


def _reach(weight: Array) -> Array:
    """What all cells, one each, would give to every cell, (..., cells)."""
    one_side = np.cumsum(weight, axis=-1)
    return np.asarray(one_side + one_side[..., ::-1] - weight[..., :1])
