"""Bandwidths of kernel densities by the two-stage direct plug-in rule (Sheather and Jones 1991; Wand and Jones 1995)."""

from __future__ import annotations

import math

import numpy as np
from scipy import fft

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.quantiles import robust_deviation

CELLS = 401
"""Grid points per column for linear binning."""
REFERENCE = (4.0 / 3.0) ** 0.2
"""Normal reference rule: the optimal bandwidth for n rows of a normal sample is this times deviation times n^(-1/5)."""


def plug_in_bandwidths(columns: Array, weights: Array) -> Array:
    """Bandwidth of the Gaussian kernel density of each column of (n, d), (d,); 0 for a constant column.

    The integrated squared second derivative of the density is estimated from binned data with a pilot bandwidth, which
    comes from an estimate of a higher derivative, whose own pilot is the normal reference. Where ties make an estimate
    meaningless (wrong sign), the normal reference rule is used. A weight counts as that many copies of its row.
    """
    n = float(weights.sum())
    scale = robust_deviation(columns, weights)
    safe_scale = np.where(scale > 0, scale, 1.0)
    lags, step = _pairs_by_lag(columns / safe_scale, weights)
    pilot = np.full(columns.shape[1], (2.0 * math.sqrt(2.0) ** 9 / (7.0 * n)) ** (1 / 9))
    sixth = _derivative_sum(6, lags, step, pilot) / n**2
    pilot = (3.0 * math.sqrt(2.0 / math.pi) / (np.where(sixth < 0, -sixth, np.inf) * n)) ** (1 / 7)
    fourth = _derivative_sum(4, lags, step, np.where(pilot > 0, pilot, 1.0)) / n**2
    usable = (pilot > 0) & (fourth > 0)
    plug_in = (4 * math.pi) ** -0.1 * (np.where(usable, fourth, 1.0) * n) ** -0.2
    return np.where(usable, plug_in, REFERENCE * n**-0.2) * scale


def _pairs_by_lag(columns: Array, weights: Array) -> tuple[Array, Array]:
    """Number of pairs of rows that lie 0, 1, ... cells apart, (d, CELLS), and the width of a cell, (d,)."""
    low, high = columns.min(axis=0), columns.max(axis=0)
    step = np.where(high > low, (high - low) / (CELLS - 1), 1.0)
    counts = np.stack(
        [_linear_bins((c - a) / s, weights) for c, a, s in zip(columns.T, low, step, strict=True)]
    )
    size = fft.next_fast_len(2 * CELLS, real=True)
    power = np.abs(fft.rfft(counts, size, axis=1)) ** 2
    autocorrelation = fft.irfft(power, size, axis=1)[:, :CELLS]
    return np.concatenate([autocorrelation[:, :1], 2 * autocorrelation[:, 1:]], axis=1), step


def _linear_bins(positions: Array, weights: Array) -> Array:
    """Counts (CELLS,) of positions (n,) in cells, each row divided linearly between the two neighboring points."""
    left = np.minimum(positions.astype(np.int64), CELLS - 2)
    part = positions - left
    lower = np.bincount(left, weights * (1 - part), minlength=CELLS)
    return np.asarray(lower + np.bincount(left + 1, weights * part, minlength=CELLS))


def _derivative_sum(order: int, lags: Array, step: Array, bandwidth: Array) -> Array:
    """Sum over pairs of rows of the derivative of given order of the Gaussian kernel, (d,)."""
    z = np.arange(CELLS) * (step / bandwidth)[:, None]
    normal = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    hermite = np.polynomial.hermite_e.hermeval(z, [0.0] * order + [1.0])
    return np.asarray((lags * hermite * normal).sum(axis=1) / bandwidth ** (order + 1))
