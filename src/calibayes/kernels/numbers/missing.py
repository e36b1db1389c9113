"""Missing values (NaN) of Gaussian columns: patterns, conditional moments and marginal densities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import solve_triangular

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.gaussian import LOG_TWO_PI
from calibayes.kernels.numbers.row_weights import weight_of_one

ROUNDS = 3
"""How often missing values of training rows are imputed, each time by the covariance of the rows imputed before."""
LEAST_RIDGE, RIDGE_PER_COLUMN = 1e-3, 0.1
"""Weight of the identity in the covariance for imputation: the larger of the first, and the second times columns / rows."""


def patterns(x: Array) -> Iterator[tuple[Array, Array]]:
    """For each pattern of missing values in x (n, d): the mask of known columns (d,) and the positions of its rows."""
    masks, group = np.unique(~np.isnan(x), axis=0, return_inverse=True)
    for number, known in enumerate(masks):
        yield known, np.flatnonzero(group.ravel() == number)


def conditional(covariance: Array, known: Array) -> tuple[Array, Array]:
    """Regression coefficients of missing on known columns, (missing, known), and the residual covariance.

    ``known`` (d,) is the mask of known columns, ``covariance`` (d, d).
    Known columns without variance have coefficients 0.
    """
    across = covariance[np.ix_(~known, known)]
    varies = np.diagonal(covariance)[known] > 0
    varying = np.flatnonzero(known)[varies]
    slopes = np.zeros(across.shape)
    slopes[:, varies] = np.linalg.solve(covariance[np.ix_(varying, varying)], across[:, varies].T).T
    return slopes, covariance[np.ix_(~known, ~known)] - slopes @ across.T


def expected_moments(x: Array, weights: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Expected weighted sums of x, (d,), and x x', (d, d), given the known cells, for the weights (n,) of one class."""
    d = x.shape[1]
    first, second = np.zeros(d), np.zeros((d, d))
    for known, rows in patterns(x):
        imputed, weight = filled_rows(x[rows], known, mean, covariance), weights[rows]
        first += weight @ imputed
        second += (imputed * weight[:, None]).T @ imputed
        if not known.all():
            _, residual = conditional(covariance, known)
            second[np.ix_(~known, ~known)] += weight.sum() * residual
    return first, second


def filled_rows(x: Array, known: Array, mean: Array, covariance: Array) -> Array:
    """Rows (n, d) of one pattern with missing values replaced by their conditional means."""
    if known.all():
        return x
    slopes, _ = conditional(covariance, known)
    imputed = x.copy()
    imputed[:, ~known] = mean[~known] + (x[:, known] - mean[known]) @ slopes.T
    return imputed


def marginal_gaussians(x: Array, means: Array, covariances: Array) -> Array:
    """Log densities of the known cells of each row under k Gaussians, (n, k); 0 if none is known.

    ``means`` (k, d); ``covariances`` (k, d, d), or (1, d, d) if they share one.
    """
    result = np.zeros((len(x), len(means)))
    for known, rows in patterns(x):
        if known.any():
            result[rows] = _complete_gaussians(
                x[np.ix_(rows, np.flatnonzero(known))], means[:, known], covariances[:, known][:, :, known]
            )
    return result


def _complete_gaussians(x: Array, means: Array, covariances: Array) -> Array:
    """Log densities of complete rows, (n, k)."""
    factors = np.linalg.cholesky(covariances)
    result = np.empty((len(x), len(means)))
    for c, mean in enumerate(means):
        factor = factors[c if len(factors) > 1 else 0]
        white = solve_triangular(factor, (x - mean).T, lower=True, check_finite=False)
        log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
        result[:, c] = -0.5 * (np.sum(white**2, axis=0) + log_determinant + len(mean) * LOG_TWO_PI)
    return result


def imputation_precision(x: Array, weight: Array) -> Array:
    """The inverse covariance, (d, d), by which `impute` fills missing values of standardized rows (n, d)."""
    d, rows = x.shape[1], float(weight.sum()) / weight_of_one(weight)
    ridge = min(max(RIDGE_PER_COLUMN * d / rows, LEAST_RIDGE), 1.0)
    filled = np.nan_to_num(x, nan=0.0)
    for _ in range(ROUNDS):
        covariance = (filled * weight[:, None]).T @ filled / weight.sum()
        precision = np.linalg.inv((1.0 - ridge) * covariance + ridge * np.eye(d))
        filled = impute(x, precision)
    return precision


def impute(x: Array, precision: Array) -> Array:
    """Rows of mean 0 (n, d) with missing values replaced by their conditional means given the known cells.

    With the inverse covariance P, the conditional mean of the missing cells m given the known ones o is
    -P[m, m]^-1 P[m, o] x[o]: only matrices as small as the number of missing cells are inverted.
    """
    filled = np.nan_to_num(x, nan=0.0)
    incomplete = np.flatnonzero(np.isnan(x).any(axis=1))
    for known, rows in patterns(x[incomplete]):
        positions, absent = incomplete[rows], np.flatnonzero(~known)
        pull = filled[positions] @ precision[:, absent]
        filled[np.ix_(positions, absent)] = -np.linalg.solve(precision[np.ix_(absent, absent)], pull.T).T
    return filled


def impute_from_factors(x: Array, loadings: Array, noise: float) -> Array:
    """Rows of mean 0 (n, d) with missing values replaced by their conditional means in a factor model.

    Its covariance is B B' + noise * I with loadings B (d, factors). Given the known cells o, the factors have the mean
    (B[o]' B[o] + noise * I)^-1 B[o]' x[o].
    """
    filled = np.nan_to_num(x, nan=0.0)
    incomplete = np.flatnonzero(np.isnan(x).any(axis=1))
    for known, rows in patterns(x[incomplete]):
        positions, part = incomplete[rows], loadings[known]
        gram = part.T @ part + noise * np.eye(part.shape[1])
        factors = np.linalg.solve(gram, part.T @ filled[np.ix_(positions, np.flatnonzero(known))].T)
        filled[np.ix_(positions, np.flatnonzero(~known))] = factors.T @ loadings[~known].T
    return filled
