"""Kernels on arrays of another library."""

import array_api_strict as strict
import numpy as np
from numpy.testing import assert_allclose

from calibayes.kernels import gaussian_density, moments
from calibayes.kernels import posterior as logspace


def test_kernels_support_the_array_api():
    rng = np.random.default_rng(0)
    x, weights, mean = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.normal(size=(2, 3))
    covariance = np.stack([np.cov(x.T), np.cov(x.T) + np.eye(3)])
    whitener, log_determinant = gaussian_density.whiteners(covariance)
    variance = np.abs(mean) + 0.1
    calls = [
        (moments.zeroth, (weights,)),
        (moments.first, (x, weights)),
        (moments.squares, (x, weights)),
        (moments.outer, (x, weights)),
        (gaussian_density.diagonal_gaussian, (x, mean, variance)),
        (gaussian_density.full_gaussian, (x, mean, covariance, whitener, log_determinant)),
        (gaussian_density.full_gaussian, (x, mean, covariance[:1], whitener[:1], log_determinant[:1])),
        (lambda a: logspace.log_normalize(a)[0], (weights,)),
        (lambda a: logspace.log_normalize(a)[1], (weights,)),
    ]
    for function, arrays in calls:
        other = function(*(strict.asarray(array) for array in arrays))
        assert_allclose(np.asarray(other), function(*arrays), rtol=1e-12)
