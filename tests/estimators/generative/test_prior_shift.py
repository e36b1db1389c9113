"""Adjustment of a model to other class frequencies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import calibayes as cb
from tests.contract.tables import table
from tests.contract.test_scikit_learn import ITERATIVE

EVERY = pytest.mark.parametrize("estimator", ITERATIVE, ids=lambda estimator: type(estimator).__name__)


class TestShiftedPriors:
    @EVERY
    def test_the_frequencies_of_training_change_nothing(self, estimator):
        X, y = table()
        model = clone(estimator).set_params(max_iter=10, stop=None).fit(X, y)
        shares = np.array([np.mean(y == label) for label in model.classes_])
        assert_allclose(model.with_priors(shares).predict_proba(X), model.predict_proba(X), atol=1e-9)

    def test_temperature_does_not_weaken_the_shift(self):
        X, y = table()
        model = cb.GaussianNB(rule="ml", training=cb.TrainingOptions(temperature=3.0)).fit(X, y)
        shares = np.array([np.mean(y == label) for label in model.classes_])
        new = np.array([0.8, 0.1, 0.1])
        moved = model.with_priors(new).predict_log_proba(X) - model.predict_log_proba(X)
        expected = np.log(new / shares)
        assert_allclose(moved[:, 0] - moved[:, 1], expected[0] - expected[1], atol=1e-9)

    def test_a_shifted_model_is_for_predicting(self):
        X, y = table()
        shifted = cb.GaussianNB(rule="ml").fit(X, y).with_priors([0.8, 0.1, 0.1])
        for call in (
            lambda: shifted.merge(shifted),
            lambda: shifted.forget(X[:2], y[:2]),
            lambda: shifted.partial_fit(X, y),
            lambda: shifted.with_priors([0.2, 0.4, 0.4]),
        ):
            with pytest.raises(ValueError, match="class priors of this model were replaced"):
                call()
        assert shifted.fitted_.has_shifted_priors
        assert not shifted.fit(X, y).fitted_.has_shifted_priors


@pytest.mark.parametrize("estimator", [cb.GaussianNB(rule="ml"), cb.BayesClassifier()])
def test_priors_may_be_given_by_class(estimator):
    X, y = table()
    model = clone(estimator).fit(X, y)
    expected = model.with_priors([0.7, 0.2, 0.1]).predict_proba(X)
    assert_allclose(model.with_priors({"z": 0.1, "x": 0.7, "y": 0.2}).predict_proba(X), expected)
    with pytest.raises(ValueError, match=r"priors has no entry for class 'z'; the classes are 'x', 'y', 'z'"):
        model.with_priors({"x": 0.7, "y": 0.3})
    with pytest.raises(ValueError, match=r"priors names 'w', which is not among the classes 'x', 'y', 'z'"):
        model.with_priors({"x": 0.7, "y": 0.2, "z": 0.0, "w": 0.1})
