"""Missing cells: in new rows they are integrated out, and a few of them in training change little."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from calibayes import BayesClassifier
from calibayes.datasets import load

COLUMNS = 5
"""Columns that are blanked, of each table."""


def loss(model, X, y):
    return log_loss(y, model.predict_proba(X), labels=model.classes_)


@pytest.fixture(scope="module", params=[load_iris, load_wine, load_breast_cancer], ids=lambda f: f.__name__)
def split(request):
    X, y = request.param(return_X_y=True, as_frame=True)
    return train_test_split(X, y, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def complete(split):
    X, _, y, _ = split
    return BayesClassifier().fit(X, y)


def test_a_column_that_is_missing_in_new_rows_costs_no_more_than_training_without_it(split, complete):
    X, X_test, y, y_test = split
    columns = X.columns[np.linspace(0, X.shape[1] - 1, COLUMNS).astype(int)]
    excess = []
    for column in dict.fromkeys(columns):
        without = BayesClassifier().fit(X.drop(columns=column), y)
        reference = loss(without, X_test.drop(columns=column), y_test)
        excess.append(loss(complete, X_test.assign(**{column: np.nan}), y_test) - reference)
    assert max(excess) < 0.05
    assert np.mean(excess) < 0.015


def test_one_percent_of_missing_cells_in_training_changes_little(split, complete):
    X, X_test, y, y_test = split
    rng = np.random.default_rng(0)
    model = BayesClassifier().fit(X.mask(rng.random(X.shape) < 0.01), y)
    assert loss(model, X_test, y_test) < loss(complete, X_test, y_test) + 0.02
    sparse = X_test.mask(rng.random(X_test.shape) < 0.3)
    assert loss(model, sparse, y_test) < loss(complete, sparse, y_test) + 0.02


def test_rows_without_any_known_cell_are_predicted_by_class_frequencies(split, complete):
    _, X_test, y, _ = split
    nothing = pd.DataFrame(np.nan, index=[0], columns=X_test.columns)
    frequencies = np.bincount(y) / len(y)
    assert np.abs(complete.predict_proba(nothing) - frequencies).max() < 0.15


def test_a_missing_cell_leaves_a_clear_row_clear():
    penguins = load("penguins")
    model = BayesClassifier().fit(penguins.data, penguins.target)
    rows = penguins.data[:1].copy()
    rows.loc[0, "flipper_length_mm"] = np.nan
    assert model.predict_proba(rows)[0, 0] > 0.98
    assert model.models_["full"].predict_proba(rows)[0, 0] > 0.98
