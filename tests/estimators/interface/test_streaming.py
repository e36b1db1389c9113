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
from calibayes.families.joint_model import PRIOR
from calibayes.rules import GDT, RC
from calibayes.streams import chunks, streamed_rows
from calibayes.streams.streamed_rows import SampledRowsWarning

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
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 128)
    monkeypatch.setattr(chunks, "FEWEST_CHUNK_ROWS", 32)


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


@pytest.mark.parametrize("weight", ["weight", None], ids=["weighted", "unweighted"])
def test_rows_of_weight_zero_are_left_out(weight: str | None, tmp_path: Path) -> None:
    frame = with_gaps(table())[[*MIXED, "target", "weight"]]
    frame = frame if weight else frame.drop(columns="weight")
    expected = cb.NaiveBayes(max_iter=3, stop=None).fit(frame, y="target", sample_weight=weight)
    actual = cb.NaiveBayes(max_iter=3, stop=None, n_jobs=2).fit(
        as_parquet(frame, tmp_path), y="target", sample_weight=weight
    )
    assert_same(actual.statistics_, expected.statistics_)
    assert actual.training_table_ == expected.training_table_
    by_hand = cb.NaiveBayes(max_iter=3, stop=None).fit(
        frame[MIXED], frame["target"], None if weight is None else frame["weight"]
    )
    assert_same(expected.statistics_, by_hand.statistics_, 0.0)


def test_the_default_is_the_same_from_a_file(tmp_path: Path) -> None:
    frame = with_gaps(table())[[*MIXED, "target"]]
    expected = cb.BayesClassifier(random_state=0).fit(frame[MIXED], frame["target"])
    actual = cb.BayesClassifier(random_state=0).fit(as_parquet(frame, tmp_path), y="target")
    assert actual.weights_ == pytest.approx(expected.weights_, abs=1e-6)
    assert_allclose(actual.predict_proba(frame[MIXED]), expected.predict_proba(frame[MIXED]), atol=1e-10)


@pytest.mark.parametrize(
    "rule", ["em", RC(unlabeled=0.5), GDT(0.4, unlabeled=0.5, prior_weight=2.0)], ids=["em", "rc", "gdt"]
)
def test_rows_without_a_label_take_part(tmp_path: Path, rule: str | RC | GDT) -> None:
    frame = table()[[*NUMBERS, "target"]]
    frame["target"] = frame["target"].mask(np.arange(N) % 3 == 0)
    expected = cb.GaussianNB(rule=rule, max_iter=5, stop=None).fit(frame[NUMBERS], frame["target"])
    actual = cb.GaussianNB(rule=rule, max_iter=5, stop=None).fit(as_parquet(frame, tmp_path), y="target")
    assert_same(actual.statistics_, expected.statistics_)
    with pytest.raises(ValueError, match="missing labels"):
        cb.GaussianNB().fit(as_parquet(frame, tmp_path), y="target")


def test_predictions_and_scores_for_a_file_are_those_for_its_rows(tmp_path: Path) -> None:
    frame = with_gaps(table())[[*MIXED, "target"]]
    model, path = cb.NaiveBayes(rule="ml").fit(frame, y="target"), as_parquet(frame, tmp_path)
    for name in ("predict", "predict_proba", "predict_log_proba", "score_samples"):
        assert_array_equal(getattr(model, name)(path), getattr(model, name)(frame[MIXED]))
    assert model.score(path, "target") == pytest.approx(model.score(frame[MIXED], frame["target"]))
    assert model.score(frame, "target") == model.score(frame[MIXED], frame["target"])
    with pytest.raises(ValueError, match="no column 'size'"):
        model.predict(as_parquet(frame.drop(columns="size"), tmp_path))


def test_a_model_that_needs_its_rows_in_memory_says_if_it_learns_from_some_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_rows, "MOST_CELLS", 300 * len(MIXED))
    monkeypatch.setattr(streamed_rows, "SAMPLE_ROWS", 100)
    frame = with_gaps(table())[[*MIXED, "target"]]
    with pytest.warns(SampledRowsWarning, match=r"only \d+ of 700 rows"):
        one = cb.JointKernelClassifier().fit(as_parquet(frame, tmp_path), y="target")
    assert 200 < one.training_table_.rows < 400
    with pytest.warns(SampledRowsWarning):
        other = cb.JointKernelClassifier().fit(as_function(frame, tmp_path), y="target")
    assert_array_equal(other.predict_proba(frame[MIXED]), one.predict_proba(frame[MIXED]))


class Interrupting:
    """A callback that interrupts training after some updates, as Ctrl-C does."""

    def __call__(self, progress: Any) -> bool:
        if progress.update == 2:
            raise KeyboardInterrupt
        return False


def test_ctrl_c_leaves_no_file_and_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("CALIBAYES_MEMORY", "0")
    path = as_parquet(with_gaps(table())[[*MIXED, "target"]], tmp_path)
    options = cb.TrainingOptions(callbacks=[Interrupting()])
    model = cb.NaiveBayes(training=options, max_iter=5, stop=None)
    with pytest.raises(KeyboardInterrupt):
        model.fit(path, y="target")
    assert not hasattr(model, "fitted_")
    assert list(folder.iterdir()) == []
    on_disk = cb.NaiveBayes(max_iter=5, stop=None).fit(path, y="target")
    monkeypatch.delenv("CALIBAYES_MEMORY")
    in_memory = cb.NaiveBayes(max_iter=5, stop=None).fit(path, y="target")
    assert_same(on_disk.statistics_, in_memory.statistics_, 0.0)
    assert list(folder.iterdir()) == []


def test_a_full_disk_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("CALIBAYES_MEMORY", "0")
    monkeypatch.setattr("os.posix_fallocate", full)
    path = as_parquet(with_gaps(table())[[*MIXED, "target"]], tmp_path)
    with pytest.raises(OSError, match=r"bytes for encoded rows do not fit into .*TMPDIR"):
        cb.NaiveBayes().fit(path, y="target")


def test_a_truncated_row_group_is_named(tmp_path: Path) -> None:
    path = Path(as_parquet(with_gaps(table())[[*MIXED, "target"]], tmp_path))
    content = bytearray(path.read_bytes())
    where = parquet.ParquetFile(path).metadata.row_group(3).column(0)
    start = where.dictionary_page_offset or where.data_page_offset
    content[start : start + where.total_compressed_size] = b"\xff" * where.total_compressed_size
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError), match=r"row group 3 of .*table.parquet"):
        cb.NaiveBayes().fit(path, y="target")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": "nothing"}, "nothing"),
        ({"y": "target", "sample_weight": "nothing"}, "nothing"),
        ({}, "requires y"),
    ],
)
def test_columns_that_are_not_there_are_named(options: dict[str, str], message: str, tmp_path: Path) -> None:
    frame = table()[[*MIXED, "target"]]
    for source in (as_parquet(frame, tmp_path), frame):
        with pytest.raises(ValueError, match=message):
            cb.NaiveBayes().fit(source, **options)


def test_members_of_the_default_learn_from_all_rows_of_a_source_that_does_not_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_rows, "MOST_CELLS", 300 * len(MIXED))
    monkeypatch.setattr(streamed_rows, "SAMPLE_ROWS", 100)
    frame = with_gaps(table())[[*MIXED, "target"]]
    with pytest.warns(SampledRowsWarning):
        model = cb.BayesClassifier(families=["kernel"], class_weight="balanced").fit(
            as_parquet(frame, tmp_path), y="target"
        )
    assert model.rows_ < 400
    kernel = model.models_["kernel"]
    assert kernel.training_table_.rows == N
    assert_allclose(kernel.data_statistics_[PRIOR]["count"].sum(), N)
    assert_allclose(model.predict_proba(frame[MIXED]).sum(axis=1), 1.0)


def test_long_work_reports_its_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = as_parquet(with_gaps(table())[[*MIXED, "target"]], tmp_path)
    cb.NaiveBayes(max_iter=2, stop=None, verbose=1).fit(path, y="target")
    lines = capsys.readouterr().err
    for text in ("reading labels", "counting the columns of 700 rows", "encoding 700 rows", "update 2/2"):
        assert text in lines
    cb.NaiveBayes(max_iter=2, stop=None).fit(path, y="target")
    assert capsys.readouterr().err == ""
