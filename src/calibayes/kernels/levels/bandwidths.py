"""What bandwidths are found in: spreads of counts on cells in order, (k, cells), in cells, and a plug-in rule."""

from __future__ import annotations

import math

import numpy as np
from scipy import fft, optimize

from calibayes.core.protocols import Array

STAGES = 7
"""Derivatives through which the plug-in is found, from the highest down (Botev et al. use this many)."""
LEAST_NORM = 1e-100
"""Of a derivative; even counts have none, and a number divided by it must not overflow."""
NARROWEST, WIDEST, TRIALS = 1e-8, 0.25, 40
"""Squared bandwidths among which the plug-in looks for its own, as shares of the squared range."""


def deviations(counts: Array) -> Array:
    """Standard deviation of the cells' numbers, as of a sample, (k,); 0 where there are not two rows."""
    n = counts.sum(axis=1)
    share = counts / np.where(n > 0, n, 1.0)[:, None]
    cell = np.arange(counts.shape[1])
    mean = share @ cell
    variance = np.sum(share * (cell - mean[:, None]) ** 2, axis=1)
    return np.sqrt(variance * n / np.where(n > 1, n - 1.0, np.inf))


def interquartile_ranges(counts: Array) -> Array:
    """Distance of the quartiles in cells, each cell's rows spread evenly over it, (k,)."""
    return np.array([np.subtract(*_quantiles(count, (0.75, 0.25))) for count in counts])


def _quantiles(count: Array, shares: tuple[float, ...]) -> Array:
    upto = np.cumsum(count)
    wanted = np.array(shares) * upto[-1]
    cell = np.searchsorted(upto, wanted)
    return cell + 1.0 - (upto[cell] - wanted) / np.where(count[cell] > 0, count[cell], 1.0)


def shrinking(n: Array, dimension: int) -> Array:
    """n^(-1 / (4 + dimension)): how fast the best bandwidth falls with the number of rows."""
    return np.asarray(np.maximum(n, 1.0) ** (-1.0 / (4.0 + dimension)))


def improved_sheather_jones(count: Array) -> float:
    """The bandwidth in cells of one class's counts, NaN where there is none (Botev et al. 2010, algorithm 1)."""
    n, cells = float(count.sum()), len(count)
    if n <= 1 or cells < 3 or np.count_nonzero(count) < 2:
        return math.nan
    squares, frequency = (fft.dct(count / n)[1:] / 2.0) ** 2, np.arange(1.0, cells) ** 2

    def off(time: Array) -> Array:
        return time - _stage(time, n, squares, frequency)

    times = np.geomspace(NARROWEST, WIDEST, TRIALS)
    risen = np.flatnonzero(off(times) >= 0)
    if not len(risen) or risen[0] == 0:
        return math.nan
    root = optimize.brentq(lambda time: float(off(np.array(time))), times[risen[0] - 1], times[risen[0]])
    return math.sqrt(root) * cells


def _stage(time: Array, n: float, squares: Array, frequency: Array) -> Array:
    """xi gamma^[l](t) of the paper: the best squared bandwidths, found through those of the derivatives."""
    norm = _norm(STAGES, time, squares, frequency)
    for s in range(STAGES - 1, 1, -1):
        odd = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
        constant = (1.0 + 0.5 ** (s + 0.5)) / 3.0
        earlier = (2.0 * constant * odd / (n * norm)) ** (2.0 / (3.0 + 2.0 * s))
        norm = _norm(s, earlier, squares, frequency)
    return np.asarray((2.0 * n * math.sqrt(math.pi) * norm) ** -0.4)


def _norm(s: int, time: Array, squares: Array, frequency: Array) -> Array:
    """Squared norm of the s-th derivative of the density smoothed for some times; never nothing."""
    waves = np.exp(-(np.pi**2) * time[..., None] * frequency) @ (frequency**s * squares)
    return np.maximum(2.0 * np.pi ** (2 * s) * waves, LEAST_NORM)
