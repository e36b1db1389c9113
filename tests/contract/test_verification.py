"""What training computes passes verification, whatever the table, the rule and the way it was trained."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import calibayes as cb
from calibayes.rules import GDT, RC
from tests.contract.tables import gappy, table
from tests.contract.test_scikit_learn import GENERATIVE, nothing_hidden

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows, singular covariances and few iterations

RULES = ("ml", "map", RC(step=0.1), "rc", "tm", "dfe", GDT(0.5), "em", "gd")


def mixed_frame(n=60):
    """Numbers, strings, categories, booleans, dates and missing values; a constant column and an empty one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "whole": rng.integers(0, 5, n),
            "text": rng.choice(["a", "b", "c"], n),
            "kind": pd.Categorical(rng.choice(["u", "v"], n)),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "constant": 1.0,
            "empty": np.nan,
        }
    )
    X.loc[::7, "number"] = np.nan
    X.loc[3::9, "text"] = None
    X.loc[5::11, "day"] = pd.NaT
    return X, np.array(["x", "y", "z"])[np.arange(n) % 3]


def one_row_classes():
    X, _ = table(40)
    return X, np.array(["alone", *["x", "y"] * 19, "single"])


def singles():
    X, y = table(60)
    return X.astype(np.float32), y


TABLES = {
    "numbers": lambda: table(90),
    "gaps": gappy,
    "frame": mixed_frame,
    "one-row classes": one_row_classes,
    "float32": singles,
    "flags": lambda: (np.asarray(table(60)[0] > 2.0, dtype=float), table(60)[1]),
}


def fitted_or_none(train):
    """The result, or None if the estimator refuses such a table."""
    try:
        return train()
    except ValueError:
        return None


def quick(estimator, **options):
    given = {
        name: value for name, value in {"max_iter": 4, **options}.items() if name in estimator.get_params()
    }
    return clone(estimator).set_params(**given)


@pytest.mark.parametrize("data", TABLES)
@pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda estimator: type(estimator).__name__)
def test_fitted_models_pass(estimator, data):
    X, y = TABLES[data]()
    model = fitted_or_none(lambda: quick(estimator).fit(X, y))
    if model is None:
        pytest.skip("refuses this table")
    model.fitted_.verify()
    if not (np.unique(y, return_counts=True)[1] == 1).any():
        k = len(model.classes_)
        model.with_priors(np.full(k, 1.0 / k)).fitted_.verify()


@pytest.mark.parametrize("data", ["numbers", "frame", "one-row classes"])
@pytest.mark.parametrize("rule", ["ml", "rc", "gd"])
@pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda estimator: type(estimator).__name__)
def test_partially_fitted_models_pass(estimator, rule, data):
    X, y = TABLES[data]()
    classes, model = np.unique(y), quick(estimator, rule=rule)
    rows = [X.iloc if hasattr(X, "iloc") else X][0]
    if fitted_or_none(lambda: model.partial_fit(rows[:2], y[:2], classes=classes)) is None:
        pytest.skip("refuses this table")
    model.fitted_.verify()
    for low, high in ((2, 20), (20, len(y))):
        if fitted_or_none(lambda low=low, high=high: model.partial_fit(rows[low:high], y[low:high])):
            model.fitted_.verify()


@pytest.mark.parametrize("data", ["numbers", "frame"])
@pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda estimator: type(estimator).__name__)
def test_merged_and_reduced_models_pass(estimator, data):
    X, y = TABLES[data]()
    rows = [X.iloc if hasattr(X, "iloc") else X][0]

    def both():
        halves = [quick(nothing_hidden(clone(estimator)), rule="ml") for _ in range(2)]
        for half, part in zip(halves, (slice(0, None, 2), slice(1, None, 2)), strict=True):
            half.fit(rows[part], y[part])
        return halves[0].merge(halves[1])

    merged = fitted_or_none(both)
    if merged is not None:
        merged.fitted_.verify()
    whole = fitted_or_none(lambda: quick(nothing_hidden(clone(estimator)), rule="ml").fit(X, y))
    for stop in (5, len(y)):
        less = whole and fitted_or_none(
            lambda stop=stop: clone(whole).fit(X, y).forget(rows[:stop], y[:stop])
        )
        if less:
            less.fitted_.verify()
    if merged is None and whole is None:
        pytest.skip("refuses this table")


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda estimator: type(estimator).__name__)
def test_models_of_every_rule_pass(estimator, rule):
    X, y = table(90)
    model = fitted_or_none(lambda: quick(estimator, rule=rule).fit(X, y))
    if model is None:
        pytest.skip("has no such rule")
    model.fitted_.verify()


def test_a_class_without_rows_has_probability_zero():
    X, y = table(60)
    weight = (y != "z").astype(float)
    cb.GaussianNB(rule="ml").fit(X, y, sample_weight=weight).fitted_.verify()
