"""Predictions for Dask collections: lazy, partition by partition, equal to those for the same rows in memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from calibayes import (
    BayesClassifier,
    CalibratedTrees,
    ComplementNB,
    GaussianNB,
    JointKernelClassifier,
    LogUnivariateClassifier,
    NaiveBayes,
    TradeOffCV,
)
from calibayes.backends.dask.predictions import BY_CLASS, FLAT
from calibayes.tables.read import dask_kind

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

MODELS = [
    GaussianNB(),
    NaiveBayes(),
    ComplementNB(),
    CalibratedTrees(max_trees=2),
    JointKernelClassifier(),
    LogUnivariateClassifier(C=1.0),
    TradeOffCV(lams=[1.0, 0.5], cv=2),
    BayesClassifier(keep_rows=False, random_state=0),
]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    X, y = iris()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the number of updates does not matter here
        return request.param.fit(X, y)


def iris():
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target].astype(object)


def test_predictions_for_a_data_frame_are_lazy_and_the_same(model):
    for method in (name for name in (*FLAT, *BY_CLASS) if hasattr(model, name)):
        check_frame(model, method)


def check_frame(model, method):
    X, _ = iris()
    known = getattr(model, method)(X)
    lazy = getattr(model, method)(dd.from_pandas(X, npartitions=4))
    assert dask_kind(lazy) == "array"
    assert lazy.dtype == known.dtype
    assert lazy.shape[1:] == known.shape[1:]
    computed = lazy.compute()
    assert computed.dtype == known.dtype
    if method == "predict":
        np.testing.assert_array_equal(computed, known)
    else:
        np.testing.assert_allclose(computed, known, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", [*FLAT, *BY_CLASS])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_for_an_array_are_lazy_and_the_same(method, dtype):
    X, y = iris()
    x = X.to_numpy(dtype=dtype)
    model = GaussianNB(rule="ml").fit(x, y)
    known = getattr(model, method)(x)
    lazy = getattr(model, method)(da.from_array(x, chunks=(40, 3)))
    assert lazy.chunks[0] == (40, 40, 40, 30)
    assert (lazy.dtype, lazy.shape) == (known.dtype, known.shape)
    np.testing.assert_array_equal(lazy.compute(), known)


def test_two_classes_have_one_decision_value_a_row():
    X, y = iris()
    two = y != "setosa"
    model = GaussianNB().fit(X[two], y[two])
    lazy = model.decision_function(dd.from_pandas(X[two], npartitions=2))
    assert lazy.ndim == 1
    np.testing.assert_allclose(lazy.compute(), model.decision_function(X[two]))


def test_a_partition_without_rows_has_no_predictions():
    X, y = iris()
    parts = dd.from_pandas(X, npartitions=3)
    model = GaussianNB().fit(X, y)
    some = parts[parts["petal width (cm)"] > 2]
    np.testing.assert_array_equal(
        model.predict_proba(some).compute(), model.predict_proba(X[X["petal width (cm)"] > 2])
    )


def raising():
    raise AssertionError("the table was computed")


def test_nothing_is_computed_and_the_model_is_one_task():
    X, y = iris()
    model = GaussianNB().fit(X, y)
    parts = dd.from_delayed([dask.delayed(raising)() for _ in range(5)], meta=X[:0], verify_meta=False)
    graph = dict(model.predict_proba(parts).__dask_graph__())
    assert sum("calibayes-model" in str(key) for key in graph) == 1


def test_other_columns_than_those_of_training_are_refused_at_once():
    X, y = iris()
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(dd.from_pandas(X.rename(columns={"petal width (cm)": "width"}), npartitions=2))
    with pytest.raises(ValueError, match="3 features"):
        GaussianNB().fit(X.to_numpy(), y).predict(da.zeros((10, 3)))


def test_methods_that_need_rows_in_memory_say_so():
    X, y = iris()
    with pytest.raises(
        TypeError, match=r"X is a Dask DataFrame, which holds no rows yet.* pass X\.compute\(\)"
    ):
        GaussianNB().fit(X, y).explain(dd.from_pandas(X, npartitions=2))


def test_the_score_of_a_collection_is_that_of_its_rows():
    X, y = iris()
    model = GaussianNB().fit(X, y)
    parts = dd.from_pandas(X.assign(label=y), npartitions=3)
    features = parts.drop(columns="label")
    assert model.score(features, y) == model.score(features, parts["label"]) == model.score(X, y)


@pytest.mark.parametrize("partitions", [1, 2])
def test_predictions_for_a_file_of_any_number_of_partitions(partitions, tmp_path):
    """The tasks that read a file and select its columns can be fused with others, all of them if there is one partition."""
    X, y = iris()
    table = X.assign(label=y)
    for part in range(partitions):
        table.iloc[part::partitions].to_parquet(tmp_path / f"{part}.parquet")
    lazy, model = dd.read_parquet(tmp_path), NaiveBayes(rule="ml").fit(table, y="label")
    assert lazy.npartitions == partitions
    assert model.score(lazy, "label") == model.score(table, "label")
    found = model.predict_proba(lazy.drop(columns="label")).compute()
    expected = np.concatenate([model.predict_proba(X.iloc[part::partitions]) for part in range(partitions)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
