"""Exact leave-one-out densities of Gaussian classes: a row subtracted from the moments of its class.

A class of weight n with mean m and scatter A (the sum of squares about the mean) has, without a row x of weight w,

    weight n - w,    x - mean = u n / (n - w),    scatter A - u u' n w / (n - w),    where u = x - m.

The scatter of a covariance matrix changes by a matrix of rank one, so that distances follow from the Sherman-Morrison formula
and determinants from the matrix determinant lemma.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.abilities import LeftOut
from calibayes.core.protocols import Array, Arrays
from calibayes.families.class_centers import AsEstimated, as_matrix, scatter
from calibayes.families.covariance_shapes import Diagonal, Full, Plain, Tied, TiedDiagonal, VarianceSmoothing
from calibayes.kernels.gaussian_density import LOG_TWO_PI, ClassTables, left_out_shares
from calibayes.kernels.moments import has_missing, row_blocks

# -- Leave-one-out densities under covariance matrices, which change by a matrix of rank one without a row ---
#
# Distances follow from the Sherman-Morrison formula, determinants from the matrix determinant lemma.

LEAST_SHARE = 1e-6
"""Share of a scatter, or of a determinant, below which what is left without a row has lost too many digits."""
LEAST_UNEXPLAINED = 1e-8
"""Share of a variance in the second moment below which a class may count as singular without the row."""


def by_class(family: Any, x: Array, left_out: LeftOut) -> Array:
    """One covariance matrix per class: rank-one changes of the density under all rows."""
    d, size = x.shape[1], left_out.statistics["count"][left_out.codes]
    rows = np.arange(len(x))
    result = np.array(family.log_density(x, left_out.parameters))
    log_determinant = left_out.parameters["log_determinant"][left_out.codes]
    distance = -2.0 * result[rows, left_out.codes] - log_determinant - d * LOG_TWO_PI
    left = size - left_out.weight
    remaining = 1.0 - left_out.weight * distance / left
    moved = distance * size / (left * remaining)
    log_determinant = log_determinant + np.log(remaining) + d * np.log(size / left)
    result[rows, left_out.codes] = -0.5 * (moved + log_determinant + d * LOG_TWO_PI)
    result[~(remaining > _least_remaining(family, left_out)[left_out.codes])] = np.nan
    return result


def _least_remaining(family: Any, left_out: LeftOut) -> Array:
    """The share of each determinant that must remain without a row, (g,), so that no column is determined by the others."""
    left = family.shape.unexplained(left_out.parameters["covariance"])
    size = family.sizes(as_matrix(left_out.statistics["count"]))
    second = np.abs(family.shape.variances(left_out.statistics["second"])) / size
    unexplained = (left / np.maximum(second, np.finfo(float).tiny)).min(axis=1)
    return np.maximum(LEAST_SHARE, LEAST_UNEXPLAINED / np.maximum(unexplained, np.finfo(float).tiny))


def tied(family: Any, x: Array, left_out: LeftOut) -> Array:
    """One covariance matrix of all classes: x minus each mean, whitened, and the rank-one change by the row's own."""
    d, count, weight = x.shape[1], left_out.statistics["count"], left_out.weight
    mean, whitener = left_out.parameters["mean"], left_out.parameters["whitener"][0]
    white = [(x - center) @ whitener.T for center in mean]
    own = np.stack(white, axis=1)[np.arange(len(x)), left_out.codes]
    size, total = count[left_out.codes], count.sum()
    left, grown = total - weight, size / (size - weight)
    change = weight * grown / total
    remaining = 1.0 - change * np.einsum("nd,nd->n", own, own)
    result = np.empty((len(x), len(mean)))
    for c, difference in enumerate(white):
        moved = np.where(left_out.codes == c, grown, 1.0)[:, None] * difference
        along = np.einsum("nd,nd->n", moved, own)
        squares = np.einsum("nd,nd->n", moved, moved) + change * along**2 / remaining
        result[:, c] = squares * left / total
    log_determinant = left_out.parameters["log_determinant"][0] + np.log(remaining) + d * np.log(total / left)
    result = -0.5 * (result + (log_determinant + d * LOG_TWO_PI)[:, None])
    result[~(remaining > _least_remaining(family, left_out)[0])] = np.nan
    return result


# -- Exact leave-one-out densities of Gaussian classes: a row subtracted from the moments of its class -------
#
# A class of weight n with mean m and scatter A (the sum of squares about the mean) has, without a row x of weight w,
#
#     weight n - w,    x - mean = u n / (n - w),    scatter A - u u' n w / (n - w),    where u = x - m.
#
# The scatter of a covariance matrix changes by a matrix of rank one, so that distances follow from the Sherman-Morrison formula
# and determinants from the matrix determinant lemma.

ROUNDING = 1e-9
"""Weights below this share of the weight of a row that was subtracted are rounding errors of the subtraction."""
UNSEEN = 1e-10
"""Change of a log density that is not computed."""
NEGLIGIBLE = 1e-8
"""Relative change of a variance whose square is below the rounding error."""


def leave_one_out(self: Any, columns: Array, left_out: LeftOut) -> Array | None:
    """log p(x | class) of each row under the moments of all other rows, (n, k); see `LeavesOneOut`.

    For maximum likelihood with `Diagonal`, `TiedDiagonal`, `Full` and `Tied`, and `Diagonal` with `VarianceSmoothing`.
    """
    has_prior = self.prior not in (None, "auto") or self.resolved is not None
    is_plain = type(self.means) is AsEstimated and type(self.regularizer) in (Plain, VarianceSmoothing)
    if has_prior or not is_plain:
        return None
    x = np.asarray(columns, dtype=np.float64)
    if _have_few_known(x, left_out):
        return None
    by_shape = {Diagonal: _independent, Full: by_class, Tied: tied, TiedDiagonal: _tied_independent}
    density = by_shape.get(type(self.shape))
    is_smoothed = type(self.regularizer) is VarianceSmoothing
    if density is None or self.has_hidden(x) or (is_smoothed and density is not _independent):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # rows that are marked by NaN
        blocks = row_blocks(*x.shape)
        return np.concatenate([density(self, x[rows], left_out.of_rows(rows)) for rows in blocks])


def _have_few_known(x: Array, left_out: LeftOut) -> bool:
    """Whether a class has no known value in a column, or none without one of its rows: its mean is a guess then.

    The only row of a class does not count: it is not left out.
    """
    count = left_out.statistics["count"]
    if count.ndim == 1 or not has_missing(x):
        return bool((count <= 0).any())
    known, weight = ~np.isnan(x), left_out.weight[:, None]
    is_last = count[left_out.codes] - weight <= ROUNDING * weight
    is_only_row = (is_last | ~known).all(axis=1)
    return bool((count <= 0).any() or (known & is_last)[~is_only_row].any())


def _without_each(
    x: Array, weight: Array, mean: Array, squares: Array, size: Array
) -> tuple[Array, Array, Array]:
    """The sums of a class of weights (1 or d,), means and scatter (d,) without each of its rows x (n, d).

    The first result is (x - mean) of the class without the row, (n, d), NaN where a cell is missing; the second are sums
    of squares, (n, d), and the third is the weight of the other rows, (n, 1) or (n, d).
    """
    u = x - mean
    left = size - weight[:, None]
    grown = size / left
    return u * grown, squares - u * u * (weight[:, None] * grown), left


def _moments(family: Any, statistics: Arrays) -> tuple[Array, Array, Array]:
    """Means (k, d), sums of squares about them (g, ...), and weights (k, 1 or d) of the classes."""
    mean, squares = scatter(family.shape, statistics)
    return family.centers + mean, squares, as_matrix(statistics["count"])


def _independent(family: Any, x: Array, left_out: LeftOut) -> Array:
    """One variance per class and column."""
    moments = _moments(family, left_out.statistics)
    second = np.maximum(np.abs(left_out.statistics["second"]), np.finfo(float).tiny)
    epsilon = _smoothing_without(family, x, left_out)
    result = _other_classes(family, x, left_out, epsilon)
    if not has_missing(x) and bool((left_out.weight == left_out.weight[:1]).all()):
        own = _own_density(x, left_out, moments, second, epsilon)
        result[np.arange(len(x)), left_out.codes] = own
        result[np.isnan(own)] = np.nan
        return result
    for c, (mean, squares, size, moment) in enumerate(zip(*moments, second, strict=True)):
        rows = np.flatnonzero(left_out.codes == c)
        if len(rows):
            shift, left_squares, left = _without_each(x[rows], left_out.weight[rows], mean, squares, size)
            variance = left_squares / left + (0.0 if epsilon is None else epsilon[rows, None])
            result[rows, c] = _sum_of_terms(shift**2 / variance + np.log(variance))
            is_lost = (left_squares < LEAST_SHARE * squares) | (variance < LEAST_UNEXPLAINED * moment / left)
            result[rows[is_lost.any(axis=1)]] = np.nan
    return result


def _own_density(
    x: Array, left_out: LeftOut, moments: tuple[Array, Array, Array], second: Array, epsilon: Array | None
) -> Array:
    """Log densities of rows without the row in their class, (n,); NaN if digits were lost.

    The rows have equal weights and no missing values; all classes are in one pass.
    With V the variance if the scatter stayed the same, the variance without a row is V (1 - z), where z is u^2 times a
    number for each column, and the squared distance is z / (1 - z) times a number for all of them.
    """
    mean, squares, sizes = moments
    weight, size = left_out.weight[0], sizes[:, :1]
    smoothing = 0.0 if epsilon is None else epsilon[0]
    left = size - weight
    variance = squares / left + smoothing
    least = np.maximum(LEAST_SHARE, LEAST_UNEXPLAINED * second / (left * variance))
    tables = ClassTables(mean, weight * size / (left * left * variance), 1.0 / variance, least)
    change = np.zeros(len(x)) if epsilon is None else epsilon - smoothing
    distance, product = left_out_shares(x, tables, left_out.codes, change)
    constant = np.log(variance).sum(axis=1) + x.shape[1] * LOG_TWO_PI
    own = distance * (size[:, 0] / weight)[left_out.codes] + np.log(product).sum(axis=1)
    return np.where(distance >= 0, -0.5 * (own + constant[left_out.codes]), np.nan)


def _sum_of_terms(terms: Array) -> Array:
    """-1/2 of the sum over known cells of squared distance plus log variance plus log 2 pi, (n,)."""
    missing = np.isnan(terms)
    if not missing.any():
        return np.asarray(-0.5 * (terms.sum(axis=1) + terms.shape[1] * LOG_TWO_PI))
    return np.asarray(-0.5 * np.where(missing, 0.0, terms + LOG_TWO_PI).sum(axis=1))


def _other_classes(family: Any, x: Array, left_out: LeftOut, epsilon: Array | None) -> Array:
    """Log densities with the moments of all rows, (n, k), and the variance smoothing without each row.

    The smoothing hardly changes: where its square is negligible, the derivative of the log density by it is enough. It is
    not in columns that are constant within a class, whose variance is the smoothing.
    """
    density = np.array(family.log_density(x, left_out.parameters))
    if epsilon is None:
        return density
    mean, variance = left_out.parameters["mean"], left_out.parameters["variance"]
    change = epsilon - family.regularizer.epsilon
    most = np.abs(change).max(initial=0.0)
    # The derivative is at most half the sum of the squared distance and the number of columns, over the least variance.
    distance = -2.0 * density.min(initial=0.0) - np.log(variance).sum(axis=1).min()
    if most / variance.min() * (distance + x.shape[1]) <= UNSEEN:
        return density
    is_narrow = most > NEGLIGIBLE * variance
    known = ~np.isnan(x) if has_missing(x) else None
    density += change[:, None] * _slopes(x, known, mean, np.where(is_narrow, 0.0, 1.0 / variance))
    for c in np.flatnonzero(is_narrow.any(axis=1)):
        j = np.flatnonzero(is_narrow[c])
        u, known_of_class = x.take(j, axis=1) - mean[c, j], None if known is None else known[:, j]
        density[:, c] += _change_of_density(u, known_of_class, variance[c, j], change[:, None])
    return density


def _change_of_density(u: Array, known: Array | None, variance: Array, change: Array) -> Array:
    """How much a log density of known cells at u from the mean changes if numbers are added to its variances, (n,).

    ``known`` marks the known cells, (n, d); None if all are.
    """
    # Columns that are constant in a class have the same variance.
    distinct, which = np.unique(variance, return_inverse=True)
    of_column = np.eye(len(distinct))[which]
    if known is None:
        squares, count = (u * u) @ of_column, of_column.sum(axis=0)
    else:
        squares, count = np.where(known, u * u, 0.0) @ of_column, known.astype(np.float64) @ of_column
    terms = squares * (change / (distinct * (distinct + change))) - count * np.log1p(change / distinct)
    return np.asarray(0.5 * terms.sum(axis=1))


def _slopes(x: Array, known: Array | None, mean: Array, precision: Array) -> Array:
    """The derivative of log densities by a number that is added to all variances, 1 over ``precision``, (n, k)."""
    middle = mean.mean(axis=0)
    centered = x - middle if known is None else np.where(known, x - middle, 0.0)
    about, squared = mean - middle, precision**2
    linear = centered @ (about * squared).T
    centered *= centered
    constant = about**2 * squared - precision
    rest = constant.sum(axis=1) if known is None else known.astype(np.float64) @ constant.T
    return np.asarray(0.5 * (centered @ squared.T - 2.0 * linear + rest))


def _smoothing_without(family: Any, x: Array, left_out: LeftOut) -> Array | None:
    """The variance smoothing without each row, (n,): a share of the largest variance of all columns; None for none."""
    if type(family.regularizer) is Plain:
        return None
    sums = family.move(left_out.statistics, family.layout.center)
    size = np.broadcast_to(as_matrix(sums["count"]).sum(axis=0), x.shape[1:])
    mean = sums["first"].sum(axis=0) / size
    squares = np.maximum(sums["second"].sum(axis=0) - size * mean**2, 0.0)
    largest = int(np.argmax(squares / size))
    variance = _variance_without(x, left_out.weight, family.layout.center + mean, squares, size, largest)
    heaviest = np.maximum(size - left_out.weight.max(), np.finfo(float).tiny)
    for j in np.flatnonzero(squares / heaviest >= variance.min(initial=np.inf)):
        if j != largest:  # without a row, the largest variance may be that of another column
            other = _variance_without(x, left_out.weight, family.layout.center + mean, squares, size, int(j))
            variance = np.maximum(variance, other)
    return np.asarray(family.regularizer.share * variance)


def _variance_without(x: Array, weight: Array, mean: Array, squares: Array, size: Array, j: int) -> Array:
    """The variance of one column in all rows without each row, (n,)."""
    u = np.where(np.isnan(x[:, j]), 0.0, x[:, j] - mean[j])
    left = size[j] - np.where(np.isnan(x[:, j]), 0.0, weight)
    return np.asarray(np.maximum(squares[j] - u * u * weight * size[j] / left, 0.0) / left)


def _tied_independent(family: Any, x: Array, left_out: LeftOut) -> Array:
    """One variance per column."""
    mean, squares, size = _moments(family, left_out.statistics)
    size = np.broadcast_to(size, mean.shape)
    known, weight = ~np.isnan(x), left_out.weight[:, None]
    codes = left_out.codes
    shift, left_squares, _ = _without_each(x, left_out.weight, mean[codes], squares[0], size[codes])
    left = size.sum(axis=0) - np.where(known, weight, 0.0)
    sums = np.where(known, left_squares, squares[0])
    result = np.empty((len(x), len(mean)))
    variance = sums / left
    for c, center in enumerate(mean):
        moved = np.where((codes == c)[:, None], shift, x - center)
        result[:, c] = _sum_of_terms(np.where(known, moved**2 / variance + np.log(variance), np.nan))
    second = np.abs(left_out.statistics["second"][0])
    is_lost = (sums < LEAST_SHARE * squares[0]) | (sums < LEAST_UNEXPLAINED * second)
    result[is_lost.any(axis=1)] = np.nan
    return result
