"""Weights of averaged posteriors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.kernels.posterior import log_loss, mix, mixture_weights
from tests.seeds import generator


def test_mixture_weights_minimize_log_loss():
    rng = generator(0)
    log_true, weight = np.log(rng.random((50, 3))), rng.integers(1, 4, 50).astype(float)
    member_weights = mixture_weights(log_true, weight)
    repeated = mixture_weights(np.repeat(log_true, weight.astype(int), axis=0), np.ones(int(weight.sum())))
    assert_allclose(member_weights, repeated, atol=1e-6)
    loss = -weight @ np.log(np.exp(log_true) @ member_weights)
    for other in rng.dirichlet(np.ones(3), 500):
        assert loss <= -weight @ np.log(np.exp(log_true) @ other) + 1e-6
    assert_array_equal(mixture_weights(np.zeros((0, 2)), np.zeros(0)), [0.5, 0.5])


@pytest.mark.parametrize("seed", range(8))
def test_mixture_weights_equal_those_of_expectation_maximization(seed):
    """Also if members are equal, or if a member gives a row a probability of nearly 0."""
    rng = generator(seed)
    log_true = -np.abs(rng.standard_normal((80, 4))) * 10.0 ** rng.uniform(-1, 2)
    log_true[rng.random((80, 4)) < 0.1] = -800.0
    log_true[:, 3] = log_true[:, seed % 3] if seed % 2 else log_true[:, 3]
    weight = rng.integers(1, 3, 80).astype(float)
    probability = np.exp(log_true - log_true.max(axis=1, keepdims=True))
    shares = np.full(4, 0.25)
    for _ in range(5000):
        shares = shares * (probability.T @ (weight / (probability @ shares))) / weight.sum()
    member_weights = mixture_weights(log_true, weight)
    assert (member_weights >= 0).all()
    assert member_weights.sum() == pytest.approx(1.0)
    assert log_loss(log_true, member_weights, weight) <= log_loss(log_true, shares, weight) + 1e-9


def test_a_mixture_is_the_log_of_the_weighted_average():
    posteriors = generator(0).dirichlet(np.ones(3), (4, 20))
    posteriors[0, 0] = [1e-300, 0.5, 0.5]
    weights = np.array([0.5, 0.3, 0.2, 0.0])
    mixed = mix(np.log(posteriors), weights)
    assert_allclose(np.exp(mixed), np.einsum("m,mnk->nk", weights, posteriors), rtol=1e-12)
