"""Missing values of Gaussian columns: imputation by conditional means."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.kernels import gaussian_density


@pytest.fixture
def rows():
    """Rows of correlated columns with mean 0, their covariance, and the same rows with missing values."""
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(6, 2))
    covariance = loadings @ loadings.T + 0.3 * np.eye(6)
    complete = rng.multivariate_normal(np.zeros(6), covariance, size=400)
    return complete, covariance, np.where(rng.random(complete.shape) < 0.3, np.nan, complete)


def conditional_means(x, covariance):
    """Row by row, by regression on the known columns."""
    filled = x.copy()
    for row in filled:
        absent = np.isnan(row)
        slopes = np.linalg.pinv(covariance[np.ix_(~absent, ~absent)]) @ covariance[np.ix_(~absent, absent)]
        row[absent] = row[~absent] @ slopes
    return filled


def test_imputed_values_are_conditional_means(rows):
    _, covariance, x = rows
    filled = gaussian_density.impute(x, np.linalg.inv(covariance))
    assert_allclose(filled, conditional_means(x, covariance), atol=1e-12)
    assert_array_equal(filled[~np.isnan(x)], x[~np.isnan(x)])


def test_imputation_from_factors_is_that_of_their_covariance(rows):
    _, _, x = rows
    loadings = np.random.default_rng(1).normal(size=(6, 2))
    covariance = loadings @ loadings.T + 0.7 * np.eye(6)
    filled = gaussian_density.impute_from_factors(x, loadings, 0.7)
    assert_allclose(filled, conditional_means(x, covariance), atol=1e-12)


def test_the_covariance_for_imputation_is_that_of_the_rows(rows):
    complete, covariance, x = rows
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    precision = gaussian_density.imputation_precision(x / deviation, np.ones(len(x)))
    filled, best = (
        gaussian_density.impute(x / deviation, p) for p in (precision, np.linalg.inv(correlation))
    )
    errors = [np.mean((f - complete / deviation)[np.isnan(x)] ** 2) for f in (filled, best)]
    assert errors[0] < 1.1 * errors[1]


def test_a_row_of_weight_two_is_two_rows(rows):
    _, _, x = rows
    weight = np.random.default_rng(2).integers(1, 4, len(x))
    once = gaussian_density.imputation_precision(x, weight.astype(float))
    repeated = gaussian_density.imputation_precision(np.repeat(x, weight, axis=0), np.ones(weight.sum()))
    assert_allclose(once, repeated, rtol=1e-9)
