"""Ensembles do not depend on the order of rows, threads or repetition; weights count as rows."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification

from calibayes import BayesClassifier
from tests.estimators.ensemble.tables import frame


class TestRows:
    def test_predictions_do_not_depend_on_threads_or_repetition(self):
        X, y = make_classification(3000, 40, n_informative=8, random_state=0)
        models = [BayesClassifier(n_jobs=jobs, families=["kernel", "tied"]).fit(X, y) for jobs in (1, 2, 1)]
        for other in models[1:]:
            assert_array_equal(models[0].predict_log_proba(X), other.predict_log_proba(X))
        assert models[0].weights_ == models[1].weights_

    def test_predictions_do_not_depend_on_the_order_of_rows(self):
        X, y = frame()
        order = np.random.default_rng(0).permutation(len(y))
        one, two = BayesClassifier().fit(X, y), BayesClassifier().fit(X.iloc[order], y[order])
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)

    def test_seeds_change_the_folds(self):
        X, y = frame()
        one, two = (BayesClassifier(random_state=seed).fit(X, y) for seed in (1, 2))
        assert one.weights_ != two.weights_

    def test_copies_predict_the_same(self, fitted):
        X, _ = frame(seed=1)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))

    @pytest.mark.parametrize("balanced", [None, "balanced"])
    def test_counts_as_weights_are_repeated_rows(self, balanced):
        """Counts larger than the number of distinct rows, and with class weights."""
        rng = np.random.default_rng(0)
        X = np.array([[a, b] for a in range(4) for b in range(4)] * 2, dtype=float)
        y = np.repeat([0, 1], 16)
        seen = rng.integers(1, 8, 32) * np.where((X[:, 0] > 1) == y, 5, 1)
        one = BayesClassifier(class_weight=balanced).fit(X, y, sample_weight=seen)
        two = BayesClassifier(class_weight=balanced).fit(np.repeat(X, seen, axis=0), np.repeat(y, seen))
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)

    def test_whole_weights_are_repeated_rows(self):
        X, y = frame(80)
        weight = np.random.default_rng(5).integers(0, 3, len(y))
        repeated = np.repeat(np.arange(len(y)), weight)
        one = BayesClassifier().fit(X, y, sample_weight=weight)
        two = BayesClassifier().fit(X.iloc[repeated], y[repeated])
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)

    @pytest.mark.parametrize("options", [{"class_weight": "balanced"}, {"class_weight": {0: 0.3, 1: 2.7}}])
    def test_class_weights_are_no_counts(self, options):
        x = np.arange(399) % 2
        model = BayesClassifier(**options).fit(x[:, None], x)
        assert model.score(x[:, None], x) == 1.0
        assert model.weights_["class frequencies"] < 0.1
