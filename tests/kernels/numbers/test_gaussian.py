"""Gaussian kernels."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibayes.kernels import gaussian_density


def test_values_far_from_zero_keep_their_precision():
    mean, variance = np.array([[1e6, 0.0]]), np.array([[1e-4, 1.0]])
    x = np.array([[1e6 + 0.02, 1.0]])
    expected = stats.norm(0, 1e-2).logpdf(x[0, 0] - 1e6) + stats.norm(0, 1).logpdf(1.0)
    assert_allclose(gaussian_density.diagonal_gaussian(x, mean, variance), [[expected]], rtol=1e-9)


def test_pivots_of_singular_matrices_are_zero():
    assert (gaussian_density.pivots(np.eye(3)) == 1).all()
    assert gaussian_density.pivots(np.array([[1.0, 1.0], [1.0, 1.0]]))[1] == 0
    assert gaussian_density.pivots(np.array([[1.0, 2.0], [2.0, 1.0]]))[1] == 0
    assert (gaussian_density.pivots(np.array([[np.nan, 0.0], [0.0, 1.0]])) == 0).all()


def test_pivots_after_a_constant_column_are_zero_without_overflow():
    assert_array_equal(gaussian_density.pivots(np.array([[0.0, 0.0], [0.0, 1e200]])), [0.0, 0.0])
    assert_array_equal(gaussian_density.pivots(np.array([[4.0, 0.0], [0.0, 9.0]])), [4.0, 9.0])
