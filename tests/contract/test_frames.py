"""Data frames of any kind: text coded by Arrow or cell by cell, and columns whose names are no strings."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

import calibayes as cb
from calibayes.report import report_on_model
from calibayes.tables import read
from calibayes.tables.read import read_frame
from calibayes.tables.table import CodedColumn, distinct_values

N = 120
MIXED = [cb.NaiveBayes(), cb.TreeAugmentedNB(), cb.BayesClassifier(random_state=0), cb.CalibratedTrees()]
TYPES = {
    "text": lambda column: column,
    "objects": lambda column: column.astype(object),
    "levels": lambda column: column.astype("category"),
    "polars": lambda column: column,
}


def mixed_rows(kind="text"):
    """Text with missing cells and odd characters, text without a known cell, dates as text, numbers."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    words = np.array(["b", "a", "", 'ä, \n"', "a "], dtype=object)
    frame = pd.DataFrame(
        {
            "word": words[(rng.integers(0, 4, N) + y) % 5],
            "number": rng.normal(size=N) + y,
            "unknown": pd.Series([None] * N, dtype="str"),
            "day": (pd.Timestamp("2024-01-31") + pd.to_timedelta(rng.integers(0, 90, N), unit="D")).strftime(
                "%Y-%m-%d"
            ),
        }
    )
    frame.loc[::7, "word"] = None
    texts = ["word", "day"]
    frame[texts] = frame[texts].apply(TYPES[kind])
    return (pl.from_pandas(frame) if kind == "polars" else frame), np.where(y, "yes", "no")


@pytest.mark.parametrize("kind", TYPES)
def test_coded_columns_have_the_same_cells(kind, monkeypatch):
    frame, _ = mixed_rows(kind)
    tables = []
    for least in (1, 10 * N):
        monkeypatch.setattr(read, "LEAST_CODED", least)
        tables.append(read_frame(frame))
    coded, plain = tables
    assert isinstance(coded.stored_column(0), CodedColumn)
    assert not isinstance(plain.stored_column(0), CodedColumn)
    for j in range(4):
        assert coded.dtype_kind(j) == plain.dtype_kind(j)
        assert_array_equal(coded.missing_mask(j), plain.missing_mask(j))
        for one, other in zip(distinct_values(coded, j), distinct_values(plain, j), strict=True):
            assert_array_equal(one, other)


def test_text_that_arrow_does_not_hold_is_read_cell_by_cell(monkeypatch):
    monkeypatch.setattr(read, "LEAST_CODED", 1)
    frame = pd.DataFrame({"word": pd.Series(["a", "\ud800", None], dtype=object)})
    assert read_frame(frame).column(0).tolist() == ["a", "\ud800", None]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("estimator", MIXED, ids=lambda e: type(e).__name__)
def test_models_are_the_same_whether_text_is_coded_or_not(estimator, kind, monkeypatch):
    X, y = mixed_rows(kind)
    X = X[["word", "number", "day"]]
    results = []
    for least in (1, 10 * N):
        monkeypatch.setattr(read, "LEAST_CODED", least)
        model = clone(estimator).fit(X, y)
        explained = model.explain(X[:10], random_state=0).contributions
        results.append([model.predict_proba(X), explained, str(model.training_table_), str(model.schema_)])
        if hasattr(model, "fill"):
            results[-1].append(np.asarray(model.fill(X[:20]), dtype=object).astype(str))
    for one, other in zip(*results, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("labels", [[0, 1, 2], [(0, "a"), (0, "b"), (1, "a")]], ids=["integers", "tuples"])
@pytest.mark.parametrize(
    "estimator", [cb.NaiveBayes(), cb.LinearDiscriminantAnalysis(), cb.BayesClassifier()]
)
def test_names_that_are_no_strings(estimator, labels):
    rng, y = np.random.default_rng(0), np.arange(N) % 2
    X = pd.DataFrame(rng.normal(size=(N, 3)) + y[:, None])
    X.columns = pd.Index(labels, tupleize_cols=False)
    model = clone(estimator).fit(X, y)
    assert model.with_held_out(X, y).predict_set(X).shape == (N, 2)
    assert len(model.drift(X).columns) == 3
    assert len(model.surprise(X).p_value) == N
    assert len(model.label_issues(X, y)) == N
    assert model.adapt_priors(X).adapted_priors_.sum() == pytest.approx(1.0)
    assert report_on_model(model, X, y).facts.quality.rows == N


ODD_INDEX = [
    pd.Index(np.random.default_rng(1).permutation(1000)[:N], name="patient"),
    pd.Index([f"row {j % 7}" for j in range(N)]),  # not unique
    pd.MultiIndex.from_product([range(N // 4), list("abcd")]),
    pd.date_range("2024-01-01", periods=N),
]


@pytest.mark.parametrize("index", ODD_INDEX, ids=lambda index: type(index).__name__)
def test_rows_of_results_keep_the_index_of_a_data_frame(index):
    frame, y = mixed_rows()
    X = frame.drop(columns="unknown")
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    rows, chosen = X.set_axis(index, axis=0), np.array([90, 7, 44])
    explained = model.explain(rows.iloc[chosen])
    pd.testing.assert_index_equal(explained.frame().index, index[chosen])
    pd.testing.assert_frame_equal(
        explained.frame().reset_index(drop=True), model.explain(X.iloc[chosen]).frame().reset_index(drop=True)
    )
    surprising = model.surprise(rows)
    pd.testing.assert_index_equal(surprising.frame().index, index)
    assert_array_equal(surprising.frame()["p_value"], surprising.p_value)
    first = surprising.most_surprising(1)[0]
    assert f"row {index[first]}: p = " in str(surprising)
    issues = model.label_issues(rows, y)
    pd.testing.assert_index_equal(issues.index, index[issues.row])
    pd.testing.assert_frame_equal(
        issues.reset_index(drop=True), model.label_issues(X, y).reset_index(drop=True)
    )
    left_out = model.label_issues(rows, y, (np.arange(N) > 5).astype(float))
    pd.testing.assert_index_equal(left_out.index, index[left_out.row])


def test_rows_without_an_index_are_numbered_from_0():
    frame, y = mixed_rows("polars")
    X = frame.drop("unknown")
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    assert model.explain(X[:3]).frame().index.tolist() == [0, 1, 2]
    assert model.explain(X[:3]).frame("polars").shape[0] == 3
    assert model.label_issues(X, y).index.tolist() == list(range(N))
    surprising = model.surprise(X)
    assert f"row {surprising.most_surprising(1)[0]}: p = " in str(surprising)


NAMES = {
    "numbers": range,
    "tuples": lambda d: pd.MultiIndex.from_product([["all"], range(d)]),
    "dates": lambda d: pd.date_range("2024-01-01", periods=d),
    "several types": lambda d: [None, 1.5, *range(d - 2)],
}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("estimator", [cb.NaiveBayes(rule="ml"), cb.TreeAugmentedNB(rule="ml")])
def test_names_of_columns_change_nothing(names, estimator):
    """Columns of every type, some with missing cells."""
    rng, y = np.random.default_rng(0), np.arange(N) % 2
    dates = pd.Series(pd.Timestamp("2024-01-31 10:00") + pd.to_timedelta(rng.integers(0, 999, N), unit="h"))
    columns = [
        pd.Series(rng.normal(size=N) + y),
        dates,
        dates.dt.tz_localize("America/New_York", nonexistent="shift_forward", ambiguous=True),
        dates.dt.tz_localize("Europe/Berlin", nonexistent="shift_forward", ambiguous=True),
        dates.dt.date,
        dates - dates[0],
        pd.Series(rng.choice(["a", "b", "c"], N)),
        pd.Series(rng.choice(["a", "b"], N)).astype("category"),
        pd.Series(rng.random(N) < 0.5),
    ]
    for column in columns[:5]:
        column[rng.random(N) < 0.2] = None
    named = pd.DataFrame({f"column {j}": column for j, column in enumerate(columns)})
    other = named.set_axis(NAMES[names](len(columns)), axis=1)
    expected = clone(estimator).fit(named, y).predict_proba(named)
    assert_array_equal(clone(estimator).fit(other, y).predict_proba(other), expected)
