"""`training_table_` of every estimator, and that updates, merged models and removed rows keep it true."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import calibayes as cb
from calibayes.tables.table import TrainingTable
from tests.contract.test_scikit_learn import ESTIMATORS, GENERATIVE, nothing_hidden

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N, NAMES = 60, ("a", "b", "c")
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_sum_of_rows = pytest.mark.parametrize(
    "estimator", [clone(e).set_params(rule="ml") for e in GENERATIVE], ids=lambda e: type(e).__name__
)


def rows(seed=0):
    rng, y = np.random.default_rng(seed), np.arange(N) % 3
    return rng.poisson(np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5], [3.5, 0.7, 2.0]])[y]).astype(float), y


def record(n, missing=(0, 0, 0), names=("x0", "x1", "x2"), labeled=None):
    return TrainingTable(n, n if labeled is None else labeled, names, ("float64",) * 3, missing)


@every_estimator
def test_every_fitted_estimator_has_one(estimator):
    X, y = rows()
    model = clone(estimator)
    assert not hasattr(model, "training_table_")
    assert model.fit(X, y).training_table_ == record(N)
    model.training_table_.verify()
    weight = np.where(np.arange(N) < 15, 0.0, 1.0)
    named = model.fit(pd.DataFrame(X, columns=NAMES), y, sample_weight=weight)
    assert named.training_table_ == record(45, names=NAMES)
    assert pickle.loads(pickle.dumps(named)).training_table_ == named.training_table_
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        named.fit(X, y[1:])
    assert named.training_table_ == record(45, names=NAMES)


@pytest.mark.parametrize(
    "name", ["GaussianNB", "NaiveBayes", "TreeAugmentedNB", "BayesClassifier", "TradeOffCV"]
)
def test_missing_cells_are_counted(name):
    X, y = rows()
    X[:4, 0] = X[7, 2] = np.nan
    model = getattr(cb, name)().fit(X, y)
    assert model.training_table_ == record(N, (4, 0, 1))
    assert "training table: 60 rows, 3 columns, 5 missing cells" in model.summary().splitlines()


def test_rows_of_class_weight_zero_are_not_counted():
    X, y = rows()
    X[y == 2, 1] = np.nan
    model = cb.GaussianNB(class_weight={2: 0.0}, training=cb.TrainingOptions(), rule="ml")
    assert model.partial_fit(X, y, classes=[0, 1, 2]).training_table_ == record(40)


def test_rows_without_a_label_are_counted_apart():
    X, y = rows()
    labels = np.where(np.arange(N) % 4 == 0, None, y.astype(object))
    model = cb.GaussianNB(rule="em").fit(X, labels)
    assert model.training_table_ == record(N, labeled=45)
    assert "training table: 60 rows (45 with a label), 3 columns, 0 missing cells" in model.summary()


@every_sum_of_rows
def test_partial_fit_and_merge_add_and_forget_subtracts(estimator):
    estimator = nothing_hidden(clone(estimator))
    X, y = rows()
    first = clone(estimator).partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    before = first.training_table_
    assert before == record(40)
    both = copy.deepcopy(first).partial_fit(X[40:], y[40:])
    assert both.training_table_ == record(N)
    if estimator.fit(X, y).fitted_.is_additive:
        left = both.forget(X[:10], y[:10])
        assert (left.training_table_, both.training_table_) == (record(50), record(N))
        merged = clone(estimator).fit(X, y).merge(clone(estimator).fit(X, y))
        assert merged.training_table_ == record(2 * N)
    with pytest.raises(ValueError, match="classes"):
        first.partial_fit(X, y, classes=[0, 1])
    assert first.training_table_ is before


def test_missing_cells_of_updates_are_added():
    X, y = rows()
    X[[0, 1, 50], 1] = np.nan
    model = cb.GaussianNB(rule="ml").partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    assert model.training_table_ == record(40, (0, 2, 0))
    model.partial_fit(X[40:], y[40:])
    assert model.training_table_ == record(N, (0, 3, 0))
    assert model.merge(model).training_table_ == record(2 * N, (0, 6, 0))
    left = model.forget(X[:1], y[:1])
    assert left.training_table_ == record(N - 1, (0, 2, 0))
    assert left.with_priors([0.5, 0.25, 0.25]).training_table_ == left.training_table_


def test_a_row_removed_in_parts_leaves_a_valid_record():
    X, y = rows()
    model = cb.GaussianNB(rule="ml").fit(X[:9], y[:9], sample_weight=np.full(9, 2.0))
    for _ in range(2):
        model = model.forget(X[:6], y[:6])
    model.training_table_.verify()
    assert model.training_table_ == record(0)


def test_members_of_an_ensemble_have_their_own():
    X, y = rows()
    weight = np.where(np.arange(N) < 30, 3.0, 1.0)
    model = cb.BayesClassifier().fit(X, y, sample_weight=weight)
    assert model.models_
    for member in (*model.models_.values(), model.density_):
        assert member.training_table_ == record(N)
    assert model.with_priors([0.5, 0.25, 0.25]).training_table_ == record(N)
