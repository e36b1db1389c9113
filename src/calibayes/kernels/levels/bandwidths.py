"""Statistics for bandwidth rules on histograms, counts (k, cells) on ordered cells, and the improved Sheather-Jones rule.

Lengths are in cells.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import fft, optimize

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.quantiles import histogram_quantiles

STAGES = 7
"""Order of the highest derivative in the plug-in iteration (as in Botev et al.)."""
LEAST_NORM = 1e-100
"""Lower bound of the squared norm of a derivative: it is 0 for uniform counts, and divisions by it must not overflow."""
NARROWEST, WIDEST, TRIALS = 1e-8, 0.25, 40
"""Range and number of squared bandwidths, relative to the squared range of the cells, among which the root is searched."""


def standard_deviations(counts: Array) -> Array:
    """Sample standard deviation of the cell numbers in each class, (k,); 0 for less than two rows."""
    n = counts.sum(axis=1)
    share = counts / np.where(n > 0, n, 1.0)[:, None]
    cell = np.arange(counts.shape[1])
    mean = share @ cell
    variance = np.sum(share * (cell - mean[:, None]) ** 2, axis=1)
    return np.sqrt(variance * n / np.where(n > 1, n - 1.0, np.inf))


def interquartile_ranges(counts: Array) -> Array:
    """Interquartile range of each class, (k,), with the rows of a cell spread uniformly over it."""
    return np.array([np.subtract(*histogram_quantiles(count, (0.75, 0.25))) for count in counts])


def convergence_rate(n: Array, dimension: int) -> Array:
    """n^(-1 / (4 + dimension)): the rate at which the optimal bandwidth decreases with the number of rows n."""
    return np.asarray(np.maximum(n, 1.0) ** (-1.0 / (4.0 + dimension)))


def improved_sheather_jones(count: Array) -> float:
    """Bandwidth for the counts (cells,) of one class, NaN if the rule finds none (Botev et al. 2010, algorithm 1)."""
    n, cells = float(count.sum()), len(count)
    if n <= 1 or cells < 3 or np.count_nonzero(count) < 2:
        return math.nan
    squares, frequency = (fft.dct(count / n)[1:] / 2.0) ** 2, np.arange(1.0, cells) ** 2

    def residual(time: Array) -> Array:
        return time - _fixed_point_map(time, n, squares, frequency)

    times = np.geomspace(NARROWEST, WIDEST, TRIALS)
    nonnegative = np.flatnonzero(residual(times) >= 0)
    if not len(nonnegative) or nonnegative[0] == 0:
        return math.nan
    bracket = times[nonnegative[0] - 1], times[nonnegative[0]]
    root = optimize.brentq(lambda time: float(residual(np.array(time))), *bracket)
    return math.sqrt(root) * cells


def _fixed_point_map(time: Array, n: float, squares: Array, frequency: Array) -> Array:
    """xi gamma^[l](t) of the paper: the squared bandwidth implied by the bandwidths of the higher derivatives."""
    norm = _derivative_norm(STAGES, time, squares, frequency)
    for s in range(STAGES - 1, 1, -1):
        odd = math.prod(range(1, 2 * s, 2)) / math.sqrt(2 * math.pi)
        constant = (1.0 + 0.5 ** (s + 0.5)) / 3.0
        stage_time = (2.0 * constant * odd / (n * norm)) ** (2.0 / (3.0 + 2.0 * s))
        norm = _derivative_norm(s, stage_time, squares, frequency)
    return np.asarray((2.0 * n * math.sqrt(math.pi) * norm) ** -0.4)


def _derivative_norm(s: int, time: Array, squares: Array, frequency: Array) -> Array:
    """Squared norm of the s-th derivative of the density smoothed with squared bandwidths ``time``, at least LEAST_NORM."""
    series = np.exp(-(np.pi**2) * time[..., None] * frequency) @ (frequency**s * squares)
    return np.maximum(2.0 * np.pi ** (2 * s) * series, LEAST_NORM)
