"""Names of classes and the order of columns and rows leave predictions alone, for every estimator."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_wine

from tests.contract.test_scikit_learn import ESTIMATORS

pytestmark = pytest.mark.filterwarnings("ignore")
CLASSIFIERS = [estimator for estimator in ESTIMATORS if is_classifier(estimator)]
CLOSED_FORMS = [
    clone(estimator).set_params(rule="ml") for estimator in CLASSIFIERS if "rule" in estimator.get_params()
]
every_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda made: type(made).__name__)
ROUNDING = 1e-6
"""Difference of probabilities by rounding errors that calibration and stopping rules may enlarge."""


def numbers():
    X, y = load_wine(return_X_y=True)
    return X[::2], y[::2]


def counts():
    """Few distinct rows, columns that are permutations of each other, and classes of the same size."""
    rng, y = np.random.default_rng(0), np.arange(90) % 3
    X = rng.poisson(np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5], [3.5, 0.7, 2.0]])[y])
    return np.column_stack([X, rng.permutation(X[:, 0])]).astype(float), y


@pytest.fixture(params=[numbers, counts], ids=lambda table: table.__name__)
def table(request):
    return request.param()


def probabilities(estimator, X, y, labels=None):
    """p(class | x) of the training rows, classes in the order of ``labels``."""
    model = clone(estimator).fit(X, y)
    order = slice(None) if labels is None else np.searchsorted(model.classes_, labels)
    return model.predict_proba(X)[:, order]


@every_classifier
def test_names_of_classes_do_not_matter(estimator, table):
    X, y = table
    names = np.array(["z", "x", "y"])
    assert_allclose(
        probabilities(estimator, X, names[y], names), probabilities(estimator, X, y), atol=ROUNDING
    )


@every_classifier
def test_order_of_columns_does_not_matter(estimator, table):
    X, y = table
    order = np.random.default_rng(1).permutation(X.shape[1])
    assert_allclose(probabilities(estimator, X[:, order], y), probabilities(estimator, X, y), atol=ROUNDING)


@pytest.mark.parametrize("estimator", CLOSED_FORMS, ids=lambda made: type(made).__name__)
def test_order_of_rows_does_not_matter_in_closed_forms(estimator, table):
    X, y = table
    order = np.random.default_rng(2).permutation(len(y))
    expected = probabilities(estimator, X, y)
    assert_allclose(probabilities(estimator, X[order], y[order]), expected[order], atol=1e-9)


WITH_FOLDS = [
    estimator
    for estimator in CLASSIFIERS
    if {"random_state", "cv"} <= estimator.get_params(deep=False).keys()
]


@pytest.mark.parametrize("estimator", WITH_FOLDS, ids=lambda made: type(made).__name__)
def test_another_order_of_rows_changes_no_more_than_another_seed(estimator, table):
    X, y = table
    order = np.random.default_rng(2).permutation(len(y))
    expected = probabilities(estimator, X, y)
    change = np.abs(probabilities(estimator, X[order], y[order]) - expected[order]).max()
    seeds = [clone(estimator).set_params(random_state=seed) for seed in range(1, 6)]
    by_seed = max(np.abs(probabilities(seeded, X, y) - expected).max() for seeded in seeds)
    assert change <= 1.5 * by_seed + ROUNDING
