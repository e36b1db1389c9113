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


def unexplained(matrix):
    return gaussian_density.unexplained(matrix[None])[0]


def test_nothing_is_unexplained_by_singular_matrices():
    assert (unexplained(np.eye(3)) == 1).all()
    assert unexplained(np.array([[1.0, 1.0], [1.0, 1.0]]))[1] == 0
    assert unexplained(np.array([[1.0, 2.0], [2.0, 1.0]]))[1] == 0
    assert (unexplained(np.array([[np.nan, 0.0], [0.0, 1.0]])) == 0).all()


def test_the_unexplained_variance_is_that_given_all_others_in_any_order():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6)) * 10.0 ** rng.integers(-3, 3, size=(6, 1))
    covariance, order = root @ root.T, rng.permutation(6)
    left = unexplained(covariance)
    assert_allclose(left, 1.0 / np.diag(np.linalg.inv(covariance)), rtol=1e-8)
    assert_allclose(unexplained(covariance[np.ix_(order, order)]), left[order], rtol=1e-8)


def test_nothing_is_unexplained_after_a_constant_column_without_overflow():
    assert_array_equal(unexplained(np.array([[0.0, 0.0], [0.0, 1e200]])), [0.0, 0.0])
    assert_array_equal(unexplained(np.array([[4.0, 0.0], [0.0, 9.0]])), [4.0, 9.0])
