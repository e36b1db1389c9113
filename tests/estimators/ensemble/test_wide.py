"""The default classifier on tables with more columns than rows."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibayes import BayesClassifier
from calibayes.encoders import Numbers, PrincipalComponents
from calibayes.ensemble.standard_members import TableSize
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.families import Gaussian, Inflated, Tied
from calibayes.families.covariance_shapes import TowardsSphere
from calibayes.model.binding import every

TRAINING, D = 120, 1200
FOLDS = [(np.flatnonzero(np.arange(TRAINING) % 4 != fold), np.arange(fold, TRAINING, 4)) for fold in range(4)]


def sparse_signal(rng, n, d=D):
    """15 of many columns depend on the class."""
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d))
    X[:, :15] += 0.5 * (2 * y - 1)[:, None]
    return X, y


def dense_signal(rng, n, d=D):
    """Every column depends on the class a little."""
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, d)) + 0.07 * np.outer(2 * y - 1, np.where(np.arange(d) % 2, 1.0, -1.0)), y


def hidden_factors(rng, n, d=D):
    """Strong common factors that do not depend on the class, and weak differences of some columns that do."""
    loadings = np.random.default_rng(5).normal(size=(8, d))
    y = rng.integers(0, 2, n)
    shift = np.where(np.arange(d) < 80, np.where(np.arange(d) % 2, 0.6, -0.6), 0.0)
    return rng.normal(size=(n, 8)) @ loadings + rng.normal(size=(n, d)) + np.outer(2 * y - 1, shift), y


def rare_ones(rng, n, d=D):
    """Zeros and ones, of which 60 columns have more ones in the second class."""
    y = rng.integers(0, 2, n)
    share = np.random.default_rng(3).beta(0.5, 5.0, d) + 0.2 * np.outer(y, np.arange(d) < 60)
    return (rng.random((n, d)) < share).astype(float), y


def split(make, seed=0):
    X, y = make(np.random.default_rng([seed, 8]), TRAINING + 1500)
    return X[:TRAINING], y[:TRAINING], X[TRAINING:], y[TRAINING:]


def scores(model, X, y):
    return np.mean(model.predict(X) != y), log_loss(y, model.predict_proba(X))


class TestAccuracy:
    @pytest.mark.parametrize("make", [sparse_signal, dense_signal, hidden_factors, rare_ones])
    def test_no_worse_than_logistic_regression(self, make):
        X, y, X_new, y_new = split(make)
        peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(X, y)
        error, loss = scores(BayesClassifier().fit(X, y), X_new, y_new)
        peer_error, peer_loss = scores(peer, X_new, y_new)
        assert error <= peer_error + 0.02
        assert loss <= peer_loss + 0.02

    def test_few_informative_columns_are_found(self):
        X, y, X_new, y_new = split(sparse_signal)
        error, loss = scores(BayesClassifier().fit(X, y), X_new, y_new)
        assert error < 0.12  # with all informative columns known, 0.03; logistic regression has 0.3
        assert loss < 0.35

    @pytest.mark.parametrize("share", [0.5, 0.15])
    def test_columns_without_information_do_not_exceed_the_loss_of_the_class_frequencies(self, share):
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(TRAINING + 1500, D)), (rng.random(TRAINING + 1500) < share).astype(int)
        model = BayesClassifier().fit(X[:TRAINING], y[:TRAINING])
        frequencies = np.tile(model.fitted_.class_frequencies, (1500, 1))
        loss = log_loss(y[TRAINING:], model.predict_proba(X[TRAINING:]))
        assert loss < log_loss(y[TRAINING:], frequencies) + 0.03

    def test_mixed_columns_with_missing_values(self):
        rng = np.random.default_rng(2)
        y = rng.integers(0, 2, 460)
        numbers = rng.normal(size=(460, 150))
        numbers[:, :8] += 0.6 * (2 * y - 1)[:, None]
        numbers[rng.random(numbers.shape) < 0.05] = np.nan
        letters = np.where(rng.random((460, 150)) < 0.3, y[:, None], rng.integers(0, 2, (460, 150)))
        letters[:, 20:] = rng.integers(0, 2, (460, 130))
        X = pd.concat(
            [pd.DataFrame(numbers), pd.DataFrame(np.array(["a", "b"])[letters]).astype("category")], axis=1
        ).set_axis([f"x{j}" for j in range(300)], axis=1)
        model = BayesClassifier().fit(X.iloc[:60], y[:60])
        assert scores(model, X.iloc[60:], y[60:])[0] < 0.25


class TestMembers:
    def test_are_those_for_wide_tables_only_if_columns_exceed_rows(self):
        rng = np.random.default_rng(0)
        y = np.arange(40) % 2
        names = {d: list(BayesClassifier().fit(rng.normal(size=(40, d)), y).paths_) for d in (40, 41)}
        assert names[40] == ["near", "tied", "full", "kernel"]
        assert names[41] == ["near", "tied", "centroids", "full", "kernel"]

    def test_passes_fall_with_the_ratio_of_rows_to_columns(self):
        passes = [TableSize(100, 2, d, d, 100.0).passes(120) for d in (50, 100, 101, 200, 5000)]
        assert passes == [120, 120, 119, 60, 3]

    def test_the_span_of_the_rows_gives_the_linear_discriminants_of_all_columns(self):
        """Equal to scikit-learn's covariance of all columns with shrinkage, of which only the parametrization differs."""
        X, y, X_new, _ = split(lambda rng, n: sparse_signal(rng, n, 150))
        X, y, X_new = X[:60], y[:60], X_new[:200]
        theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.4).fit(X, y)
        components = PrincipalComponents(60, whiten=False, inner=Numbers())
        family = Gaussian(Tied(), regularizer=same_as(X, y, 0.4))
        ours = GenerativeClassifier(families=[("tied", family, every, components)], rule="ml").fit(X, y)
        assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), rtol=1e-6)
        assert ours.parameters_["tied"]["mean"].shape == (2, 59)

    def test_the_order_of_the_columns_has_no_influence(self):
        X, y, X_new, _ = split(sparse_signal)
        order = np.random.default_rng(0).permutation(D)
        one, other = (
            BayesClassifier(families=["tied", "centroids"], cv=FOLDS).fit(x, y) for x in (X, X[:, order])
        )
        assert one.weights_ == pytest.approx(other.weights_, abs=1e-9)
        assert_allclose(one.predict_proba(X_new), other.predict_proba(X_new[:, order]), atol=1e-8)

    def test_names_of_classes_have_no_influence(self):
        X, y, X_new, _ = split(sparse_signal)
        one, other = (
            BayesClassifier(families=["tied", "centroids"], cv=FOLDS).fit(X, labels)
            for labels in (y, np.array(["z", "a"])[y])
        )
        assert_allclose(one.predict_proba(X_new), other.predict_proba(X_new)[:, ::-1], atol=1e-8)

    @pytest.mark.parametrize("sizes", [(1, 1), (5, 1), (2, 2, 2), (9, 3)])
    def test_classes_of_few_rows(self, sizes):
        y = np.repeat(np.arange(len(sizes)), sizes)
        X = np.random.default_rng(0).normal(size=(len(y), 30)) + y[:, None]
        model = BayesClassifier(families=["tied", "centroids"]).fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()

    def test_explanations_and_summary(self):
        X, y, X_new, _ = split(lambda rng, n: sparse_signal(rng, n, 130))
        model = BayesClassifier(families=["tied", "centroids"]).fit(X, y)
        explanation = model.explain(X_new[:2], permutations=4)
        assert explanation.names == ("class prior", *[f"x{j}" for j in range(130)])
        log_posterior = np.sort(model.predict_log_proba(X_new[:2]), axis=1)
        assert_allclose(
            explanation.contributions.sum(axis=1), log_posterior[:, 1] - log_posterior[:, 0], rtol=1e-6
        )
        assert "centroids" in model.summary()
        assert np.isfinite(model.score_samples(X_new[:2])).all()


class TestMemory:
    def test_is_linear_in_the_number_of_columns(self):
        """A (d, d) matrix of 2,000 columns alone has 32 MB."""
        peaks = {d: self.peak(d) for d in (1000, 2000)}
        assert peaks[2000] < 2.5 * peaks[1000]
        assert peaks[2000] < 60e6

    @staticmethod
    def peak(d):
        X, y = sparse_signal(np.random.default_rng(0), 40, d)
        tracemalloc.start()
        try:
            BayesClassifier(families=["near", "tied", "centroids", "full"]).fit(X, y)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def same_as(z, y, shrinkage):
    """The regularizer in the span of the rows that equals (1 - s) W + s mean(variances) I over all columns."""
    means = np.stack([z[y == c].mean(axis=0) for c in (0, 1)])
    n, d = z.shape
    trace = np.sum((z - means[y]) ** 2) / n
    spanned, everywhere = trace / (n - 1), trace / d
    ratio = shrinkage * everywhere / (1 - shrinkage) / spanned
    share = ratio / (1 + ratio)
    return Inflated((1 - shrinkage) / (1 - share), TowardsSphere(share))
