"""Gaussian smoothing over ordered cells."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

FARTHEST = 8.0
"""Distance in bandwidths beyond which the kernel is set to 0: there it is 1e-14 of its maximum."""


def smooth(table: Array, bandwidth: Array) -> Array:
    """A table (..., cells) smoothed along its last axis by a Gaussian kernel of given bandwidths (...) in cells.

    The kernel of each cell is normalized over the existing cells, so sums are preserved; bandwidth 0 changes nothing.
    Neighbors are added distance by distance. A Fourier transform would be faster, but its rounding error is relative to
    the largest cell, and the logarithm of a small cell matters as much as that of a large one.
    """
    kernel = _kernel(np.asarray(bandwidth, dtype=np.float64), table.shape[-1])
    normalized = table / _kernel_sums(kernel)
    result, contribution = normalized.copy(), np.empty_like(normalized)
    for gap in range(1, 1 + np.flatnonzero(kernel.any(axis=tuple(range(kernel.ndim - 1))))[-1]):
        np.multiply(normalized, kernel[..., gap, None], out=contribution)
        result[..., gap:] += contribution[..., :-gap]
        result[..., :-gap] += contribution[..., gap:]
    return np.asarray(result)


def smoothing_matrices(bandwidth: Array, cells: Array) -> Array:
    """Matrices (d, most, most) for d tables of ``cells`` (d,) cells and bandwidths (d,): ``table @ matrix`` is `smooth`.

    ``most`` is the largest number of cells; entries beyond the cells of a table are 0.
    """
    most = int(cells.max(initial=0))
    result = np.zeros((len(cells), most, most))
    gap = np.abs(np.arange(most)[:, None] - np.arange(most))
    for matrix, width, size in zip(result, np.asarray(bandwidth, dtype=np.float64), cells, strict=True):
        kernel = _kernel(width, int(size))
        matrix[:size, :size] = kernel[gap[:size, :size]] / _kernel_sums(kernel)[:, None]
    return result


def _kernel(bandwidth: Array, cells: int) -> Array:
    """Unnormalized kernel at each distance, 1 at distance 0, (..., cells)."""
    gap = np.arange(cells)
    scaled = np.minimum(gap / np.where(bandwidth > 0, bandwidth, 1.0)[..., None], 2.0 * FARTHEST)
    near = (scaled <= FARTHEST) & ((bandwidth[..., None] > 0) | (gap == 0))
    return np.where(near, np.exp(-0.5 * scaled**2), 0.0)


def _kernel_sums(kernel: Array) -> Array:
    """Sum over all existing cells of the kernel centered at each cell, (..., cells)."""
    one_side = np.cumsum(kernel, axis=-1)
    return np.asarray(one_side + one_side[..., ::-1] - kernel[..., :1])
