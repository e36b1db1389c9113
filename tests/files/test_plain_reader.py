"""The format is as docs/format.md describes it: a reader of forty lines without calibayes predicts the same."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

import calibayes
from calibayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB, TrainingOptions
from calibayes.datasets import load_penguins
from tests.files.plain_reader import predict_proba, read

SOURCE = Path(__file__).with_name("plain_reader.py")


def with_gaps(X):
    X = np.array(X, dtype=float)
    X[::7, 1] = np.nan
    X[3::11, 0] = np.nan
    return X


def numbers():
    X, y = load_iris(return_X_y=True)
    return with_gaps(X), y


def levels():
    data = load_penguins()
    return data.data[["island", "sex"]], data.target


def pixels(rows=400):
    X, y = load_digits(return_X_y=True)
    return X[:rows], y[:rows]


def integers():
    """Levels 0, 1, 5: the integers between them are levels too, without rows."""
    X = np.array([[0, 5], [1, 0], [5, 2], [1, 1], [0, 2], [5, 0]] * 3)
    return X, np.array([0, 0, 1, 1, 0, 1] * 3)


MODELS = [
    (GaussianNB(), numbers),
    (GaussianNB(rule="ml"), numbers),
    (GaussianNB(training=TrainingOptions(temperature="auto", validation_fraction=0.3)), numbers),
    (CategoricalNB(), levels),
    (CategoricalNB(rule="ml", alpha=0.5), levels),
    (CategoricalNB(rule="ml"), integers),
    (CategoricalNB(min_categories=9), integers),
    (BernoulliNB(binarize=7.5), pixels),
    (BernoulliNB(binarize=3.0), numbers),
    (BernoulliNB(binarize=None, rule="ml"), lambda: (numbers()[0] > 3, numbers()[1])),
    (MultinomialNB(), pixels),
    (MultinomialNB(rule="ml"), pixels),
]


@pytest.mark.parametrize(
    ("model", "table"), MODELS, ids=lambda part: str(part) if hasattr(part, "fit") else ""
)
def test_forty_lines_of_numpy_predict_the_same(model, table, tmp_path):
    X, y = table()
    model.fit(X, y)
    calibayes.save(model, tmp_path / "model.safetensors")
    rows = np.asarray(X, dtype=object if isinstance(X, pd.DataFrame) else None).tolist()
    predicted = predict_proba(read(tmp_path / "model.safetensors"), rows)
    assert np.abs(predicted - model.predict_proba(X)).max() < 1e-12


def test_levels_that_did_not_occur_in_training(tmp_path):
    X, y = levels()
    model = CategoricalNB().fit(X, y)
    calibayes.save(model, tmp_path / "model.safetensors")
    rows = [["Atlantis", "male"], ["Dream", None], [None, None], ["Atlantis", "neither"]]
    predicted = predict_proba(read(tmp_path / "model.safetensors"), rows)
    expected = model.predict_proba(pd.DataFrame(rows, columns=X.columns))
    assert np.abs(predicted - expected).max() < 1e-12


@pytest.mark.parametrize("place", [20, 60, 150, -1])
def test_a_damaged_file_is_refused(place, tmp_path):
    X, y = numbers()
    path = tmp_path / "model.safetensors"
    calibayes.save(GaussianNB(rule="ml").fit(X, y), path)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises((AssertionError, ValueError, KeyError)):
        read(path)


def test_it_has_forty_lines_and_imports_nothing_of_calibayes():
    text = SOURCE.read_text(encoding="utf-8")
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {alias.name for node in imported for alias in node.names} == {"hashlib", "json", "numpy"}
    assert len(text.splitlines()) <= 40
