"""What training computes passes verification, whatever the table, the rule and the way it was trained."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone

import calibayes as cb
from calibayes.model.fitted import Fitted
from calibayes.rules import GDT, RC
from tests.contract.tables import gappy, table
from tests.contract.test_any_table import ANY_TABLE, EXAMPLES, variants
from tests.contract.test_scikit_learn import ADDITIVE, ESTIMATORS, GENERATIVE, nothing_hidden
from tests.seeds import SEED

pytestmark = pytest.mark.filterwarnings("ignore")  # of few rows, singular covariances and few iterations

RULES = ("ml", "map", RC(step=0.1), "rc", "tm", "dfe", GDT(0.5), "em", "gd")


def mixed_frame(n=60):
    """Numbers, strings, categories, booleans, dates, a constant column and missing values."""
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
        }
    )
    X.loc[::7, "number"] = np.nan
    X.loc[3::9, "text"] = None
    X.loc[5::11, "day"] = pd.NaT
    return X, np.array(["x", "y", "z"])[np.arange(n) % 3]


def dates(n=60):
    """Numbers and dates."""
    X, y = mixed_frame(n)
    return X[["whole", "day", "constant"]].assign(size=np.arange(n) % 7 / 2), y


def strings(n=60):
    """An array of strings and missing values."""
    X, y = mixed_frame(n)
    return X[["text", "kind"]].astype(object).to_numpy(), y


def sparse():
    X, y = table(60)
    return csr_array(np.where(X > 3.0, X, 0.0)), y


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
    "dates": dates,
    "strings": strings,
    "sparse": sparse,
    "one-row classes": one_row_classes,
    "float32": singles,
    "flags": lambda: (np.asarray(table(60)[0] > 2.0, dtype=float), table(60)[1]),
}


def fitted_or_none(train):
    """The result, or None if the estimator refuses such a table."""
    try:
        return train()
    except (ValueError, TypeError):  # scikit-learn requires TypeError for sparse tables
        return None


every_sum = pytest.mark.parametrize("estimator", ADDITIVE, ids=lambda estimator: type(estimator).__name__)
every_model = pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda estimator: type(estimator).__name__)


def quick(estimator, **options):
    given = {
        name: value for name, value in {"max_iter": 4, **options}.items() if name in estimator.get_params()
    }
    return clone(estimator).set_params(**given)


def assert_verified(model):
    """All generative models within a model pass; not a ValueError, which is how an estimator refuses a table."""
    for part in models_within(model):
        try:
            part.verify()
        except ValueError as error:
            raise AssertionError(f"a trained model is refused: {error}") from error


def accepted_tables(train):
    """Names of the tables on which a model can be trained; each is verified."""
    models = {name: fitted_or_none(lambda make=make: train(*make())) for name, make in TABLES.items()}
    for model in models.values():
        assert_verified(model)
    return [name for name, model in models.items() if model is not None]


def rows_of(X):
    return X.iloc if hasattr(X, "iloc") else X


@every_model
def test_fitted_models_pass(estimator):
    def train(X, y):
        model = quick(estimator).fit(X, y)
        assert_verified(model)
        shifted = fitted_or_none(
            lambda: model.with_priors(np.full(len(model.classes_), 1 / len(model.classes_)))
        )
        return model if shifted is None else shifted

    assert len(accepted_tables(train)) >= 4


@pytest.mark.parametrize("rule", ["ml", "rc"])
@every_sum
def test_partially_fitted_models_pass(estimator, rule):
    """From two rows on, which are too few for all classes."""

    def train(X, y):
        rows, classes, model = rows_of(X), np.unique(y), quick(estimator, rule=rule)
        for low, high in ((0, 2), (2, 20), (20, len(y))):
            model.partial_fit(rows[low:high], y[low:high], classes=classes)
            assert_verified(model)
        return model

    assert (rule == "rc" and isinstance(estimator, cb.ComplementNB)) or len(accepted_tables(train)) >= 3


@every_sum
def test_merged_models_pass(estimator):
    def train(X, y):
        halves = [quick(nothing_hidden(clone(estimator)), rule="ml") for _ in range(2)]
        for half, part in zip(halves, (slice(0, None, 2), slice(1, None, 2)), strict=True):
            half.fit(rows_of(X)[part], y[part])
        return halves[0].merge(halves[1])

    has_bins = isinstance(estimator, cb.KernelNB | cb.NaiveBayes)
    assert has_bins or accepted_tables(train)


@pytest.mark.parametrize("share", [0.1, 1.0])
@every_sum
def test_models_without_some_or_all_rows_pass(estimator, share):
    def train(X, y):
        model = quick(nothing_hidden(clone(estimator)), rule="ml").fit(X, y)
        some = slice(int(share * len(y)))
        return model.forget(rows_of(X)[some], y[some])

    assert len(accepted_tables(train)) >= 3


def models_within(value):
    """All fitted generative models that a value is made of."""
    if isinstance(value, Fitted):
        return [value]
    if isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, BaseEstimator) or type(value).__module__.startswith("calibayes"):
        parts = getattr(value, "__dict__", {}).values()
    else:
        parts = ()
    return [model for part in parts for model in models_within(part)]


COMPOSED = [estimator for estimator in ESTIMATORS if estimator not in GENERATIVE]


@pytest.mark.parametrize("estimator", COMPOSED, ids=lambda estimator: type(estimator).__name__)
def test_models_within_composed_models_pass(estimator):
    assert len(accepted_tables(lambda X, y: clone(estimator).fit(X, y))) >= 3


@every_model
def test_models_of_every_rule_pass(estimator):
    models = [fitted_or_none(lambda rule=rule: quick(estimator, rule=rule).fit(*table(90))) for rule in RULES]
    trained = [model for model in models if model is not None]
    for model in trained:
        assert_verified(model)
    assert len(trained) >= 2


@every_model
def test_models_of_any_table_pass(estimator):
    """Random tables of all kinds, trained by any rule (see `test_any_table`)."""

    @seed(f"{SEED} {estimator}")
    @settings(
        max_examples=max(EXAMPLES // 4, 10), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    @given(st.sampled_from(variants(estimator)), ANY_TABLE)
    def check(variant, random_table):
        model = fitted_or_none(lambda: clone(variant).fit(random_table.training, random_table.labels))
        assert_verified(model)

    check()


def test_a_class_without_rows_has_probability_zero():
    X, y = table(60)
    weight = (y != "z").astype(float)
    cb.GaussianNB(rule="ml").fit(X, y, sample_weight=weight).fitted_.verify()
