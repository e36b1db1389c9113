"""Decisions from posteriors: costs, thresholds, abstention, prior shift, temperature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import calibayes as cb
from calibayes.datasets import load_file
from calibayes.learn import NoGain
from tests.contract.tables import table
from tests.contract.test_scikit_learn import ITERATIVE

EVERY = pytest.mark.parametrize("estimator", ITERATIVE, ids=lambda estimator: type(estimator).__name__)


class TestDecisions:
    def test_costs_shift_the_decision(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        posterior, costs = model.predict_proba(X), np.array([[0, 1, 1], [9, 0, 1], [1, 1, 0.0]])
        expected = model.classes_[np.argmin(posterior @ costs, axis=1)]
        assert_array_equal(model.decide(X, costs=costs).data, expected)
        assert_array_equal(model.set_params(costs=costs).predict(X), expected)
        even = 1 - np.eye(3)
        assert_array_equal(model.decide(X, costs=even).data, model.set_params(costs=None).predict(X))

    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            (np.ones((2, 3)), "3 classes by 3 decisions"),
            (-np.ones((3, 3)), "not negative"),
            (np.full((3, 3), np.nan), "finite"),
            (np.eye(3), "must not cost less than the right one"),
        ],
    )
    def test_bad_costs(self, costs, message):
        X, y = table()
        with pytest.raises(ValueError, match=message):
            cb.GaussianNB(rule="ml").fit(X, y).decide(X, costs=costs)

    def test_abstaining_is_a_mask_and_never_a_label(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        decided = model.decide(X, least_posterior=0.6)
        assert_array_equal(decided.mask, model.predict_proba(X).max(axis=1) < 0.6)
        assert set(decided.compressed()) <= set(model.classes_)
        assert np.mean(decided.compressed() == y[~decided.mask]) > model.score(X, y)

    def test_outliers_are_abstained_from_as_often_as_asked(self):
        X, y = table(2000)
        model = cb.GaussianNB(rule="ml").fit(X[:1000], y[:1000])
        threshold = model.outlier_threshold(X[1000:1500], share=0.05)
        assert np.mean(model.decide(X[1500:], least_density=threshold).mask) == pytest.approx(0.05, abs=0.03)
        assert model.decide(X[:1] + 100, least_density=threshold).mask.all()
        assert model.outlier_threshold(X[:10], share=0.05) == -np.inf

    def test_thresholds(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        assert np.mean(model.decide(X, thresholds=[0.1, 1.0, 1.0]).data == "x") > np.mean(
            model.predict(X) == "x"
        )
        with pytest.raises(ValueError, match="3 positive numbers"):
            model.decide(X, thresholds=[1.0, 0.0, 1.0])

    @EVERY
    def test_shifted_priors(self, estimator):
        X, y = table()
        model = clone(estimator).set_params(rule="ml").fit(X, y)
        shifted = model.with_priors([0.98, 0.01, 0.01])
        ratio = np.array([0.98, 0.01, 0.01]) / np.exp(model.parameters_["class_prior"]["log_probability"])
        expected = model.predict_proba(X) * ratio
        assert_allclose(shifted.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)

    def test_temperature_is_found_on_held_out_rows(self):
        X, y = table(600)
        options = {"random_state": 0, "max_iter": 64, "rule": "ml"}
        plain_training, auto = (
            cb.TrainingOptions(validation_fraction=0.3, refit=False, temperature=temperature)
            for temperature in (1.0, "auto")
        )
        wide = np.repeat(X, 8, axis=1)  # the same column eight times: naive Bayes is far too sure
        plain = cb.GaussianNB(training=plain_training, **options).fit(wide, y)
        model = cb.GaussianNB(training=auto, **options).fit(wide, y)
        assert model.temperature_ > 2
        fresh, labels = table(600, seed=0)[0][:50], table(600, seed=0)[1][:50]
        codes = np.searchsorted(model.classes_, labels)
        losses = [
            -m.predict_log_proba(np.repeat(fresh, 8, axis=1))[np.arange(50), codes].mean()
            for m in (model, plain)
        ]
        assert losses[0] < losses[1]
        with pytest.raises(ValueError, match="needs held-out rows: set validation_fraction"):
            cb.GaussianNB(training=cb.TrainingOptions(temperature="auto")).fit(X, y)

    def test_costs_pay_on_held_out_rows(self, data_file):
        """Missing an illness costs five times as much as a false alarm."""
        data = load_file(data_file("indian-liver"), "target")
        codes = np.unique(data.target, return_inverse=True)[1]
        costs = np.array([[0.0, 5.0], [1.0, 0.0]])
        spent = {"plain": 0.0, "costs": 0.0}
        for _, test in StratifiedKFold(5, shuffle=True, random_state=0).split(codes, codes):
            held = np.isin(np.arange(len(codes)), test)
            model = cb.NaiveBayes(stop=NoGain(1e-3)).fit(data.data[~held], codes[~held])
            rows = data.data[held]
            for name, decided in (
                ("plain", model.predict(rows)),
                ("costs", model.decide(rows, costs=costs).data),
            ):
                spent[name] += costs[codes[held], decided].sum()
        assert spent["costs"] < spent["plain"]
