"""Densities against SciPy, kernels on another array library."""

import array_api_strict as strict
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from calibayes.kernels.numbers import gaussian, kmeans, moments
from calibayes.kernels.posterior import logspace, simplex
from tests.cases import FAMILIES


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("gaussian")])
def test_gaussian_log_density(name):
    case = FAMILIES[name]
    family = case.prepared()
    parameters = family.parameters(case.start())
    found = family.log_density(case.columns, parameters)
    for c in range(case.k):
        if "covariance" in parameters:
            covariance = parameters["covariance"][min(c, len(parameters["covariance"]) - 1)]
        else:
            covariance = np.diag(parameters["variance"][c])
        expected = stats.multivariate_normal(parameters["mean"][c], covariance).logpdf(case.columns)
        assert_allclose(found[:, c], expected, rtol=1e-10)


def test_far_values_keep_their_digits():
    mean, variance = np.array([[1e6, 0.0]]), np.array([[1e-4, 1.0]])
    x = np.array([[1e6 + 0.02, 1.0]])
    expected = stats.norm(0, 1e-2).logpdf(x[0, 0] - 1e6) + stats.norm(0, 1).logpdf(1.0)
    assert_allclose(gaussian.diagonal_gaussian(x, mean, variance), [[expected]], rtol=1e-9)


def test_kernels_speak_the_array_api():
    rng = np.random.default_rng(0)
    x, weights, mean = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.normal(size=(2, 3))
    covariance = np.stack([np.cov(x.T), np.cov(x.T) + np.eye(3)])
    whitener, log_determinant = gaussian.whiteners(covariance)
    variance = np.abs(mean) + 0.1
    calls = [
        (moments.zeroth, (weights,)),
        (moments.first, (x, weights)),
        (moments.squares, (x, weights)),
        (moments.outer, (x, weights)),
        (gaussian.diagonal_gaussian, (x, mean, variance)),
        (gaussian.full_gaussian, (x, mean, covariance, whitener, log_determinant)),
        (gaussian.full_gaussian, (x, mean, covariance[:1], whitener[:1], log_determinant[:1])),
        (lambda a: logspace.log_normalize(a)[0], (weights,)),
        (lambda a: logspace.log_normalize(a)[1], (weights,)),
    ]
    for function, arrays in calls:
        other = function(*(strict.asarray(array) for array in arrays))
        assert_allclose(np.asarray(other), function(*arrays), rtol=1e-12)


def test_log_normalize_survives_extremes():
    log_joint = np.array([[-1e5, -1e5 - 1.0], [800.0, 0.0], [-np.inf, 0.0], [-np.inf, -np.inf]])
    log_posterior, evidence = logspace.log_normalize(log_joint)
    assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0)
    assert_allclose(evidence[:3], [-1e5 + np.log1p(np.exp(-1.0)), 800.0, 0.0])
    assert evidence[3] == -np.inf


def test_projection_is_the_nearest_point_of_the_simplex():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    projected = simplex.project(rows)
    assert_allclose(projected.sum(axis=1), 1.0)
    assert (projected >= 0).all()
    others = rng.dirichlet(np.ones(4), size=2000)
    for row, found in zip(rows, projected, strict=True):
        assert np.sum((row - found) ** 2) <= np.min(np.sum((row - others) ** 2, axis=1)) + 1e-12
    inside = rng.dirichlet(np.ones(4), size=5)
    assert_allclose(simplex.project(inside), inside, atol=1e-12)


def test_kmeans_agrees_with_scikit_learn():
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    column = np.concatenate([rng.normal(size=300), rng.exponential(5.0, 100)])
    even = np.linspace(column.min(), column.max(), 6)
    start = (even[1:] + even[:-1]) / 2
    theirs = KMeans(5, init=start[:, None], n_init=1).fit(column[:, None]).cluster_centers_[:, 0]
    values = np.sort(column)
    assert_allclose(kmeans.centers(values, np.ones(400), start), np.sort(theirs), rtol=1e-8)


def test_pivots_see_what_is_singular():
    assert (gaussian.pivots(np.eye(3)) == 1).all()
    assert gaussian.pivots(np.array([[1.0, 1.0], [1.0, 1.0]]))[1] == 0
    assert gaussian.pivots(np.array([[1.0, 2.0], [2.0, 1.0]]))[1] == 0
    assert (gaussian.pivots(np.array([[np.nan, 0.0], [0.0, 1.0]])) == 0).all()
