"""Exponentials, logarithms and posteriors of the same bits everywhere: against numbers of high precision."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from calibayes.kernels.posterior import LEAST_EXPONENT, exact_exp, exact_log, exact_posterior
from tests.seeds import generator


def test_exponentials_are_within_one_unit_in_the_last_place():
    x = -np.concatenate(
        [generator(0).exponential(10.0, 20_000), np.linspace(0.0, 707.9, 5_000), [0.0, 5e-324]]
    )
    expected = np.exp(x.astype(np.longdouble))
    assert np.abs(exact_exp(x) / expected - 1.0).max() <= np.finfo(float).eps
    assert exact_exp(np.array([0.0, LEAST_EXPONENT, -1e4, -np.inf])).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_logarithms_are_within_two_units_in_the_last_place():
    x = np.concatenate(
        [generator(1).uniform(1.0, 200.0, 20_000), 2.0 ** np.arange(-1000, 1000), [1.0 + 1e-15]]
    )
    expected = np.log(x.astype(np.longdouble))
    assert (
        np.abs(exact_log(x) - expected) <= 2 * np.finfo(float).eps * np.maximum(np.abs(expected), 1e-300)
    ).all()
    assert exact_log(np.array([1.0])).tolist() == [0.0]


@pytest.mark.parametrize("k", [1, 2, 3, 12])
def test_posteriors_are_those_of_scipy(k):
    scores = generator(k).normal(size=(500, k)) * 10.0 ** generator(k).integers(-2, 4, size=(500, 1))
    exact = exact_posterior(scores)
    np.testing.assert_allclose(exact.posterior, softmax(scores, axis=1), rtol=1e-13, atol=1e-300)
    top = scores.max(axis=1)
    np.testing.assert_allclose(
        exact.log_sum, logsumexp(scores - top[:, None], axis=1), rtol=1e-13, atol=1e-15
    )


def test_classes_without_probability():
    impossible, certain = np.full((1, 3), -np.inf), np.array([[-np.inf, 0.0, -np.inf]])
    np.testing.assert_array_equal(exact_posterior(impossible).posterior, np.full((1, 3), 1 / 3))
    np.testing.assert_array_equal(exact_posterior(certain).posterior, [[0.0, 1.0, 0.0]])
