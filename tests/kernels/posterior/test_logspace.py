"""Normalization of log probabilities, and projection onto the simplex."""

import numpy as np
from numpy.testing import assert_allclose

from calibayes.kernels import posterior as logspace
from calibayes.kernels import posterior as simplex
from tests.seeds import generator


def test_log_normalize_of_extreme_values():
    log_joint = np.array([[-1e5, -1e5 - 1.0], [800.0, 0.0], [-np.inf, 0.0], [-np.inf, -np.inf]])
    log_posterior, evidence = logspace.log_normalize(log_joint)
    assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0)
    assert_allclose(evidence[:3], [-1e5 + np.log1p(np.exp(-1.0)), 800.0, 0.0])
    assert evidence[3] == -np.inf


def test_projection_is_the_nearest_point_of_the_simplex():
    rng = generator(0)
    rows = rng.normal(size=(50, 4))
    projected = simplex.project(rows)
    assert_allclose(projected.sum(axis=1), 1.0)
    assert (projected >= 0).all()
    others = rng.dirichlet(np.ones(4), size=2000)
    for row, found in zip(rows, projected, strict=True):
        assert np.sum((row - found) ** 2) <= np.min(np.sum((row - others) ** 2, axis=1)) + 1e-12
    inside = rng.dirichlet(np.ones(4), size=5)
    assert_allclose(simplex.project(inside), inside, atol=1e-12)
