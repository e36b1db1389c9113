"""Gaussian smoothing over cells that lie in order."""

from __future__ import annotations

import numpy as np
from scipy import fft

from calibayes.core.protocols import Array


def smooth(table: Array, bandwidth: Array) -> Array:
    """The table smoothed along its last axis, (..., cells), by a Gaussian of given bandwidths (...) in cells.

    What a cell holds is shared out among the cells there are, so sums stay as they are; bandwidth 0 changes nothing.
    """
    kernel = _spectrum(np.asarray(bandwidth, dtype=np.float64), table.shape[-1])
    reach = _convolved(np.ones(table.shape[-1]), kernel)
    return np.asarray(_convolved(table / reach, kernel))


def _spectrum(bandwidth: Array, cells: int) -> Array:
    """Fourier transform of the kernel, laid out so that nothing wraps round, (..., frequencies)."""
    size = fft.next_fast_len(2 * cells, real=True)
    gap = np.minimum(np.arange(size), size - np.arange(size))
    wide = np.where(bandwidth > 0, bandwidth, 1.0)[..., None]
    kernel = np.where(bandwidth[..., None] > 0, np.exp(-0.5 * (gap / wide) ** 2), gap == 0)
    return fft.rfft(kernel, axis=-1)


def _convolved(table: Array, spectrum: Array) -> Array:
    cells = table.shape[-1]
    size = fft.next_fast_len(2 * cells, real=True)
    moved = fft.irfft(fft.rfft(table, size, axis=-1) * spectrum, size, axis=-1)
    return moved[..., :cells]
