"""A fit that fails leaves the estimator as it was: its predictions and its fitted attributes."""

import copy
import inspect
import sys
import warnings
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np
import pytest

from tests.contract.test_scikit_learn import ESTIMATORS

OUTPUTS = ("predict", "predict_proba", "decision_function", "transform")
INTERRUPTIONS = 8
ONE_CLASS = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
"""Estimators that accept a single class, as in scikit-learn."""
"""Number of places in a fit at which it is interrupted."""

pytestmark = pytest.mark.filterwarnings("ignore")
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda made: type(made).__name__)


def table(seed):
    rng, y = np.random.default_rng(seed), np.arange(60) % 3
    return rng.poisson(np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5], [3.5, 0.7, 2.0]])[y]).astype(float), y


GOOD, OTHER = table(0), table(1)


@cache
def fitted_once(number):
    return copy.deepcopy(ESTIMATORS[number]).fit(*GOOD)


def fitted(estimator):
    """A fitted model of its own, which holds the same objects as other ones of the estimator."""
    return holding_the_same(fitted_once(ESTIMATORS.index(estimator)))


def holding_the_same(model):
    other = copy.copy(model)
    other.__dict__ = dict(vars(model))
    return other


def outputs(model):
    return {name: np.asarray(getattr(model, name)(GOOD[0])) for name in OUTPUTS if hasattr(model, name)}


def attributes(model):
    """Everything an estimator holds apart from its constructor parameters."""
    given = model.get_params(deep=False)
    return {name: value for name, value in vars(model).items() if name not in given}


def is_same(left, right):
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


@contextmanager
def unchanged(model):
    """Asserts that the block leaves fitted attributes (the very same objects) and outputs unchanged."""
    held, given, expected = attributes(model), model.get_params(deep=False), outputs(model)
    yield
    now = attributes(model)
    assert now.keys() == held.keys()
    assert all(now[name] is held[name] for name in held)
    model.set_params(**given)
    assert is_same(outputs(model), expected)


def infinite(X):
    X = X.copy()
    X[7, 1] = np.inf
    return X


@every_estimator
@pytest.mark.parametrize(
    "bad",
    [
        lambda X, y: (X, np.full(len(y), np.nan)),
        lambda X, y: (infinite(X), y),
        lambda X, y: (X, y[:-1]),
        lambda X, y: (X, y, np.ones(len(y) - 1)),
        lambda X, y: (X, y, -np.ones(len(y))),
    ],
    ids=["no labels", "infinity", "wrong length", "wrong length of weights", "negative weights"],
)
def test_bad_data(estimator, bad):
    model = fitted(estimator)
    with unchanged(model), pytest.raises((ValueError, TypeError)):
        model.fit(*bad(*OTHER))


@pytest.mark.parametrize(
    "estimator",
    [estimator for estimator in ESTIMATORS if type(estimator).__name__ not in ONE_CLASS],
    ids=lambda made: type(made).__name__,
)
def test_one_class(estimator):
    model, (X, y) = fitted(estimator), OTHER
    with unchanged(model), pytest.raises(ValueError, match="class"):
        model.fit(X, np.zeros_like(y))


@every_estimator
def test_bad_parameters(estimator):
    """Each parameter in turn has a value that no parameter accepts; a fit that does not use it may succeed."""
    model, refused = fitted(estimator), []
    for name in estimator.get_params(deep=False):
        tried = holding_the_same(model)
        with unchanged(tried):
            if not fails(tried.set_params(**{name: -9.5})):
                tried.__dict__ = dict(vars(model))
                continue
            refused.append(name)
    assert refused


def fails(model):
    try:
        model.fit(*OTHER)
    except (ValueError, TypeError, AttributeError):
        return True
    return False


def calls_of_fit(model, interrupted_at=None):
    """Number of calls of functions of calibayes in a fit; KeyboardInterrupt is raised in the given one.

    Generators do not count: Python drops an exception that is raised while one is closed.
    """
    count = 0

    def on_event(frame, event, argument):
        nonlocal count
        code = frame.f_code
        if event == "call" and "calibayes" in code.co_filename and not code.co_flags & inspect.CO_GENERATOR:
            count += 1
            if count == interrupted_at:
                raise KeyboardInterrupt

    sys.setprofile(on_event)
    try:
        model.fit(*OTHER)
    finally:
        sys.setprofile(None)
    return count


@every_estimator
def test_interruptions(estimator):
    """After KeyboardInterrupt in a fit the state is the old one, or at its very end the complete new one."""
    old, new = outputs(fitted(estimator)), outputs(copy.deepcopy(estimator).fit(*OTHER))
    total = min(calls_of_fit(fitted(estimator)) for _ in range(2))  # once all caches are filled
    assert not is_same(old, new)
    for place in np.unique(np.linspace(1, total, INTERRUPTIONS).astype(int)):
        model = fitted(estimator)
        held = attributes(model)
        near_end = place >= total - 20  # the number of calls may vary by a few
        with suppress(KeyboardInterrupt) if near_end else pytest.raises(KeyboardInterrupt):
            calls_of_fit(model, place)
        now = outputs(model)
        if not near_end:
            assert attributes(model) == held
            assert is_same(now, old)
        assert is_same(now, old) or is_same(now, new)


@every_estimator
def test_warnings_that_are_errors(estimator):
    """Rows with a constant column and a class of one row make some estimators warn."""
    X, y = OTHER[0].copy(), np.where(np.arange(60) == 0, 2, OTHER[1] % 2)
    X[:, 2] = 3.0
    model = fitted(estimator)
    tried = holding_the_same(model)
    with unchanged(tried), warnings.catch_warnings(action="error"):
        try:
            tried.fit(X, y)
        except (Warning, ValueError):
            return
        tried.__dict__ = dict(vars(model))
