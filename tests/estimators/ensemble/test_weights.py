"""Weights of the members of an ensemble."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris

from calibayes import BayesClassifier
from calibayes.ensemble import training


class TestWeights:
    def test_members_of_little_weight_are_dropped(self):
        rng = np.random.default_rng(0)
        true = np.log(rng.uniform(0.6, 0.9, 200))
        worse, even = true - 0.5, np.full(200, np.log(0.5))
        weights = training.sparse_weights(np.column_stack([true, worse, even]), np.ones(200))
        assert weights[1] == 0.0
        assert_allclose(weights[[0, 2]], training.sparse_weights(np.column_stack([true, even]), np.ones(200)))
        assert weights.sum() == pytest.approx(1.0)

    @pytest.mark.parametrize("unit", [1e-3, 1.0, 50.0])
    def test_weights_have_a_dirichlet_prior_of_half_a_row_each(self, unit):
        log_true = np.log(np.random.default_rng(0).uniform(0.3, 0.7, (30, 2)))

        def unlikely(share):
            shares = np.array([share, 1.0 - share])
            return -np.log(np.exp(log_true) @ shares).sum() - 0.5 * np.log(shares).sum()

        best = minimize_scalar(unlikely, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
        found = training.sparse_weights(log_true, np.full(30, unit), unit)
        assert_allclose(found, [best, 1.0 - best], atol=1e-4)

    def test_class_frequencies_always_have_some_weight(self):
        sure = training.sparse_weights(np.log(np.tile([0.999, 0.5], (50, 1))), np.ones(50))
        assert 0.0 < sure[1] < 0.02
        assert BayesClassifier().fit(*load_iris(return_X_y=True)).weights_["class frequencies"] > 0

    @pytest.mark.parametrize("has_gaps", [False, True])
    def test_weights_are_copies_in_a_table_that_is_wide_without_the_copies(self, has_gaps):
        """30 rows are fewer than 40 columns, with their copies there are more. Copies of imputed rows are equal to the bit."""
        rng = np.random.default_rng(0)
        y = np.arange(30) % 2
        X = rng.normal(size=(30, 40)) + y[:, None] * (rng.random(40) < 0.2)
        X[rng.random(X.shape) < 0.05 * has_gaps] = np.nan
        times = rng.integers(1, 4, 30)
        rows = np.repeat(np.arange(30), times)
        repeated = BayesClassifier().fit(X[rows], y[rows])
        weighted = BayesClassifier().fit(X, y, sample_weight=times.astype(float))
        assert "centroids" not in repeated.weights_
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
