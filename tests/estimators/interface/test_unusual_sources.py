"""Unusual files, labels and weights: the same as in memory, or an error that says what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

import calibayes as cb

N = 90
NUMBERS = ["length", "width"]


@pytest.fixture
def frame() -> pd.DataFrame:
    """Two numbers, labels and weights."""
    rng = np.random.default_rng(3)
    y = np.arange(N) % 3
    return pd.DataFrame(
        {"length": rng.normal(size=N) + y, "width": rng.normal(size=N), "target": y, "weight": rng.random(N)}
    )


@pytest.fixture
def model(frame: pd.DataFrame) -> cb.GaussianNB:
    return cb.GaussianNB(rule="ml").fit(frame[NUMBERS], frame["target"])


def saved(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "table.parquet", row_group_size=40)
    return folder / "table.parquet"


@pytest.mark.parametrize("name", [None, "row"])
def test_the_index_of_a_data_frame_in_a_file_is_no_feature(
    frame: pd.DataFrame, name: str | None, tmp_path: Path
) -> None:
    shuffled = frame.drop(columns="weight").sample(frac=1, random_state=0).rename_axis(name)
    path = saved(shuffled, tmp_path)
    found = cb.GaussianNB(rule="ml").fit(path, y="target")
    expected = cb.GaussianNB(rule="ml").fit(shuffled, y="target")
    assert found.feature_names_in_.tolist() == NUMBERS
    assert_array_equal(found.predict_proba(path), expected.predict_proba(shuffled[NUMBERS]))


def test_the_number_of_missing_labels_is_that_of_all_rows(frame: pd.DataFrame, tmp_path: Path) -> None:
    labels = frame["target"].map({0: "a", 1: "b", 2: "c"}).mask(np.arange(N) % 10 == 0)
    with pytest.raises(ValueError, match=r"missing labels \(9 rows\)"):
        cb.GaussianNB().fit(saved(frame.assign(target=labels), tmp_path), y="target")


def test_labels_in_a_column_of_a_data_frame_are_those_of_a_series(
    frame: pd.DataFrame, model: cb.GaussianNB, tmp_path: Path
) -> None:
    path = saved(frame[NUMBERS], tmp_path)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        found = cb.GaussianNB(rule="ml").fit(path, frame[["target"]])
    assert_array_equal(found.predict_proba(path), model.predict_proba(path))


def test_one_weight_for_all_rows_is_that_of_each(frame: pd.DataFrame, tmp_path: Path) -> None:
    X, path = frame[NUMBERS], saved(frame[NUMBERS], tmp_path)
    found = cb.NaiveBayes().fit(path, frame["target"], sample_weight=2.0)
    expected = cb.NaiveBayes().fit(X, frame["target"], sample_weight=2.0)
    assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_lazy_labels_of_a_file_are_computed(
    frame: pd.DataFrame, model: cb.GaussianNB, tmp_path: Path
) -> None:
    path = saved(frame[NUMBERS], tmp_path)
    lazy = dd.from_pandas(frame["target"].set_axis(np.arange(N) + 7), npartitions=2)
    assert_array_equal(
        cb.GaussianNB(rule="ml").fit(path, lazy).predict_proba(path), model.predict_proba(path)
    )


@pytest.mark.parametrize("y", [3, ["target", "weight"], np.zeros((N, 2))], ids=["number", "names", "matrix"])
def test_labels_that_are_neither_a_name_nor_an_array_are_refused(
    frame: pd.DataFrame, y: Any, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"name of a column|2 values in the labels|1d array"):
        cb.GaussianNB().fit(saved(frame, tmp_path), y=y)


def test_a_name_of_labels_needs_names_of_columns(frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="the columns of a ndarray have no names"):
        cb.GaussianNB().fit(frame.to_numpy(), y="target")


def test_labels_with_several_values_in_a_cell_are_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    nested = frame.assign(target=[[label] for label in frame["target"]])
    with pytest.raises(TypeError, match="'target' holds several values in a cell"):
        cb.GaussianNB().fit(saved(nested, tmp_path), y="target")


def test_a_query_without_an_order_is_found_out_also_with_labels_in_memory(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    query = duckdb.sql(f"select length, width from '{saved(frame, tmp_path)}' order by random()")
    with pytest.raises(ValueError, match="add an ORDER BY"):
        cb.GaussianNB().fit(query, frame["target"])


def test_kinds_of_columns_are_found_in_all_csv_files(frame: pd.DataFrame, tmp_path: Path) -> None:
    mixed = frame.assign(color=np.where(frame["length"] > 0, "red", "blue")).drop(columns="weight")
    mixed.iloc[:0].to_csv(tmp_path / "0.csv", index=False)
    mixed.iloc[:40].assign(color=None).to_csv(tmp_path / "1.csv", index=False)
    mixed.iloc[40:].to_csv(tmp_path / "2.csv", index=False)
    found = cb.NaiveBayes(rule="ml").fit(str(tmp_path / "*.csv"), y="target")
    expected = cb.NaiveBayes(rule="ml").fit(
        mixed.assign(color=mixed["color"].mask(np.arange(N) < 40)), y="target"
    )
    rows = mixed.drop(columns="target")
    assert_array_equal(found.predict_proba(rows), expected.predict_proba(rows))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # of scikit-learn
@pytest.mark.parametrize("kind", ["file", "memory"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: None, "requires y"),
        (lambda y: y.where(y > 0), "NaN"),
        (lambda y: y.astype(str), "Mix of label"),
    ],
    ids=["none", "missing", "text"],
)
def test_labels_that_cannot_be_compared_have_no_score(
    frame: pd.DataFrame, model: cb.GaussianNB, kind: str, change: Any, message: str, tmp_path: Path
) -> None:
    X = saved(frame[NUMBERS], tmp_path) if kind == "file" else frame[NUMBERS]
    with pytest.raises(ValueError, match=message):
        model.score(X, change(frame["target"]))


def test_scores_of_dask_collections_take_names(frame: pd.DataFrame, model: cb.GaussianNB) -> None:
    lazy = dd.from_pandas(frame, npartitions=3)
    rows, labels, weight = frame[NUMBERS], frame["target"], frame["weight"]
    assert model.score(lazy, "target", "weight") == pytest.approx(model.score(rows, labels, weight))
    assert model.score(lazy.drop(columns="weight"), "target") == model.score(rows, labels)
    with pytest.raises(ValueError, match="no column 'nothing'"):
        model.score(lazy, "nothing")


def test_methods_that_need_rows_in_memory_say_so(
    frame: pd.DataFrame, model: cb.GaussianNB, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="pass a data frame or array"):
        model.explain(saved(frame, tmp_path))


def test_columns_that_a_model_does_not_know_may_hold_anything(
    frame: pd.DataFrame, model: cb.GaussianNB, tmp_path: Path
) -> None:
    wide = frame.assign(tags=[["a", "b"]] * N)
    assert_array_equal(model.predict(saved(wide, tmp_path)), model.predict(frame[NUMBERS]))


def test_a_dask_series_is_no_table(frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="X must have rows and columns, got a Dask Series of 1 dimension"):
        cb.GaussianNB().fit(dd.from_pandas(frame["length"], npartitions=2), frame["target"])
