"""Tables, labels and weights that `fit` accepts."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import calibayes as cb
from tests.contract.tables import table


def test_float32_columns_are_summed_in_float64():
    X, y = table()
    wide = cb.GaussianNB(rule="ml").fit(X.astype(np.float32).astype(np.float64), y)
    narrow = cb.GaussianNB(rule="ml").fit(X.astype(np.float32), y)
    for name, value in narrow.data_statistics_["columns"].items():
        assert value.dtype == np.float64
        assert_allclose(value, wide.data_statistics_["columns"][name], rtol=1e-12)
    assert narrow.theta_.dtype == np.float32
    assert_allclose(narrow.theta_, wide.theta_, rtol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [cb.GaussianNB, cb.LinearDiscriminantAnalysis, cb.QuadraticDiscriminantAnalysis],
)
def test_probabilities_are_float32_if_all_rows_are(estimator):
    X, y = table()
    single = estimator(rule="ml").fit(X.astype(np.float32), y)
    double = estimator(rule="ml").fit(X, y)
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert single.predict_log_proba(pd.DataFrame(X.astype(np.float32)).to_numpy()).dtype == np.float32
    assert_allclose(single.predict_proba(X.astype(np.float32)), double.predict_proba(X), atol=1e-4)
    for model, rows in ((single, X), (double, X.astype(np.float32)), (double, X)):
        assert model.predict_proba(rows).dtype == np.float64


def test_counts_in_float32_have_probabilities_in_float64():
    X, y = table()
    counts = np.abs(np.round(X)).astype(np.float32)
    assert cb.MultinomialNB(rule="ml").fit(counts, y).predict_proba(counts).dtype == np.float64


def test_minus_one_is_an_ordinary_label():
    X, y = load_iris(return_X_y=True)
    assert cb.GaussianNB().fit(X, y - 1).classes_.tolist() == [-1, 0, 1]


def test_class_weight_is_sample_weight():
    X, y = table()
    weighted = cb.GaussianNB(rule="ml", class_weight={"x": 2.0, "y": 1.0, "z": 1.0}).fit(X, y)
    by_row = cb.GaussianNB(rule="ml").fit(X, y, sample_weight=np.where(y == "x", 2.0, 1.0))
    assert_array_equal(weighted.predict_proba(X), by_row.predict_proba(X))


def test_unlabeled_rows_have_no_class_weight():
    X, y = table()
    labels = np.where(np.arange(400) % 3 == 0, None, y)
    by_class = cb.GaussianNB(rule="em", class_weight={"x": 1.0, "y": 1.0, "z": 5.0}).fit(X, labels)
    by_row = cb.GaussianNB(rule="em").fit(X, labels, sample_weight=np.where(labels == "z", 5.0, 1.0))
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


def test_balanced_classes_count_weighted_rows():
    X, y = table()
    weight = np.where((y == "x") & (np.arange(400) % 3 > 0), 0.0, 1.0)
    model = cb.GaussianNB(rule="ml", class_weight="balanced").fit(X, y, weight)
    assert_allclose(model.class_prior_, 1 / 3)
    with pytest.raises(ValueError, match="needs all rows at once"):
        cb.GaussianNB(class_weight="balanced").partial_fit(X, y, classes=["x", "y", "z"])


def test_rows_as_lists_keep_their_types():
    rows = [["a", 1.5, 1], ["b", 2.5, 0], ["a", 3.5, 1], ["b", 0.5, 0]] * 5
    model = cb.NaiveBayes(rule="ml").fit(rows, [0, 1, 0, 1] * 5)
    assert model.fitted_.binding.chosen == {"kernel": (1, 2), "categorical": (0,)}


def test_declared_categories_are_levels():
    frame = pd.DataFrame({"a": pd.Categorical(np.arange(120) % 12), "b": np.arange(120) % 7})
    model = cb.NaiveBayes(rule="ml").fit(frame, np.arange(120) % 2)
    assert model.fitted_.binding.chosen == {"kernel": (1,), "categorical": (0,)}


def test_targets_keep_their_type():
    X, y = table()
    codes = np.searchsorted(["x", "y", "z"], y)
    assert cb.GaussianNB().fit(X, pd.Series(codes + 2**60, dtype="Int64")).classes_.dtype.kind == "i"
    assert cb.GaussianNB().fit(X, pd.Series(codes > 0, dtype="boolean")).classes_.dtype.kind == "b"


def test_lazy_frames_are_read_and_must_be_collected_for_methods_that_need_all_rows():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
    model = cb.GaussianNB(rule="ml").fit(frame, [0, 1, 0, 1])
    lazy = cb.GaussianNB(rule="ml").fit(frame.lazy(), [0, 1, 0, 1])
    assert_array_equal(lazy.predict_proba(frame.lazy()), model.predict_proba(frame))
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        model.fill(frame.lazy())
