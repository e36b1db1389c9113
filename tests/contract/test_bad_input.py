"""Invalid tables and labels raise ValueError with the name of the column or class."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibayes as cb
from calibayes.rules import RC
from calibayes.tables.read import read_frame
from tests.contract.tables import frame
from tests.contract.test_scikit_learn import ADDITIVE, GENERATIVE

NUMERIC = (
    cb.GaussianNB,
    cb.LinearDiscriminantAnalysis,
    cb.QuadraticDiscriminantAnalysis,
    cb.GenerativeLogisticRegression,
)


@pytest.mark.parametrize("estimator", GENERATIVE, ids=lambda e: type(e).__name__)
class TestEveryEstimator:
    def test_one_class(self, estimator):
        """scikit-learn's naive Bayes classifiers accept it, and so do ours of the same name."""
        X, _ = frame()
        if hasattr(naive_bayes, type(estimator).__name__):
            model = clone(estimator).fit(X, ["ill"] * 30)
            assert_array_equal(model.predict(X), ["ill"] * 30)
            assert_array_equal(model.predict_proba(X), np.ones((30, 1)))
            return
        with pytest.raises(ValueError, match="only one class, 'ill'"):
            estimator.fit(X, ["ill"] * 30)

    def test_target_with_missing_labels(self, estimator):
        X, y = frame()
        for nothing in (None, np.nan, pd.NA):
            labels = y.astype(object)
            labels[3] = nothing
            with pytest.raises(ValueError, match="missing labels \\(1 row\\)"):
                estimator.fit(X, labels)

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_numbers_that_are_not_finite(self, estimator, value):
        X, y = frame()
        X.loc[4, "dose"] = value
        with pytest.raises(ValueError, match="column 'dose' contains infinity"):
            estimator.fit(X, y)

    def test_numbers_that_are_not_finite_at_predict(self, estimator):
        X, y = frame()
        estimator = clone(estimator).set_params(rule="ml").fit(X, y)
        X.loc[4, "dose"] = np.inf
        with pytest.raises(ValueError, match="column 'dose' contains infinity"):
            estimator.predict(X)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (-1.0, "Negative values in data passed to `sample_weight`: row 2"),
            (np.nan, "sample_weight contains NaN"),
        ],
    )
    def test_bad_weight(self, estimator, weight, message):
        X, y = frame()
        weights = np.ones(30)
        weights[2] = weight
        with pytest.raises(ValueError, match=message):
            estimator.fit(X, y, sample_weight=weights)

    def test_no_weight_at_all(self, estimator):
        X, y = frame()
        with pytest.raises(ValueError, match="at least one non-zero"):
            estimator.fit(X, y, sample_weight=np.zeros(30))

    def test_class_without_weight(self, estimator):
        X, y = frame()
        with pytest.raises(ValueError, match="no rows \\(or no weight\\) in class 'well'"):
            estimator.fit(X, y, sample_weight=(y == "ill").astype(float))

    def test_other_columns_at_predict(self, estimator):
        X, y = frame()
        estimator = clone(estimator).set_params(rule="ml").fit(X, y)
        with pytest.raises(ValueError, match=r"features|feature names"):
            estimator.predict(X[["age", "dose"]])
        with pytest.raises(ValueError, match="feature names"):
            estimator.predict(X.rename(columns={"age": "height"}))
        estimator.fit(X.to_numpy(), y)
        with pytest.raises(ValueError, match="3 features"):
            estimator.predict(X.to_numpy()[:, :2])

    def test_not_fitted(self, estimator):
        methods = ("predict", "score_samples", "predict_joint_log_proba")
        for method in (name for name in methods if hasattr(estimator, name)):
            with pytest.raises(NotFittedError):
                getattr(type(estimator)(), method)([[0.0, 1.0, 2.0]])
        if hasattr(estimator, "sample"):
            with pytest.raises(NotFittedError):
                type(estimator)().sample(3)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"rule": "rcc"}, "rule must be one of 'ml', 'map', 'rc', .*, got 'rcc'"),
            ({"rule": RC}, r"rule must be one of .* or an object such as RC\(\), got <class"),
            ({"stop": "soon"}, r"stop must be one of None, .* object such as Patience\(\), got 'soon'"),
            ({"training": cb.TrainingOptions(start="anywhere")}, "start must be one of .*, got 'anywhere'"),
            ({"max_iter": -1}, "max_iter must be a whole number from 0 on, got -1"),
            ({"max_iter": 2.5}, "max_iter must be a whole number from 0 on, got 2.5"),
            ({"training": cb.TrainingOptions(batch_size=0)}, "batch_size must be .* from 1 on, got 0"),
            ({"training": cb.TrainingOptions(batch_size=32.0)}, "batch_size must be .* from 1 on, got 32.0"),
            ({"max_iter": None}, "max_iter must be a whole number from 0 on, got None"),
            ({"n_jobs": np.nan}, "n_jobs must be a whole number other than 0, or None, got nan"),
            ({"stop": []}, "at least one stop"),
            ({"stop": 5}, r"stop must be one of .* object such as Patience\(\), got 5"),
            (
                {"training": cb.TrainingOptions(start=5)},
                r"start must be one of .* object such as RandomLabels\(\), got 5",
            ),
            ({"training": cb.TrainingOptions(callbacks=print)}, "callbacks must be a list"),
            (
                {"training": cb.TrainingOptions(validation_fraction=1.5)},
                "validation_fraction must lie between 0 and 1, both excluded, got 1.5",
            ),
            ({"training": "fast"}, r"training must be TrainingOptions\(\) or None, got 'fast'"),
        ],
    )
    def test_bad_training_parameters(self, estimator, options, message):
        X, y = frame()
        if isinstance(estimator, cb.CalibratedTrees) and "training" in options:
            message += "|has no training options"
        with pytest.raises(ValueError, match=message):
            type(estimator)(**options).fit(X, y)

    def test_partial_fit_without_classes(self, estimator):
        X, y = frame()
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            type(estimator)().partial_fit(X, y)


@pytest.mark.parametrize("estimator", ADDITIVE, ids=lambda e: type(e).__name__)
def test_a_column_without_known_values_is_left_out(estimator):
    X, y = frame()
    empty = X.assign(dose=np.nan)
    with pytest.warns(cb.ColumnWarning, match="column dose: no known value, it is left out"):
        model = clone(estimator).fit(empty, y)
    expected = clone(estimator).fit(X.drop(columns="dose"), y).predict_proba(X.drop(columns="dose"))
    np.testing.assert_array_equal(model.predict_proba(empty), expected)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    with pytest.raises(ValueError, match="column 'dose' is all missing"):  # further rows may have values
        clone(estimator).partial_fit(empty, y, classes=np.unique(y))
    with pytest.raises(ValueError, match="no column of X has a known value: all cells are missing"):
        clone(estimator).fit(X.assign(age=np.nan, dose=np.nan, pulse=np.nan), y)


@pytest.mark.parametrize("estimator", [cb.AODE(), cb.TreeAugmentedNB(), cb.KDependenceBayes()])
def test_a_column_without_known_values_is_left_out_where_columns_are_chosen(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 60)).astype(float), rng.integers(0, 2, 200)
    empty = np.insert(X, 3, np.nan, axis=1)
    with pytest.warns(cb.ColumnWarning, match="column x3: no known value"):
        model = clone(estimator).set_params(max_iter=3, stop=None).fit(empty, y)
    expected = clone(estimator).set_params(max_iter=3, stop=None).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(empty), expected.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("estimator", [cb.GaussianNB(), cb.NaiveBayes(rule="ml"), cb.ComplementNB()])
def test_a_class_that_never_came(estimator):
    """Maximum likelihood of scikit-learn's models gives it probability 0 (tests/estimators/presets)."""
    X, y = frame()
    model = clone(estimator).partial_fit(X, y, classes=["dead", "ill", "well"])
    with pytest.raises(ValueError, match=r"not enough rows have been seen yet: no rows .* in class 'dead'"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"\['other'\] in y do not exist in the initial classes"):
        model.partial_fit(X[:2], ["ill", "other"])


@pytest.mark.parametrize("estimator", [cb.GaussianNB, cb.QuadraticDiscriminantAnalysis])
def test_column_that_is_constant_within_a_class(estimator):
    X, y = frame()
    X.loc[y == "well", "dose"] = 3.0
    options = {"var_smoothing": 0.0} if estimator is cb.GaussianNB else {}
    with pytest.raises(
        ValueError, match=r"class 'well'.*no within-class variance in column 'dose'.*prior.*tied"
    ):
        estimator(prior=None, **options).fit(X, y)
    with pytest.warns(cb.SingularCovarianceWarning, match="class 'well'.*column 'dose'"):
        model = estimator(prior="auto", rule="ml", **options).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 2
    with pytest.raises(ValueError, match=r"class '0', '1'.*6 rows for 20 columns"):
        cb.QuadraticDiscriminantAnalysis(prior=None).fit(X, y)
    with pytest.raises(ValueError, match=r"all classes together.*12 rows for 20 columns"):
        cb.LinearDiscriminantAnalysis(prior=None).fit(X, y)
    with pytest.warns(cb.SingularCovarianceWarning):
        cb.LinearDiscriminantAnalysis(rule="ml").fit(X, y)


def test_columns_that_determine_each_other():
    X, y = frame()
    X["double"] = 2 * X["dose"]
    with pytest.raises(ValueError, match="determined by the other columns: column 'double'"):
        cb.QuadraticDiscriminantAnalysis(prior=None).fit(X, y)


@pytest.mark.parametrize("estimator", NUMERIC)
def test_strings_where_numbers_belong(estimator):
    X, y = frame()
    X["dose"] = "much"
    with pytest.raises(ValueError, match="column 'dose' does not hold numbers"):
        estimator().fit(X, y)


@pytest.mark.parametrize("estimator", NUMERIC)
def test_numbers_whose_squares_overflow(estimator):
    X, y = frame()
    X.loc[0, "age"] = 1e300
    with pytest.raises(ValueError, match="column 'age' contains values beyond 1e\\+100"):
        estimator().fit(X, y)


def test_dates():
    """Dates are numbers; counts and flags are neither."""
    X, y = frame()
    X["born"] = [datetime.date(2020, 1, 1 + row % 9) for row in range(len(X))]
    cb.NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="column 'born' does not hold numbers"):
        cb.BernoulliNB().fit(X[["born"]], y)


@pytest.mark.parametrize(
    ("cells", "types"), [(["a", 1], "int, str"), ([True, 2], "bool, int"), ([False, "no"], "bool, str")]
)
def test_a_column_of_mixed_types(cells, types):
    X, y = frame()
    for estimator in (cb.NaiveBayes, cb.CategoricalNB, cb.GenerativeClassifier):
        model = estimator(rule="ml").fit(X.assign(dose="much"), y)
        X["dose"] = pd.Series(cells * 15, dtype=object)
        with pytest.raises(ValueError, match=f"column 'dose' mixes values of types {types}"):
            estimator().fit(X, y)
        with pytest.raises(ValueError, match=f"column 'dose' mixes values of types {types}"):
            model.predict(X)


@pytest.mark.parametrize("estimator", [cb.NaiveBayes, cb.GenerativeClassifier, cb.GaussianNB])
def test_a_column_of_nothing(estimator):
    X, y = frame()
    nothing = X.assign(dose=pd.Series([None] * 30, dtype=object))
    for table in (nothing, pl.from_pandas(X).with_columns(dose=pl.lit(None))):
        with pytest.warns(cb.ColumnWarning, match="column dose: no known value"):
            model = estimator(rule="ml").fit(table, y)
        expected = estimator(rule="ml").fit(X.drop(columns="dose"), y)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X.drop(columns="dose")))
    model = estimator(rule="ml").fit(X, y)  # at predict it is as if every cell were NaN
    np.testing.assert_array_equal(model.predict_proba(nothing), model.predict_proba(X.assign(dose=np.nan)))


def test_levels_of_another_kind():
    X, y = frame()
    X["dose"] = np.where(X["dose"] > 5, "much", "little")
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    with pytest.raises(
        ValueError, match="column 'dose' had strings as levels in training and now has numbers"
    ):
        model.predict(X.assign(dose=1.5))
    with pytest.raises(
        ValueError, match="column 'age' held numbers in training and now holds other values, such as 'old'"
    ):
        model.predict(X.assign(age="old"))
    with pytest.raises(ValueError, match="'min_categories' should have shape"):
        cb.CategoricalNB(min_categories=[2, 2]).fit(X, y)


def test_duplicate_names():
    X, y = frame()
    twice = pd.concat([X, X[["dose"]]], axis=1)
    arrow = pa.table([X[name] for name in twice.columns[:3]] + [X["dose"]], names=list(twice.columns))
    for table in (twice, arrow):
        with pytest.raises(ValueError, match="'dose'"):
            cb.NaiveBayes().fit(table, y)


class TestColumnsAtPredict:
    """Columns are held to the names and to the order of training, as scikit-learn's checks ask."""

    def trained(self):
        X, y = frame()
        return cb.NaiveBayes(rule="ml").fit(X, y), X

    @pytest.mark.parametrize("library", [lambda X: X, pl.from_pandas])
    def test_data_frames(self, library):
        model, X = self.trained()
        for wrong, message in [
            (X[["pulse", "age", "dose"]], "must be in the same order"),
            (X.assign(height=1.0), "unseen at fit time:\n- height"),
            (X[["age", "dose"]], "yet now missing:\n- pulse"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.predict(library(wrong))

    def test_tables(self):
        model, X = self.trained()
        for wrong, message in [
            (X[["pulse", "age", "dose"]], "must be in the order age, dose, pulse"),
            (X.assign(height=1.0), "height unknown"),
            (X[["age", "dose"]], "pulse missing"),
            (X.rename(columns={"age": "years"}), "years unknown; age missing"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.predict(read_frame(wrong))


def test_an_unseen_level_says_nothing():
    X = pd.DataFrame({"color": ["red", "red", "blue", "blue"], "form": ["a", "b", "a", "b"]})
    y = [0, 0, 1, 1]
    for estimator in (cb.CategoricalNB, cb.NaiveBayes, cb.GenerativeClassifier):
        model = estimator(rule="ml").fit(X, y)
        odd = pd.DataFrame({"color": ["green", "green"], "form": ["a", "zz"]})
        np.testing.assert_allclose(model.predict_proba(odd)[1], [0.5, 0.5])
        known = model.predict_joint_log_proba(pd.DataFrame({"color": ["red", "blue"], "form": ["a", "a"]}))
        only_form = np.log([0.5, 0.5]) + np.log(0.5)
        np.testing.assert_allclose(model.predict_joint_log_proba(odd)[0], only_form, rtol=1e-9)
        assert (known[0] != only_form).all()


@pytest.mark.parametrize("model", [cb.GaussianNB(), cb.NaiveBayes(), cb.BayesClassifier()])
def test_weights_whose_sums_overflow(model):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    with pytest.raises(ValueError, match=r"sum of the sample weights must not be above 1e\+100.*1e\+307"):
        model.fit(X, y, sample_weight=np.full(40, 1e307))
    with pytest.raises(ValueError, match="divide all weights"):
        clone(model).set_params(class_weight={0: 1e200}).fit(X, y)


@pytest.mark.parametrize("nan", [Decimal("NaN"), Decimal("sNaN")])
def test_decimal_nan_is_missing(nan):
    column = np.array([Decimal("1.5"), nan, Decimal("2.5"), Decimal("2.5")] * 10, dtype=object)
    y = np.arange(40) % 2
    expected = cb.NaiveBayes().fit(np.where(np.arange(40) % 4 == 1, None, column)[:, None], y)
    model = cb.NaiveBayes().fit(column[:, None], y)
    assert_array_equal(model.predict_proba(column[:, None]), expected.predict_proba(column[:, None]))


def test_unfitted_models_are_neither_merged_nor_forget():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    for rule in ("ml", "rc"):
        blank, full = cb.GaussianNB(rule=rule), cb.GaussianNB(rule=rule).fit(X, y)
        for call in (lambda: blank.merge(full), lambda: full.merge(blank), lambda: blank.forget(X, y)):  # noqa: B023
            with pytest.raises(NotFittedError):
                call()


@pytest.mark.parametrize("norm", [False, True])
def test_complement_of_one_column_does_not_warn(norm):
    X, y = np.arange(1.0, 21.0)[:, None], np.arange(20) % 2
    with np.errstate(all="raise"):
        posterior = cb.ComplementNB(norm=norm).fit(X, y).predict_proba(X)
    assert_array_equal(posterior, 0.5)


RAGGED = {
    "lists": ([[1.0, 2.0], [3.0]], "row 0 has 2 and row 1 has 1"),
    "tuples": (((1.0, 2.0), (3.0,)), "row 0 has 2 and row 1 has 1"),
    "a number": ([[1.0, 2.0], 3.0], "row 0 has 2 and row 1 is no list"),
    "arrays": ([np.zeros(2), np.zeros(3)], "row 0 has 2 and row 1 has 3"),
    "tables": ([np.zeros((2, 3)), np.zeros((2, 4))], r"row 0 has \(2, 3\) and row 1 has \(2, 4\)"),
}


@pytest.mark.parametrize("case", RAGGED)
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_rows_of_different_lengths(case, method):
    rows, message = RAGGED[case]
    model = cb.NaiveBayes(rule="ml").fit([[1.0, 2.0], [2.0, 3.0], [2.0, 1.0]], [0, 1, 1])
    with pytest.raises(ValueError, match=f"rows of X must have the same number of cells, but {message}"):
        model.fit(rows, [0, 1]) if method == "fit" else model.predict(rows)


def several_values():
    """Tables with a column "odd" that has several values in each cell."""
    numbers = np.arange(20.0)
    lists, flat = [[1, 2], [3]] * 10, [[1, 2], [3, 4]] * 10
    arrow = pa.table({"odd": lists, "x": numbers})
    return {
        "pandas": pd.DataFrame({"odd": lists, "x": numbers}),
        "pandas, Arrow types": pd.DataFrame(
            {"odd": pd.array(lists, pd.ArrowDtype(arrow["odd"].type)), "x": numbers}
        ),
        "polars lists": pl.DataFrame({"odd": lists, "x": numbers}),
        "polars arrays": pl.DataFrame({"odd": pl.Series(flat, dtype=pl.Array(pl.Int64, 2)), "x": numbers}),
        "polars structs": pl.DataFrame({"odd": [{"a": 1}] * 20, "x": numbers}),
        "polars, lazy": pl.DataFrame({"odd": lists, "x": numbers}).lazy(),
        "Arrow": arrow,
        "Arrow reader": arrow.to_reader,
    }


@pytest.mark.parametrize("source", several_values())
def test_several_values_in_a_cell(source):
    with pytest.raises(
        TypeError, match=r"column 'odd' holds several values in a cell \(.*leave the column out"
    ):
        cb.NaiveBayes(rule="ml").fit(several_values()[source], np.arange(20) % 2)


COMPLEX = np.arange(40.0).reshape(20, 2) + 1j


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (COMPLEX, "X is an array of complex128"),
        (COMPLEX.astype(np.complex64), "X is an array of complex64"),
        (csr_array(COMPLEX), "X is an array of complex128"),
        (COMPLEX.tolist(), "column 'x0' holds complex numbers"),
        (pd.DataFrame({"a": np.arange(20.0), "b": COMPLEX[:, 0]}), "column 'b' holds complex numbers"),
        (pd.DataFrame(COMPLEX, columns=["a", "b"]), "column 'a' holds complex numbers"),
    ],
    ids=["array", "single precision", "sparse", "lists", "one column", "all columns"],
)
@pytest.mark.parametrize("estimator", [cb.NaiveBayes, cb.GaussianNB, cb.BernoulliNB, cb.BayesClassifier])
def test_complex_numbers(estimator, table, named):
    with pytest.raises(
        ValueError, match=f"Complex data not supported: {named}; give real and imaginary parts"
    ):
        estimator().fit(table, np.arange(20) % 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0], [1, 2]] * 10, "got a list whose entries have different lengths"),
        (pd.Series([[0], [1, 2]] * 10), "got a list in some rows"),
        ([{"a": 1}, {"b": 2}] * 10, "got a dict in some rows"),
    ],
)
def test_several_values_in_a_label(y, message):
    with pytest.raises(ValueError, match=f"y must have one label for each row, {message}"):
        cb.NaiveBayes().fit(np.zeros((20, 2)), y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([[0], [1, 2]] * 10, "sample_weight must have one number for each row: setting an array element"),
        (["heavy"] * 20, "sample_weight must have one number for each row: .*heavy"),
        (np.full(20, 1j), "sample_weight must have one number for each row: .*an array of complex128"),
    ],
)
def test_weights_that_are_no_numbers(weight, message):
    with pytest.raises(ValueError, match=message):
        cb.NaiveBayes().fit(np.zeros((20, 2)), np.arange(20) % 2, sample_weight=weight)
