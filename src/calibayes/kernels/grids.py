"""Positions on a uniform grid: linear binning, and linear interpolation of a density between the grid points.

A column of p points has p + 2 cells: the points in order, then the range below the grid and the range above it. A
position is counted at the two neighboring points, with linear weights. Outside the grid the density decreases as that
of a Lomax distribution of shape 2 whose scale is the length of the grid: it integrates to one over the half line, and
its tail is heavy enough for values a million times as far out. Positions are in grid steps, NaN if missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import fft, optimize
from scipy.special import logsumexp

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import histogram_quantiles, robust_deviation
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin

TAILS = 2
"""Number of cells after the points of a grid: below the grid, above it."""


class Corners(NamedTuple):
    """The two neighboring cells of each entry, numbered within its column, (n, d) each.

    A missing entry has the cell after the last one of its column.
    """

    lower: Array
    upper: Array
    share: Array
    """Weight of the upper cell; the lower one has the rest."""
    log_tail: Array
    """log of the density relative to that at the end of the grid, for entries outside the grid; 0 inside."""


def corners(positions: Array, points: Array) -> Corners:
    """The corners of positions (n, d) on grids with ``points`` (d,) points."""
    last, missing = points - 1.0, np.isnan(positions)
    inside = np.clip(np.where(missing, 0.0, positions), 0.0, last)
    floor = np.minimum(np.floor(inside), last - 1.0)
    excess = np.where(missing, 0.0, np.maximum(-positions, positions - last))
    single = missing | (excess > 0)
    single_cell = points + np.where(missing, TAILS, positions > last)
    lower, upper = (np.where(single, single_cell, cell).astype(np.intp) for cell in (floor, floor + 1.0))
    log_tail = -3.0 * np.log1p(np.maximum(excess, 0.0) / last)
    return Corners(lower, upper, np.where(single, 0.0, inside - floor), log_tail)


def log_volumes(points: int, step: float) -> Array:
    """log of the volume of each cell, its probability divided by its density, (points + 2,); ``step`` in column units.

    The volume of a point is one step, and half a step at the ends of the grid.
    """
    volume = np.full(points + TAILS, step)
    volume[[0, points - 1]] /= 2.0
    volume[points:] *= (points - 1.0) / 2.0
    return np.log(volume)


def corner_counts(where: Corners, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), each entry divided between its two corners."""
    sides = [(_table_cells(cells, first).ravel(), share.ravel()) for cells, share in _sides(where)]
    d, table = where.share.shape[1], np.zeros((weights.shape[1], first[-1] + 1))
    for total, weight in zip(table, weights.T, strict=True):
        for cells, share in sides:
            total += np.bincount(cells, np.repeat(weight, d) * share, minlength=len(total))
    return table[:, :-1].copy()


def _sides(where: Corners) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The lower and the upper cells of all entries and their weights, (n, d) each."""
    return (where.lower, 1.0 - where.share), (where.upper, where.share)


def _table_cells(local: Array, first: Array) -> Array:
    """Cells numbered over all columns, (n, d); the total number of cells for a missing entry."""
    return np.where(local < np.diff(first), local + first[:-1], first[-1])


def _native_supports(positions: Any, points: Array) -> bool:
    is_double = is_matrix(positions, "f") and positions.dtype == np.float64
    return is_double and positions.shape[1] > 0 and points.min() > 1


def native_position_counts(module: Any, positions: Array, points: Array, weights: Array, first: Array) -> Any:
    if not _native_supports(positions, points) or not is_matrix(weights, "fiub") or weights.shape[1] == 0:
        return NotImplemented
    out = np.zeros((weights.shape[1], int(first[-1])))
    module.binned_counts(row_major(positions), as_int64(points), as_float64(weights), as_int64(first), out)
    return out


def native_position_scores(module: Any, positions: Array, points: Array, table: Array, first: Array) -> Any:
    if not _native_supports(positions, points) or not len(table):
        return NotImplemented
    out = np.empty((len(positions), len(table)))
    module.binned_sums(row_major(positions), as_int64(points), as_float64(table), as_int64(first), out)
    return out


@twin(native_position_counts)
def position_counts(positions: Array, points: Array, weights: Array, first: Array) -> Array:
    """Sum of the weights (n, k) per class and cell, (k, cells), of positions (n, d) on grids of ``points`` (d,)."""
    return corner_counts(corners(positions, points), weights, first)


@twin(native_position_scores)
def position_scores(positions: Array, points: Array, table: Array, first: Array) -> Array:
    """Sum over columns of the log density of positions (n, d), (n, k), from the log density at the cells, (k, cells)."""
    where, sums = corners(positions, points), np.zeros((len(positions), len(table)))
    for j, column_table in enumerate(np.split(table, first[1:-1], axis=1)):
        sums += interpolated(where, j, column_table)
    return sums


def interpolated(where: Corners, j: int, table: Array) -> Array:
    """log density of the entries of column j, (n, k), from that at its cells, (k, cells); 0 for a missing entry."""
    top = table.max()
    density = np.exp(np.concatenate([table.T - top, np.zeros((1, len(table)))]))
    share = where.share[:, j, None]
    value = (1.0 - share) * density[where.lower[:, j]] + share * density[where.upper[:, j]]
    known = where.lower[:, j, None] < table.shape[1]
    return np.where(known, np.log(value) + top + where.log_tail[:, j, None], 0.0)


def draw_positions(codes: Array, points: Array, rng: np.random.Generator) -> Array:
    """Positions (n, d) drawn from the density of given cells (n, d): triangular around a point, Lomax in the tails."""
    last, (left, right) = points - 1.0, rng.random((2, *codes.shape))
    triangular = codes + (left - right)
    reflected = np.where(triangular > last, 2.0 * last - triangular, np.abs(triangular))
    excess = last * (1.0 / np.sqrt(1.0 - left) - 1.0)
    tail = np.where(codes == points, -excess, last + excess)
    return np.where(codes < points, reflected, tail)


def mean_positions(points: int) -> Array:
    """Mean position under the triangular density of each point, (points,)."""
    means = np.arange(points, dtype=np.float64)
    means[0], means[-1] = 1.0 / 3.0, points - 1.0 - 1.0 / 3.0
    return means


# -- Pairs of columns on cells: bilinear counts at the four corners around each row, and interpolated densities
#
# Tables are (k, cells, cells). A table with one cell more along each column has missing entries in the last.


def _four_corners(where: Corners) -> Iterator[tuple[Array, Array, Array]]:
    """Cell in the first column, cell in the second, and bilinear weight, (n,) each, for each of the four corners."""
    for left, left_share in _sides(where):
        for right, right_share in _sides(where):
            yield left[:, 0], right[:, 1], left_share[:, 0] * right_share[:, 1]


def weighted_counts(where: Corners, weights: Array, levels: Sequence[int]) -> Array:
    """Sum of the weights (n, k) per class and pair of cells, (k, cells, cells), without rows with a missing value."""
    rows, columns = levels[0] + 1, levels[1] + 1
    table = np.zeros((weights.shape[1], rows * columns))
    for left, right, share in _four_corners(where):
        flat = left * columns + right
        table += [np.bincount(flat, weight * share, minlength=rows * columns) for weight in weights.T]
    return table.reshape(-1, rows, columns)[:, :-1, :-1].copy()


def with_margins(log_density: Array, log_volumes: Sequence[Array]) -> Array:
    """log density (k, cells, cells) with one cell more along each column that holds the other column's marginal density."""
    left, right = log_volumes
    k, rows, columns = log_density.shape
    table = np.zeros((k, rows + 1, columns + 1))
    table[:, :-1, :-1] = log_density
    table[:, -1, :-1] = logsumexp(log_density + left[:, None], axis=1)
    table[:, :-1, -1] = logsumexp(log_density + right, axis=2)
    return table


def interpolated_pairs(where: Corners, table: Array) -> Array:
    """log density of each row, (n, k), from a log density (k, cells, cells): bilinear interpolation of the density."""
    corner_values, shares = [], []
    for left, right, share in _four_corners(where):
        corner_values.append(table[:, left, right].T)
        shares.append(share[:, None])
    top = np.max(corner_values, axis=0)
    density = sum(share * np.exp(value - top) for share, value in zip(shares, corner_values, strict=True))
    return np.asarray(np.log(density) + top + where.log_tail.sum(axis=1)[:, None])


def conditional(where: Corners, table: Array, known: int) -> Array:
    """Probabilities of the cells of one column given the other, (n, k, cells).

    ``known`` is the position of the given column; the first cell axis of ``table`` (k, cells, cells) is that column.
    """
    share = where.share[:, known, None, None]
    swapped = np.swapaxes(table, 0, 1)
    mixed = (1.0 - share) * swapped[where.lower[:, known]] + share * swapped[where.upper[:, known]]
    return np.asarray(mixed / mixed.sum(axis=2, keepdims=True))


def draw(probability: Array, classes: Array, rng: np.random.Generator) -> Array:
    """One pair of cells per class code (n,), (n, 2), drawn from unnormalized probabilities (k, cells, cells)."""
    uniform, flat = rng.random(len(classes)), np.zeros(len(classes), dtype=np.intp)
    for c, table in enumerate(probability):
        cumulative = np.cumsum(table)
        of_class = classes == c
        flat[of_class] = np.searchsorted(cumulative[:-1], uniform[of_class] * cumulative[-1], side="right")
    return np.stack(np.divmod(flat, probability.shape[2]), axis=1)


# -- Statistics for bandwidth rules on histograms, counts (k, cells) on ordered cells, and the improved Sheather-Jones rule
#
# Lengths are in cells.

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


# -- Bandwidths of kernel densities by the two-stage direct plug-in rule (Sheather and Jones 1991; Wand and Jones 1995)

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
    counts = np.stack([_linear_bins(column, weights) for column in ((columns - low) / step).T])
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
