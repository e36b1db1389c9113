"""Random rows, imputed cells, and the types in which they are returned."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.datasets import load_penguins
from tests.contract.tables import gappy, table
from tests.contract.test_scikit_learn import ITERATIVE

EVERY = pytest.mark.parametrize("estimator", ITERATIVE, ids=lambda estimator: type(estimator).__name__)


def test_mixed_columns_come_back_from_sampling_as_they_were():
    penguins = cb.datasets.load_penguins()
    model = cb.NaiveBayes(rule="ml").fit(penguins.data, penguins.target)
    rows, classes = model.sample(50, random_state=0)
    assert set(rows["sex"]) <= {"male", "female"}
    assert set(classes) <= {"Adelie", "Chinstrap", "Gentoo"}
    assert (rows["bill_length_mm"] > 30).all()


class TestGenerating:
    @EVERY
    def test_classes_and_known_cells_are_kept(self, estimator):
        X, y = table()
        X = np.where(X > 1, 1.0, 0.0) if isinstance(estimator, cb.BernoulliNB) else X
        model = clone(estimator).set_params(rule="ml").fit(X, y)
        given = {1: X[0, 1]} if get_tags(estimator).input_tags.allow_nan else {}
        rows, classes = model.sample(30, y="z", given=given, random_state=0)
        assert set(classes) == {"z"}
        for column, value in given.items():
            assert_allclose(rows[:, column].astype(float), value, atol=1e-9)
        _, classes = model.sample(20, y=["x", "y"] * 10, random_state=0)
        assert classes.tolist() == ["x", "y"] * 10

    def test_full_gaussians_are_drawn_given_known_cells(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]])
        y = np.arange(500) % 2
        model = cb.LinearDiscriminantAnalysis(rule="ml").fit(X, y)
        rows, _ = model.sample(4000, y=0, given={0: 2.0}, random_state=0)
        mean, covariance = model.means_[0], model.covariance_
        slope = covariance[1, 0] / covariance[0, 0]
        assert rows[:, 1].mean() == pytest.approx(mean[1] + slope * (2.0 - mean[0]), abs=0.03)
        assert rows[:, 1].var() == pytest.approx(covariance[1, 1] - slope * covariance[0, 1], rel=0.1)

    def test_classes_are_drawn_given_known_cells(self):
        X, y = load_wine(return_X_y=True)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        row = np.full((1, 13), np.nan)
        row[0, 6] = 0.8
        _, classes = model.sample(3000, given={6: 0.8}, random_state=0)
        assert_allclose(np.bincount(classes, minlength=3) / 3000, model.predict_proba(row)[0], atol=0.04)

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
    def test_rows_come_back_as_they_went_in(self, library):
        rng = np.random.default_rng(0)
        frame = library(
            {
                "age": rng.integers(20, 60, 90),
                "dose": rng.normal(size=90),
                "sex": ["f", "m", "f"] * 30,
                "old": [True, False] * 45,
            }
        )
        model = cb.NaiveBayes(rule="ml").fit(frame, np.arange(90) % 3)
        rows, _ = model.sample(7, random_state=0)
        assert type(rows) is type(frame)
        assert list(rows.columns) == list(frame.columns)
        assert [str(kind) for kind in rows.dtypes] == [str(kind) for kind in frame.dtypes]

    def test_missing_cells_are_filled_by_their_expectation(self):
        X, y = gappy()
        model = cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y)
        filled = model.fill(X)
        known = ~np.isnan(X)
        assert_array_equal(filled[known], X[known])
        row = int(np.flatnonzero(~known.all(axis=1))[0])
        here, posterior = known[row], model.predict_proba(X[[row]])[0]
        expected = np.zeros((~here).sum())
        for c in range(3):
            covariance, mean = model.covariance_[c], model.means_[c]
            slopes = covariance[np.ix_(~here, here)] @ np.linalg.inv(covariance[np.ix_(here, here)])
            expected += posterior[c] * (mean[~here] + slopes @ (X[row, here] - mean[here]))
        assert_allclose(filled[row, ~here], expected, atol=1e-10)

    def test_missing_levels_are_filled_by_the_most_probable(self):
        penguins = load_penguins()
        frame = penguins.data
        model = cb.NaiveBayes(rule="ml").fit(frame, penguins.target)
        filled = model.fill(frame)
        assert not filled.isna().any().any()
        assert set(filled["sex"]) == {"male", "female"}
        pd.testing.assert_frame_equal(filled[~frame.isna().any(axis=1)], frame.dropna(), check_dtype=False)

    def test_bad_requests(self):
        X, y = table()
        model = cb.GaussianNB(rule="ml").fit(X, y)
        for call, message in (
            (lambda: model.sample(0), "n_samples"),
            (lambda: model.sample(3, y="w"), "not among the classes"),
            (lambda: model.sample(3, given={"height": 1.0}), "no column 'height'"),
        ):
            with pytest.raises(ValueError, match=message):
                call()


def test_labels_to_sample_are_checked_as_they_are():
    X, y = table()
    model = cb.GaussianNB(rule="ml").fit(X, y)
    for labels in ("xylophone", 1, ["x", "y"]):
        with pytest.raises(ValueError, match="not among the classes"):
            model.sample(3, y=labels)


def test_whole_numbers_stay_within_their_type():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 2)).astype(np.uint8), np.arange(200) % 2
    rows, _ = cb.GaussianNB(rule="ml").fit(X, y).sample(500, random_state=0)
    assert rows.dtype == np.uint8
    assert rows.max() < 20
    frame = pd.DataFrame({"whole": rng.integers(0, 9, 90), "real": rng.normal(size=90)})
    drawn, _ = cb.GaussianNB(rule="ml").fit(frame, np.arange(90) % 2).sample(5, random_state=0)
    assert [str(kind) for kind in drawn.dtypes] == ["int64", "float64"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_booleans_with_gaps_are_flags(library):
    cells = [True, False, None] * 30
    frame = library(
        {
            "b": pd.array(cells, dtype="boolean") if library is pd.DataFrame else cells,
            "c": [1.0, 2.0, 4.0] * 30,
        }
    )
    y = np.arange(90) % 2
    model = cb.NaiveBayes(rule="ml", kinds={"b": "bernoulli", "c": "poisson"}).fit(frame, y)
    assert np.isfinite(model.predict_log_proba(frame)).all()
    rows, _ = model.sample(4, given={"c": 2.0}, random_state=0)
    assert type(rows) is type(frame)


def test_families_that_nothing_is_given_of_do_not_hinder_sampling():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"f": rng.normal(size=90), "p": rng.poisson(3, 90), "q": rng.poisson(5, 90)})
    model = cb.NaiveBayes(rule="ml", kinds={"f": "gaussian", "p": "multinomial", "q": "multinomial"})
    model.fit(frame, np.arange(90) % 2)
    rows, _ = model.sample(5, given={"f": 0.3}, random_state=0)
    assert_allclose(rows["f"], 0.3)
    with pytest.raises(ValueError, match="only be given all together"):
        model.sample(5, given={"p": 3.0})
    gaps = frame.assign(f=[np.nan, *frame["f"][1:]])
    assert not model.fill(gaps).isna().any().any()


def test_filled_pandas_frames_keep_index_and_types():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "whole": pd.array([None, *rng.integers(0, 9, n - 1)], dtype="Int64"),
            "small": rng.normal(size=n).astype(np.float32),
            "kind": pd.Categorical([None, *["b", "a", "c"] * 19, "a", "b"], categories=["c", "b", "a"]),
            "word": pd.array([*["u", "v"] * 29, None, "v"], dtype="string"),
            "flag": pd.array([True, False, None] * 20, dtype="boolean"),
        },
        index=pd.Index(rng.permutation(n) + 100, name="patient"),
    )
    model = cb.NaiveBayes(rule="ml").fit(frame, np.arange(n) % 2)
    filled = model.fill(frame)
    assert not filled.isna().any().any()
    pd.testing.assert_index_equal(filled.index, frame.index)
    assert filled.dtypes.tolist() == frame.dtypes.tolist()
    known = frame.notna()
    pd.testing.assert_frame_equal(filled.where(known), frame.where(known))
    part = model.fill(frame.iloc[:7])
    pd.testing.assert_index_equal(part.index, frame.index[:7])


def test_filled_polars_frames_keep_types():
    frame = pl.DataFrame(
        {
            "whole": [None, 1, 2, 3] * 10,
            "small": [0.5, 1.0, None, 2.0] * 10,
            "word": ["a", "b", None, "b"] * 10,
        },
        schema={"whole": pl.Int16, "small": pl.Float32, "word": pl.Enum(["b", "a"])},
    )
    filled = cb.NaiveBayes(rule="ml").fit(frame, np.arange(40) % 2).fill(frame)
    assert filled.schema == frame.schema
    assert filled.null_count().sum_horizontal().item() == 0


@pytest.mark.parametrize("estimator", [cb.NaiveBayes(rule="ml"), cb.TreeAugmentedNB(rule="ml")])
def test_a_given_level_must_exist(estimator):
    penguins = load_penguins()
    model = estimator.fit(penguins.data, penguins.target)
    for column in ("sex", penguins.data.columns.get_loc("sex")):
        with pytest.raises(ValueError, match=r"'x' is not a level of column 'sex'.*'female', 'male'"):
            model.sample(3, given={column: "x"})
    rows, _ = model.sample(3, given={"sex": "male"}, random_state=0)
    assert set(rows["sex"]) == {"male"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"year": "x"}, "column 'year' holds numbers, got 'x'"),
        ({"year": [2008.0]}, "column 'year' needs one value for all rows, got [2008.0]"),
        ({"sex": ["male"]}, "column 'sex' needs one value for all rows, got ['male']"),
    ],
)
def test_a_given_value_is_of_the_kind_of_its_column(given, message):
    penguins = load_penguins()
    model = cb.NaiveBayes(rule="ml").fit(penguins.data, penguins.target)
    with pytest.raises(ValueError, match=re.escape(f"given: {message}")):
        model.sample(3, given=given)
