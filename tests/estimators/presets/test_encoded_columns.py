"""Discriminant analysis and logistic regression of tables with text and missing values, by an encoder."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import calibayes as cb
from calibayes.datasets import load_penguins
from calibayes.encoders import Dense
from calibayes.families import NormalInverseWishart
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

PRIOR = NormalInverseWishart(m1=1.0, m2=10.0)
CASES = [
    (cb.LinearDiscriminantAnalysis(), Dense(drop_first=True)),
    (cb.QuadraticDiscriminantAnalysis(prior=PRIOR), Dense(drop_first=True)),
    (cb.GenerativeLogisticRegression(), Dense()),
]
NAMES = ["LDA", "QDA", "logistic"]


@pytest.fixture(scope="module")
def penguins():
    """Numbers, text and missing cells of both."""
    data = load_penguins()
    X = data.data.copy()
    rng = np.random.default_rng(0)
    X.loc[rng.random(len(X)) < 0.1, "bill_depth_mm"] = np.nan
    X.loc[rng.random(len(X)) < 0.1, "island"] = None
    return X, data.target


@pytest.mark.parametrize("rule", ["ml", "rc"])
@pytest.mark.parametrize(("estimator", "dense"), CASES, ids=NAMES)
def test_the_model_is_that_of_columns_encoded_by_hand(penguins, estimator, dense, rule):
    X, y = penguins
    model = clone(estimator).set_params(rule=rule, encoder="dense").fit(X, y)
    table = read_frame(X)
    encoder = dense.fit(summary_of(table, np.ones(len(X))), range(X.shape[1]))
    by_hand = clone(estimator).set_params(rule=rule).fit(encoder.encode(table), y)
    new_rows = encoder.for_new_rows().encode(table)
    # Equal but for rounding: an encoder knows the means of its columns, about which squares are summed.
    assert_allclose(model.predict_proba(X), by_hand.predict_proba(new_rows), rtol=1e-6, atol=1e-12)
    assert_allclose(model.means_, by_hand.means_, rtol=1e-9, atol=1e-12)
    assert model.encoded_names_ == encoder.names
    assert model.score(X, y) > 0.95


def test_an_independent_encoding(penguins):
    """The posterior of LDA does not depend on the origin and unit of a column, nor on which level has no indicator."""
    X, y = penguins
    known = X.notna().all(axis=1)
    X, y = X[known], y[known]
    numbers = X.select_dtypes("number")
    low, median, high = np.quantile(numbers, [0.25, 0.5, 0.75], axis=0, method="averaged_inverted_cdf")
    columns = np.arcsinh((numbers - median) / ((high - low) / 1.35))
    indicators = pd.get_dummies(X[["island", "sex"]], dtype=float).drop(
        columns=["island_Torgersen", "sex_male"]
    )
    by_hand = cb.LinearDiscriminantAnalysis(rule="ml").fit(np.column_stack([columns, indicators]), y)
    expected = by_hand.predict_proba(np.column_stack([columns, indicators]))
    model = cb.LinearDiscriminantAnalysis(rule="ml", encoder="dense").fit(X, y)
    assert_allclose(model.predict_proba(X), expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize(("estimator", "dense"), CASES, ids=NAMES)
def test_text_needs_an_encoder(penguins, estimator, dense):
    X, y = penguins
    with pytest.raises(ValueError, match=r"column 'island' does not hold numbers.*encoder='dense'"):
        clone(estimator).fit(X, y)


@pytest.mark.parametrize(("estimator", "dense"), CASES, ids=NAMES)
def test_the_encoder_is_a_parameter(penguins, estimator, dense):
    X, y = penguins
    model = clone(clone(estimator).set_params(encoder="dense"))
    assert model.get_params()["encoder"] == "dense"
    search = GridSearchCV(model, {"encoder": ["dense", dense], "rule": ["ml", "rc"]}, cv=2).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert_array_equal(scores[:2], scores[2:])
    assert search.best_estimator_.feature_names_in_.tolist() == list(X.columns)
    assert search.best_score_ > 0.9
    with pytest.raises(ValueError, match="encoder must be one of 'dense' or an object such as Dense"):
        clone(estimator).set_params(encoder="sparse").fit(X, y)


@pytest.mark.parametrize(("estimator", "dense"), CASES, ids=NAMES)
def test_rows_alone_and_in_another_library(penguins, estimator, dense):
    X, y = penguins
    model = clone(estimator).set_params(encoder="dense").fit(X, y)
    together = model.predict_proba(X)
    assert_allclose(
        np.concatenate([model.predict_proba(X[row : row + 1]) for row in range(40)]), together[:40], rtol=1e-9
    )
    polars = pl.from_pandas(X)
    assert_array_equal(clone(model).fit(polars, y).predict_proba(polars), together)
    unknown = model.predict_proba(X.assign(island="elsewhere"))
    assert np.isfinite(unknown).all()


@pytest.mark.parametrize("index", [0, 2], ids=[NAMES[0], NAMES[2]])
def test_reasons_are_of_the_columns_of_the_table(penguins, index):
    X, y = penguins
    model = clone(CASES[index][0]).set_params(encoder="dense").fit(X, y)
    reasons = model.explain(X)
    assert set(reasons.names) == {"class prior", *X.columns}
    assert model.coef_.shape == (3, len(model.encoded_names_))


def test_discriminant_directions(penguins):
    X, y = penguins
    model = cb.LinearDiscriminantAnalysis(encoder="dense", n_components=1).fit(X, y)
    assert model.transform(X).shape == (len(X), 1)
    assert np.isfinite(model.transform(X)).all()
    with pytest.raises(ValueError, match="n_components=3 must lie between 1 and"):
        cb.LinearDiscriminantAnalysis(encoder="dense", n_components=3).fit(X, y)


def test_rows_cannot_be_decoded(penguins):
    X, y = penguins
    model = cb.LinearDiscriminantAnalysis(encoder="dense").fit(X, y)
    with pytest.raises(ValueError, match="cannot be decoded into a table"):
        model.sample(2)


@pytest.mark.parametrize(("estimator", "dense"), CASES, ids=NAMES)
def test_a_transformer_before_the_model(penguins, estimator, dense):
    X, y = penguins
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first"))
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_exclude="number")),
        sparse_threshold=0.0,
    )
    model = make_pipeline(columns, clone(estimator))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9


def test_dates_and_identifiers(penguins):
    X, y = penguins
    X = X.assign(
        day=pd.date_range("2024-01-01", periods=len(X)), tag=[f"bird {row}" for row in range(len(X))]
    )
    with pytest.warns(UserWarning, match="column 'tag' left out"):
        model = cb.GenerativeLogisticRegression(encoder="dense").fit(X, y)
    assert {"day", "day (month) = Jan", "day (weekday) = Mon"} <= set(model.encoded_names_)
    assert not any(name.startswith("tag") for name in model.encoded_names_)
    reasons = model.explain(X)
    assert reasons.names == ("class prior", *X.columns)
    assert not reasons.contributions[:, -1].any()
    plain = cb.GenerativeLogisticRegression(rule="ml").fit(X[["day", "body_mass_g"]], y)
    assert plain.means_.shape == (3, 2)
