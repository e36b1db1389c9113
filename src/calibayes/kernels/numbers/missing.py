"""Missing cells (NaN) of numbers: patterns of rows, and what known cells say about missing ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.gaussian import LOG_TWO_PI


def known_and_filled(x: Array) -> tuple[Array, Array]:
    """Which cells are known (as numbers 0 and 1), and the cells with 0 for the others."""
    known = ~np.isnan(x)
    return known.astype(np.float64), np.where(known, x, 0.0)


def patterns(x: Array) -> Iterator[tuple[Array, Array]]:
    """Known columns (d,) and rows (positions) of each pattern of missing cells."""
    known = ~np.isnan(x)
    found, group = np.unique(known, axis=0, return_inverse=True)
    for number, columns in enumerate(found):
        yield columns, np.flatnonzero(group.ravel() == number)


def conditional(covariance: Array, known: Array) -> tuple[Array, Array]:
    """Regression of missing on known columns, (missing, known), and the covariance that is left."""
    across = covariance[np.ix_(~known, known)]
    slopes = np.linalg.solve(covariance[np.ix_(known, known)], across.T).T
    return slopes, covariance[np.ix_(~known, ~known)] - slopes @ across.T


def expected_moments(x: Array, weights: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Expected first (d,) and second (d, d) moments of rows with missing cells, for one class's weights (n,)."""
    d = x.shape[1]
    first, second = np.zeros(d), np.zeros((d, d))
    for known, rows in patterns(x):
        whole, weight = filled_rows(x[rows], known, mean, covariance), weights[rows]
        first += weight @ whole
        second += (whole * weight[:, None]).T @ whole
        if not known.all():
            _, left = conditional(covariance, known)
            second[np.ix_(~known, ~known)] += weight.sum() * left
    return first, second


def filled_rows(x: Array, known: Array, mean: Array, covariance: Array) -> Array:
    """Rows of one pattern, missing cells at their conditional mean."""
    if known.all():
        return x
    slopes, _ = conditional(covariance, known)
    whole = x.copy()
    whole[:, ~known] = mean[~known] + (x[:, known] - mean[known]) @ slopes.T
    return whole


def marginal_gaussian(x: Array, mean: Array, covariance: Array) -> Array:
    """Log density of the known cells of each row under one Gaussian, (n,); 0 where none is known."""
    result = np.zeros(len(x))
    for known, rows in patterns(x):
        if known.any():
            factor = np.linalg.cholesky(covariance[np.ix_(known, known)])
            white = np.linalg.solve(factor, (x[np.ix_(rows, np.flatnonzero(known))] - mean[known]).T)
            log_determinant = 2.0 * np.sum(np.log(np.diag(factor)))
            result[rows] = -0.5 * (np.sum(white**2, axis=0) + log_determinant + known.sum() * LOG_TWO_PI)
    return result


def marginal_diagonal(x: Array, mean: Array, variance: Array) -> Array:
    """Log density of the known cells under independent Gaussians, (n, k)."""
    terms = [
        np.nansum((x - m) ** 2 / v + np.log(v) + LOG_TWO_PI, axis=1)
        for m, v in zip(mean, variance, strict=True)
    ]
    return np.asarray(-0.5 * np.stack(terms, axis=1))
