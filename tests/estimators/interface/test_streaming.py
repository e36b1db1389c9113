"""One `fit` for rows in memory, files and streams: the same numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import csv, dataset, feather, parquet
from sklearn.base import clone

import calibayes as cb
from calibayes.tables.streams import chunk

N = 700
MIXED = ["size", "skewed", "count", "flag", "color", "day"]
NUMBERS = ["size", "skewed"]
COUNTS = ["count", "small"]


def table() -> pd.DataFrame:
    """Numbers with ties and gaps, counts, flags, text with gaps, dates, labels and weights."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, N)
    size = rng.normal(size=N) + y
    return pd.DataFrame(
        {
            "size": size,
            "skewed": np.round(np.exp(rng.normal(size=N)), 1),
            "count": rng.poisson(1.0 + y),
            "small": rng.integers(0, 4, N),
            "flag": rng.random(N) < 0.3 + 0.2 * y,
            "color": np.array(["red", "green", "blue", "violet"])[(y + rng.integers(0, 3, N)) % 4],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, N) + 100 * y, unit="D"),
            "target": np.array(["a", "b", "c"])[y],
            "weight": rng.integers(0, 4, N).astype(float),
        }
    )


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with missing numbers, text and dates; integers with gaps are floats."""
    rng, frame = np.random.default_rng(6), frame.copy()
    for name in ("size", "color", "day", "count"):
        frame[name] = frame[name].mask(rng.random(N) < 0.1)
    return frame


def as_parquet(frame: pd.DataFrame, folder: Path) -> Any:
    path = folder / "table.parquet"
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=97)
    return path


def as_folder(frame: pd.DataFrame, folder: Path) -> Any:
    parts = folder / "parts"
    parts.mkdir()
    for number, start in enumerate(range(0, N, 311)):
        part = pa.Table.from_pandas(frame.iloc[start : start + 311], preserve_index=False)
        parquet.write_table(part, parts / f"{number}.parquet")
    return dataset.dataset(parts)


def as_feather(frame: pd.DataFrame, folder: Path) -> Any:
    path = folder / "table.feather"
    feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), path, chunksize=250)
    return str(path)


def as_csv(frame: pd.DataFrame, folder: Path) -> Any:
    path = folder / "table.csv"
    csv.write_csv(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


def as_query(frame: pd.DataFrame, folder: Path) -> Any:
    return duckdb.sql(f"select * from '{as_parquet(frame, folder)}'")


def as_lazy(frame: pd.DataFrame, folder: Path) -> Any:
    return pl.scan_parquet(as_parquet(frame, folder))


def as_function(frame: pd.DataFrame, folder: Path) -> Any:
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    return lambda: whole.to_reader(max_chunksize=123)


SOURCES = (as_parquet, as_folder, as_feather, as_csv, as_query, as_lazy, as_function)
CASES: dict[str, tuple[Any, list[str]]] = {
    "naive Bayes": (cb.NaiveBayes(max_iter=4, stop=None), MIXED),
    "naive Bayes, maximum likelihood": (cb.NaiveBayes(rule="ml", discretize="mdl", rare_levels=3), MIXED),
    "naive Bayes, trade-off": (
        cb.NaiveBayes(rule="gdt", discretize="quantile", max_iter=4, stop=None),
        MIXED,
    ),
    "kernels on a grid": (cb.KernelNB(binning="grid", max_iter=3, stop=None), MIXED),
    "tree": (cb.TreeAugmentedNB(max_iter=3, stop=None), MIXED),
    "balanced": (cb.NaiveBayes(rule="ml", class_weight="balanced"), MIXED),
    "validation": (
        cb.NaiveBayes(max_iter=5, training=cb.TrainingOptions(validation_fraction=0.3), random_state=0),
        MIXED,
    ),
    "Gaussian": (cb.GaussianNB(max_iter=4, stop=None), NUMBERS),
    "quadratic": (cb.QuadraticDiscriminantAnalysis(max_iter=4, stop=None), NUMBERS),
    "linear, shrunk": (cb.LinearDiscriminantAnalysis(shrinkage="auto", solver="lsqr"), NUMBERS),
    "dense": (cb.LinearDiscriminantAnalysis(encoder="dense", rule="rc", max_iter=3, stop=None), MIXED),
    "mixture": (
        cb.MixtureDiscriminantAnalysis(n_components="bic", max_components=2, max_iter=3, stop=None),
        NUMBERS,
    ),
    "multinomial": (cb.MultinomialNB(max_iter=4, stop=None), COUNTS),
    "categorical": (cb.CategoricalNB(max_iter=4, stop=None), COUNTS),
    "trees": (cb.CalibratedTrees(max_trees=5), MIXED),
}


def assert_same(actual: Any, expected: Any, tolerance: float = 1e-10) -> None:
    """Compare statistics, which are nested mappings of arrays."""
    if isinstance(expected, Mapping):
        assert actual.keys() == expected.keys()
        for name in expected:
            assert_same(actual[name], expected[name], tolerance)
    else:
        scale = np.max(np.abs(expected), initial=1.0)
        assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk, "CHUNK_ROWS", 128)
    monkeypatch.setattr(chunk, "FEWEST_CHUNK_ROWS", 32)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
@pytest.mark.parametrize("case", CASES)
def test_files_and_streams_give_the_same_model_as_memory(
    case: str, source: Callable[[pd.DataFrame, Path], Any], tmp_path: Path
) -> None:
    estimator, columns = CASES[case]
    frame = table() if columns is COUNTS or "mixture" in case or "linear" in case else with_gaps(table())
    if source is as_csv and "flag" in columns:  # a CSV file has no booleans, only words for them
        frame = frame.assign(flag=np.where(frame["flag"], "yes", "no"))
    frame = frame[[*columns, "target"]]
    X = frame[columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(estimator).fit(X, frame["target"])
        actual = clone(estimator).fit(source(frame, tmp_path), y="target")
    assert_array_equal(actual.classes_, expected.classes_)
    assert_array_equal(actual.feature_names_in_, expected.feature_names_in_)
    assert_same(actual.statistics_, expected.statistics_)
    assert_allclose(actual.predict_proba(X), expected.predict_proba(X), rtol=0, atol=1e-10)
    assert actual.training_table_.missing == expected.training_table_.missing
