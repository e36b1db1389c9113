"""A call answers from one fitted state, also if another thread fits the estimator while it runs."""

import inspect
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import calibayes
from calibayes.model.parameters import adopt
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.seeds import generator

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning"),
    pytest.mark.filterwarnings("ignore::calibayes.FewRowsWarning"),
]
ROOT = str(Path(calibayes.__file__).parent)
CHANGING = {"fit", "partial_fit", "fit_transform", "verify"}
"""Methods that train, or check what another process has written."""


def rows_of(k):
    """Counts in four columns, for as many classes."""
    rng, y = np.random.default_rng(k), np.arange(30) % k
    return rng.poisson(1 + np.stack([y, k - y, y % 2, 0 * y], axis=1)).astype(float), y


NEW = rows_of(5)[0][:7]


def methods_of(model):
    """Public methods that need rows alone and do not train."""
    found = []
    for name in dir(model):
        if name.startswith("_") or name in CHANGING or not callable(method := getattr(model, name)):
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        if needed == ["X"]:
            found.append(name)
    return found


def answer(model, name):
    """A digest of what a method returns, or its exception."""
    try:
        result = getattr(model, name)(NEW)
    except (ValueError, TypeError, AttributeError) as error:
        return repr(error)
    if isinstance(result, np.ma.MaskedArray):
        result = result.data, result.mask
    try:
        return joblib.hash(result)
    except pickle.PicklingError:  # marginals hold functions
        return joblib.hash((result.names, result.prior))


def interrupted(model, state, place, call):
    """The answer of a call at whose function call number ``place`` the estimator gets another fit, and how many there are."""
    calls = 0

    def note(frame, event, _):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            calls += 1
            if calls == place:
                adopt(model, state)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return call(), calls
    finally:
        sys.setprofile(before)


def some_of(calls, rng):
    """Numbers of calls: the first ones, where attributes are read, and some of the later ones."""
    return sorted({*range(1, min(calls, 2) + 1), *rng.integers(1, calls, 3, endpoint=True).tolist()})


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_a_fit_in_the_middle_of_a_call_leaves_no_trace(estimator):
    first, second = (clone(estimator).fit(*rows_of(k)) for k in (2, 5))
    model, mixed, rng = clone(estimator), [], generator(0)
    for name in methods_of(first):
        expected = {answer(fitted, name) for fitted in (first, second)}

        def call(name=name):
            return answer(adopt(model, vars(first)), name)

        _, calls = interrupted(model, vars(first), 0, call)
        for place in some_of(calls, rng):
            if interrupted(model, vars(second), place, call)[0] not in expected:
                mixed.append((name, place))
    assert mixed == []


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_predictions_while_another_thread_fits(estimator):
    tables = [rows_of(k) for k in (2, 5)]
    expected = {answer(clone(estimator).fit(*table), "predict") for table in tables}
    model, is_over = clone(estimator).fit(*tables[0]), threading.Event()

    def fit_until_it_is_over():
        while not is_over.is_set():
            for table in tables:
                model.fit(*table)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(1) as pool:
            fits = pool.submit(fit_until_it_is_over)
            answers = {answer(model, "predict") for _ in range(20)}
            is_over.set()
            fits.result()
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
    assert answers <= expected
