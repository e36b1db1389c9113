"""What all kinds of tables have in common: fit, predictions and scores are those of the table in memory.

A new kind of table needs an entry in `KINDS`.
"""

import re
import runpy
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_iris

from calibayes import GaussianNB, NaiveBayes, QuadraticDiscriminantAnalysis
from calibayes.datasets import load_penguins
from calibayes.model.table_inputs import InMemory, TableInput

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "extend.md"


@pytest.fixture(scope="session")
def query_class(tmp_path_factory):
    """The class of the how-to page, whose rows are those of a query."""
    (code,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
        if "class Query(TableInput)" in block
    ]
    script = tmp_path_factory.mktemp("page") / "query.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script))["Query"]


class Given(NamedTuple):
    """A table as one kind of input: labels for `fit` are in ``y``, columns of ``labeled`` or values; ``rows`` has none."""

    labeled: Any
    y: Any
    rows: Any
    on_host: Callable[[Any], Any] = np.asarray


def as_array(frame, *_):
    values = frame.drop(columns="label").to_numpy()
    return Given(values, frame["label"].to_numpy(), values)


def as_frame(frame, *_):
    return Given(frame, "label", frame.drop(columns="label"))


def as_parquet(frame, folder, _):
    pytest.importorskip("pyarrow")
    path = folder / "table.parquet"
    frame.to_parquet(path, row_group_size=40)
    return Given(path, "label", path)


def as_csv(frame, folder, _):
    path = folder / "table.csv"
    frame.to_csv(path, index=False)
    return Given(str(path), "label", str(path))


def as_dask(frame, *_):
    collections = pytest.importorskip("dask.dataframe")
    lazy = collections.from_pandas(frame, npartitions=3)
    return Given(lazy, "label", lazy.drop(columns="label"), lambda lazily: lazily.compute())


def as_query(frame, _, query_class):
    database = sqlite3.connect(":memory:", check_same_thread=False)
    frame.to_sql("rows", database, index=False)
    query = query_class("select * from rows", connection=database)
    return Given(query, "label", query)


def as_device_array(frame, *_):
    xp = pytest.importorskip("array_api_strict")
    device, host = xp.Device("device1"), xp.Device("CPU_DEVICE")
    values = xp.asarray(frame.drop(columns="label").to_numpy(), device=device)
    labels = xp.asarray(frame["label"].to_numpy(), device=device)
    return Given(values, labels, values, lambda array: np.asarray(xp.asarray(array, device=host)))


KINDS = (as_array, as_frame, as_parquet, as_csv, as_dask, as_query, as_device_array)
"""From a data frame with a column "label", a folder and the class of queries: the table as some kind of input."""
OF_NUMBERS_ONLY = (as_array, as_device_array)


def numbers():
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "label"})
    return iris.rename(columns=lambda name: name.removesuffix(" (cm)").replace(" ", "_"))


def mixed():
    return load_penguins().frame.rename(columns={"species": "label"}).astype({"label": str})


CASES = [
    *((model, numbers, kind) for model in (GaussianNB, QuadraticDiscriminantAnalysis) for kind in KINDS),
    *((NaiveBayes, mixed, kind) for kind in KINDS if kind not in OF_NUMBERS_ONLY),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[2].__name__}")
def case(request, tmp_path, query_class):
    """An estimator, a data frame, and its table as some kind of input."""
    estimator, table, kind = request.param
    frame = table()
    with sklearn.config_context(array_api_dispatch=kind is as_device_array):
        yield estimator(rule="rc", max_iter=8, stop=None), frame, kind(frame, tmp_path, query_class)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_table_gives_the_results_of_the_table_in_memory(case):
    estimator, frame, given = case
    is_array = isinstance(given.y, np.ndarray) or not isinstance(given.y, str)
    features = frame.drop(columns="label")
    known = features.to_numpy() if is_array else features
    expected = sklearn.clone(estimator).fit(known, frame["label"].to_numpy())
    model = sklearn.clone(estimator).fit(given.labeled, given.y)
    for method in ("predict_proba", "predict_log_proba", "score_samples", "decision_function"):
        found = given.on_host(getattr(model, method)(given.rows))
        np.testing.assert_allclose(found, getattr(expected, method)(known), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(given.on_host(model.predict(given.rows)), expected.predict(known))
    assert model.score(given.labeled, given.y) == expected.score(known, frame["label"].to_numpy())
    assert str(model.training_table_) == str(expected.training_table_)


def test_results_that_need_the_training_rows_read_them_again(case):
    estimator, frame, given = case
    if sklearn.get_config()["array_api_dispatch"]:
        with pytest.raises(TypeError, match="cannot read an X on a device"):
            _ = estimator.fit(given.labeled, given.y).held_out_
        return
    model = sklearn.clone(estimator).set_params(rule="ml").fit(given.labeled, given.y)
    assert len(model.held_out_.codes) == len(frame)


class InLists(TableInput):
    """The fewest methods that a kind of table may have."""

    def in_memory(self):
        return InMemory([list(row) for row in self.X], self.y, self.sample_weight)


def test_a_kind_of_table_needs_one_method():
    X, y = load_iris(return_X_y=True)
    weight = np.arange(150) % 3
    model = GaussianNB().fit(InLists(X), y, sample_weight=weight)
    expected = GaussianNB().fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(InLists(X)), expected.predict_proba(X))
    assert model.score(InLists(X), y, weight) == expected.score(X, y, weight)
    with pytest.raises(TypeError, match="rows of a InLists are not in memory"):
        model.drift(InLists(X))


def test_a_kind_of_table_without_rows_in_memory_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match=re.escape("TableInput has no method in_memory()")):
        GaussianNB().fit(TableInput([[0.0], [1.0]]), [0, 1])


def test_a_query_without_rows_is_an_error(query_class):
    database = sqlite3.connect(":memory:")
    pd.DataFrame({"a": [0.0, 1.0, 2.0, 4.0], "label": list("xxyy")}).to_sql("rows", database, index=False)
    model = GaussianNB(rule="ml").fit(query_class("select * from rows", connection=database), "label")
    with pytest.raises(ValueError, match="the table has no rows"):
        model.predict(query_class("select * from rows where a > 9", connection=database))
