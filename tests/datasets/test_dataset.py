"""The result of a loader: a data frame of features and a target, as scikit-learn's functions expect them."""

import subprocess
import sys

import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from calibayes import NaiveBayes
from calibayes.datasets import load, load_file, load_penguins


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("x,kind,y\n1,p,a\n2,,b\n3,q,\n4,p,a\n", encoding="utf-8")
    return file


def test_data_target_and_frame_are_pandas_objects(path):
    dataset = load_file(path, "y")
    assert isinstance(dataset.data, pd.DataFrame)
    assert isinstance(dataset.target, pd.Series)
    assert list(dataset.data.columns) == ["x", "kind"]
    assert dataset.target.name == "y"
    assert dataset.target.tolist() == ["a", "b", "a"]
    assert list(dataset.frame.columns) == ["x", "kind", "y"]
    assert dataset.frame["y"].equals(dataset.target)
    assert dataset.data["x"].tolist() == [1.0, 2.0, 4.0]
    assert dataset.data["kind"].isna().tolist() == [False, True, False]
    assert list(dataset.data.index) == list(dataset.target.index) == [0, 1, 2]
    assert dataset.unlabeled_rows == 1


@pytest.mark.parametrize("name", ["penguins", "iris", "wine"])
def test_a_data_set_can_be_split_and_fitted(name):
    X, y = load(name, opener=None, return_X_y=True)
    assert len(X) == len(y)
    training, held_out, labels, truth = train_test_split(X, y, random_state=0)
    assert NaiveBayes().fit(training, labels).score(held_out, truth) > 0.9


def test_every_loader_returns_columns_and_target(path):
    for X, y in (
        load_file(path, "y", return_X_y=True),
        load_penguins(return_X_y=True),
        load_penguins("sex", return_X_y=True),
        load("iris", return_X_y=True),
    ):
        assert isinstance(X, pd.DataFrame)
        assert isinstance(y, pd.Series)
        assert len(X[:2]) == 2
        assert y.name not in X


def test_a_data_set_prints_as_one_line(path):
    assert repr(load_penguins()) == "Dataset 'penguins': 344 rows, 7 columns, target 'species' with 3 classes"
    assert repr(load_file(path, "y")) == "Dataset 'table': 3 rows, 2 columns, target 'y' with 2 classes"


def test_pandas_is_loaded_only_when_a_data_set_is():
    """scikit-learn imports pandas where it is installed; this package must not need it before data are loaded."""
    script = "import sys; sys.modules['pandas'] = None; import calibayes.cli, calibayes.datasets; from calibayes import *"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_dates_of_a_parquet_file_keep_their_time_zone(tmp_path):
    when = pd.date_range("2024-03-30", periods=4, freq="12h", tz="Europe/Berlin")
    frame = pd.DataFrame({"when": when, "day": when.tz_localize(None), "y": [0, 1, 0, 1]})
    frame.to_parquet(tmp_path / "visits.parquet")
    dataset = load_file(tmp_path / "visits.parquet", "y")
    assert str(dataset.data["when"].dt.tz) == "Europe/Berlin"
    assert dataset.data["when"].tolist() == frame["when"].tolist()
    assert dataset.data["day"].tolist() == frame["day"].tolist()
