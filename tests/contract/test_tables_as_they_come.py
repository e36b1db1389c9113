"""Tables go in as they are read, by either library, with nothing done to them before."""

from importlib import resources

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split

import calibayes as cb

NAMES = ["adult", "mushroom", "vote", "soybean", "australian", "breast-cancer", "penguins"]
MOST_ROWS = 4000


@pytest.fixture
def table_file(data_file):
    """Path and target of a table."""

    def find(name):
        if name == "penguins":
            return resources.files("calibayes.datasets") / "penguins.csv", "species"
        return data_file(name), "target"

    return find


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("discretize", [None, "kmeans", "mdl"])
@pytest.mark.parametrize("name", NAMES)
def test_pandas_and_polars_give_the_same(table_file, name, discretize):
    path, target = table_file(name)
    pandas = pd.read_csv(path)[:MOST_ROWS]
    polars = pl.read_csv(path, infer_schema_length=None, null_values="NA")[:MOST_ROWS]
    X, y = pandas.drop(columns=target), pandas[target]
    other, labels = polars.drop(target), polars[target]
    left = cb.NaiveBayes(discretize=discretize).fit(X, y)
    right = cb.NaiveBayes(discretize=discretize).fit(other, labels)
    assert_array_equal(left.predict(X), right.predict(other))
    assert_array_equal(left.predict_proba(X), right.predict_proba(other))
    assert left.schema_ == right.schema_
    assert left.score(X, y) > y.value_counts(normalize=True).max()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blanks_cost_little(data_file):
    """A fifth of adult's cells blanked at random, in training and held-out rows alike, no imputation."""
    adult = pd.read_csv(data_file("adult"))
    X, y = adult.drop(columns="target"), adult["target"].to_numpy()
    blank = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    training, held_out = train_test_split(np.arange(len(y)), test_size=0.33, stratify=y, random_state=0)
    errors = []
    for table in (X, blank):
        model = cb.NaiveBayes(rule="rc").fit(table.iloc[training], y[training])
        errors.append(1 - model.score(table.iloc[held_out], y[held_out]))
    assert errors[0] < 0.15
    assert errors[1] - errors[0] < 0.015
