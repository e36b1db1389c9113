"""Naive Bayes and trees on tables with more columns than rows."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

import calibayes as cb
from calibayes import TrainingOptions
from calibayes.encoders import Levels
from calibayes.estimators import tree_augmented
from calibayes.families import tree_structures
from calibayes.model.checked_rows import Rows
from calibayes.tables.read import read_frame

NAIVE = [cb.NaiveBayes, cb.KernelNB, cb.GaussianNB]


def table(seed=0, n=80, d=800, informative=10):
    """Training rows, and 600 new rows."""
    rng = np.random.default_rng(seed)
    y = np.arange(n + 600) % 2
    X = rng.normal(size=(len(y), d))
    X[:, :informative] += 0.5 * (2 * y - 1)[:, None]
    return X[:n], y[:n], X[n:], y[n:]


class TestTemperature:
    @pytest.mark.parametrize("estimator", NAIVE)
    @pytest.mark.parametrize("informative", [0, 10])
    def test_the_log_loss_hardly_exceeds_that_of_the_class_frequencies(self, estimator, informative):
        X, y, X_new, y_new = table(informative=informative)
        model = estimator().fit(X, y)
        assert model.temperature_ > 3.0
        assert log_loss(y_new, model.predict_proba(X_new)) < np.log(2) + 0.05
        extreme = estimator(training=TrainingOptions()).fit(X, y)
        assert extreme.temperature_ == 1.0
        assert log_loss(y_new, extreme.predict_proba(X_new)) > 1.0
        assert_array_equal(model.predict(X_new), extreme.predict(X_new))

    @pytest.mark.parametrize("estimator", [*NAIVE, cb.TreeAugmentedNB])
    def test_is_one_for_closed_forms_and_for_tables_with_fewer_columns(self, estimator):
        X, y, _, _ = table(n=40, d=45)
        assert estimator(rule="ml").fit(X, y).temperature_ == 1.0
        assert estimator(max_iter=2, stop=None).fit(X[:, :40], y).temperature_ == 1.0
        assert estimator(max_iter=2, stop=None).fit(X, y).temperature_ > 1.0

    def test_classes_of_one_row(self):
        X = np.random.default_rng(0).normal(size=(2, 5))
        assert cb.NaiveBayes().fit(X, ["a", "b"]).temperature_ == 1.0

    def test_the_order_of_the_rows_has_no_influence(self):
        X, y, X_new, _ = table()
        order = np.random.default_rng(0).permutation(len(y))
        one, other = cb.NaiveBayes().fit(X, y), cb.NaiveBayes().fit(X[order], y[order])
        assert_allclose(one.predict_proba(X_new), other.predict_proba(X_new), atol=1e-6)


class TestTree:
    @pytest.mark.parametrize("kind", ["numbers", "letters"])
    def test_keeps_the_columns_that_depend_on_the_class(self, monkeypatch, kind):
        monkeypatch.setattr(tree_augmented, "LARGEST_TABLES", 10_000)
        monkeypatch.setattr(tree_augmented, "MOST_IN_TREE", (16, 8))
        X, y, X_new, y_new = table(n=400, d=60, informative=4)
        X[:, 1], X_new[:, 1] = X[:, 0] + 0.1 * X[:, 1], X_new[:, 0] + 0.1 * X_new[:, 1]
        X, X_new = (pd.DataFrame(x).add_prefix("x") for x in (X, X_new))
        if kind == "letters":
            X, X_new = (
                x.apply(lambda column: pd.cut(column, [-9, -0.4, 0.4, 9]).astype(str)) for x in (X, X_new)
            )
        model = cb.TreeAugmentedNB(**({"discretize": "quantile"} if kind == "numbers" else {})).fit(X, y)
        assert set(model.edges_[0][:2]) == {"x0", "x1"}
        without_parent = [line for line in str(model.schema_).splitlines() if "without parent" in line]
        assert 44 <= len(without_parent) <= 52
        assert model.score(X_new, y_new) > 0.65
        assert np.isfinite(model.score_samples(X_new)).all()
        assert model.sample(3, random_state=0)[0].shape == (3, 60)

    def test_is_unchanged_where_all_pairs_fit(self, monkeypatch):
        X, y, X_new, _ = table(n=100, d=30)
        before = cb.TreeAugmentedNB().fit(X, y).predict_proba(X_new)
        monkeypatch.setattr(tree_augmented, "MOST_IN_TREE", (16, 8))
        assert_array_equal(cb.TreeAugmentedNB().fit(X, y).predict_proba(X_new), before)

    def test_has_few_columns_if_there_are_more_columns_than_rows(self):
        X, y, _, _ = table(n=40, d=600)
        model = cb.TreeAugmentedNB(discretize="quantile", n_bins=8, rule="ml").fit(X, y)
        assert str(model.schema_).count("without parent") >= 600 - 256

    def test_columns_of_equal_relevance_are_chosen_together(self, monkeypatch):
        monkeypatch.setattr(tree_augmented, "LARGEST_TABLES", 0)
        monkeypatch.setattr(tree_augmented, "MOST_IN_TREE", (3,))
        codes = np.arange(40) % 2
        related, unrelated = codes.astype(str), np.repeat(["0", "1"], 20)
        frame = pd.DataFrame({"a": related, "b": unrelated, "c": unrelated, "d": unrelated, "e": related})
        rows = Rows(read_frame(frame), codes, np.ones(40), np.arange(40))
        given = tree_augmented.CandidateColumns(range(5), Levels(), rows, 2)
        assert tree_augmented.tree_columns(given, 10_000) == [0, 4]

    def test_the_tables_of_pairs_stay_within_the_limit(self, monkeypatch):
        for module in (tree_augmented, tree_structures):
            monkeypatch.setattr(module, "LARGEST_TABLES", 2**20)
        X, y, X_new, y_new = table(n=60, d=600)
        tracemalloc.start()
        try:
            model = cb.TreeAugmentedNB(discretize="quantile", n_bins=3, rule="ml").fit(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 100e6
        assert model.score(X_new, y_new) > 0.6

    def test_thousands_of_columns(self):
        """The tables of all pairs would have more than 2^27 cells."""
        X, y, X_new, y_new = table(n=60, d=4000)
        assert cb.TreeAugmentedNB(rule="ml").fit(X, y).score(X_new, y_new) > 0.55
