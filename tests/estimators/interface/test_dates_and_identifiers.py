"""Dates, durations, decimals, periods, intervals and identifiers in all estimators of tables, from all libraries."""

import datetime
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import train_test_split

import calibayes as cb
from calibayes import ColumnWarning
from calibayes.datasets import load_penguins
from calibayes.families import Categorical, Gaussian

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TABULAR = [
    cb.NaiveBayes(),
    cb.NaiveBayes(discretize="kmeans"),
    cb.KernelNB(),
    cb.TreeAugmentedNB(),
    cb.KDependenceBayes(),
    cb.AODE(),
    cb.GenerativeClassifier(),
    cb.JointKernelClassifier(),
    cb.BayesClassifier(families=["kernel", "tied", "full", "near"], cv=2),
    cb.TradeOffCV(cb.NaiveBayes(discretize="kmeans"), cv=2),
]
N = 240


def visits():
    """Dates whose month decides the class, some of them missing, beside a number and a level."""
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 24 * 900, N)
    when = pd.Series(pd.Timestamp("2021-01-01") + pd.to_timedelta(hours, unit="h"))
    y = np.where(when.dt.month > 6, "late", "early")
    when[rng.random(N) < 0.05] = pd.NaT
    return pd.DataFrame({"x": rng.normal(size=N), "when": when, "sex": rng.choice(["f", "m"], N)}), y


def as_rows(X):
    """A list of rows with Python's own dates."""
    return [[None if pd.isna(cell) else cell for cell in row] for row in X.astype(object).to_numpy().tolist()]


FORMS = {
    "pandas": lambda X: X,
    "pandas, nanoseconds": lambda X: X.astype({"when": "datetime64[ns]"}),
    "pandas, pyarrow types": lambda X: X.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "objects": lambda X: np.array(as_rows(X), dtype=object),
    "lists": as_rows,
    "text": lambda X: X.assign(when=X["when"].dt.strftime("%Y-%m-%d %H:%M:%S")),
    "text of polars": lambda X: pl.from_pandas(FORMS["text"](X)),
    "other text": lambda X: X.assign(when=X["when"].dt.strftime("%d.%m.%Y %H:%M")),
}


@pytest.mark.parametrize("estimator", TABULAR, ids=lambda estimator: type(estimator).__name__)
def test_the_month_of_a_date_is_found(estimator):
    X, y = visits()
    training, held_out = train_test_split(np.arange(N), test_size=0.4, random_state=0)
    model = clone(estimator).fit(X.iloc[training], y[training])
    known = X["when"].notna().to_numpy()[held_out]
    assert model.score(X.iloc[held_out][known], y[held_out][known]) > 0.9
    assert model.feature_names_in_.tolist() == ["x", "when", "sex"]
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimator", TABULAR[:5:4], ids=lambda estimator: type(estimator).__name__)
def test_all_libraries_give_the_same(form, estimator):
    X, y = visits()
    expected = clone(estimator).fit(X, y).predict_proba(X)
    table = FORMS[form](X)
    assert_array_equal(clone(estimator).fit(table, y).predict_proba(table), expected)


@pytest.mark.parametrize("form", ["pandas", "polars", "text", "objects"])
@pytest.mark.parametrize("estimator", TABULAR, ids=lambda estimator: type(estimator).__name__)
def test_a_row_is_encoded_as_it_was_in_training(form, estimator):
    """Alone, beside other rows, in another form of table, and by a model that was stored."""
    X, y = visits()
    table = FORMS[form](X)
    model = pickle.loads(pickle.dumps(clone(estimator).fit(table, y)))
    together = model.predict_proba(table)
    for row in (0, 7, int(np.argmax(X["when"].isna()))):
        alone = FORMS[form](X.iloc[row : row + 1])
        assert_allclose(model.predict_proba(alone)[0], together[row], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("estimator", TABULAR, ids=lambda estimator: type(estimator).__name__)
def test_new_dates(estimator):
    """Years and hours that did not occur in training, and no known date at all."""
    X, y = visits()
    early = X["when"].dt.year.to_numpy() == 2021
    model = clone(estimator).fit(X[early], y[early])
    assert np.isfinite(model.predict_proba(X[~early])).all()
    assert np.isfinite(model.predict_proba(X.assign(when=pd.Timestamp("1900-02-28 03:04:05")))).all()
    missing = model.predict_proba(X.assign(when=pd.NaT))
    assert_array_equal(missing, model.predict_proba(X.assign(when=None)))


def test_a_text_that_is_no_date_is_missing():
    X, y = visits()
    text = FORMS["text"](X)
    model = cb.NaiveBayes().fit(text, y)
    with pytest.warns(
        ColumnWarning, match="'when': 1 of 240 cells, such as 'soon', are no dates written as YYYY"
    ):
        changed = model.predict_proba(text.assign(when=["soon", *text["when"][1:]]))
    assert_array_equal(changed, model.predict_proba(text.assign(when=[None, *text["when"][1:]])))


def test_text_and_dates_are_interchangeable():
    X, y = visits()
    model = cb.NaiveBayes().fit(FORMS["text"](X), y)
    assert_array_equal(model.predict_proba(X), model.predict_proba(FORMS["text"](X)))


def test_numbers_in_place_of_dates():
    X, y = visits()
    model = cb.NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="column 'when' held dates in training and now holds other values"):
        model.predict(X.assign(when=1.0))


def test_hours_are_those_of_the_time_zone():
    X, y = visits()
    berlin = X.assign(when=X["when"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))
    y = np.where(berlin["when"].dt.hour < 12, "am", "pm")
    known = berlin["when"].notna().to_numpy()
    model = cb.GenerativeClassifier().fit(berlin[known], y[known])
    assert model.score(berlin[known], y[known]) == 1.0
    elsewhere = berlin.assign(when=berlin["when"].dt.tz_convert("Asia/Tokyo"))
    assert_array_equal(model.predict_proba(elsewhere), model.predict_proba(berlin))
    polars = pl.from_pandas(berlin)
    assert_array_equal(
        cb.GenerativeClassifier().fit(polars.filter(known), y[known]).predict_proba(polars),
        model.predict_proba(berlin),
    )
    with pytest.raises(ValueError, match="'when' had a time zone in training and now have no time zone"):
        model.predict(X)


def test_dates_with_and_without_a_time_zone():
    aware = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    cells = np.array([[aware], [datetime.datetime(2024, 1, 1)]] * 10, dtype=object)
    with pytest.raises(ValueError, match="column 'x0' mixes dates with and without a time zone"):
        cb.NaiveBayes().fit(cells, [0, 1] * 10)


@pytest.mark.parametrize(
    "estimator", [*TABULAR[:3], *TABULAR[4:7]], ids=lambda estimator: type(estimator).__name__
)
def test_explanations_name_the_column(estimator):
    X, y = visits()
    model = clone(estimator).fit(X, y)
    reasons = model.explain(X)
    assert set(reasons.names) <= {"class prior", "x", "when", "sex", "columns together"}
    assert "when" in reasons.names
    posterior = np.sort(model.predict_log_proba(X), axis=1)
    assert_allclose(reasons.log_odds, posterior[:, -1] - posterior[:, -2], rtol=1e-6, atol=1e-6)


def test_edges_of_a_tree_name_the_columns():
    X, y = visits()
    names = cb.TreeAugmentedNB().fit(X, y).explain(X).names
    assert {end for name in names for end in name.split(" | ")} <= {"class prior", "x", "when", "sex"}


SAMPLED = [
    cb.NaiveBayes(rule="ml"),
    cb.TreeAugmentedNB(rule="ml"),
    cb.BayesClassifier(families=["kernel"], cv=2),
]


@pytest.mark.parametrize("form", ["pandas", "polars", "text", "other text"])
@pytest.mark.parametrize("estimator", SAMPLED, ids=lambda estimator: type(estimator).__name__)
def test_samples_and_filled_cells_are_dates(form, estimator):
    X, y = visits()
    table = FORMS[form](X)
    model = clone(estimator).fit(table, y)
    sampled, _ = model.sample(200, random_state=0)
    filled = model.fill(table)
    assert list(sampled.columns) == list(filled.columns) == ["x", "when", "sex"]
    drawn, known = (pl.DataFrame(frame)["when"] for frame in (sampled, table))
    assert drawn.dtype == known.dtype
    first, last = X["when"].min(), X["when"].max()
    dates = pd.to_datetime(drawn.drop_nulls().to_pandas(), dayfirst=form == "other text")
    assert dates.between(first.floor("min"), last).all()
    completed = pl.DataFrame(filled)["when"]
    assert completed.null_count() == 0
    present = ~known.is_null().to_numpy()
    assert completed.filter(present).to_list() == known.filter(present).to_list()


def test_samples_given_a_date():
    X, y = visits()
    model = cb.NaiveBayes(rule="ml").fit(X, y)
    day = pd.Timestamp("2022-09-05 10:00")
    rows, labels = model.sample(100, given={"when": day}, random_state=0)
    assert (rows["when"] == day).all()
    assert (labels == "late").mean() > 0.95


@pytest.mark.filterwarnings("ignore::calibayes.ColumnWarning")
def test_a_given_date_must_be_one():
    X, y = visits()
    as_text = X.assign(when=X["when"].dt.strftime("%Y-%m-%d"))
    for table in (X, as_text):
        model = cb.NaiveBayes(rule="ml").fit(table, y)
        with pytest.raises(ValueError, match="given: 'soon' cannot be read as a value of column 'when'"):
            model.sample(3, given={"when": "soon"})
        rows, _ = model.sample(3, given={"when": "2022-09-05"}, random_state=0)
        assert rows["when"].dtype.kind == table["when"].dtype.kind
        assert (pd.to_datetime(rows["when"]) == pd.Timestamp("2022-09-05")).all()


def test_days_stay_days():
    X, y = visits()
    days = pl.from_pandas(X).with_columns(pl.col("when").cast(pl.Date))
    model = cb.NaiveBayes(rule="ml").fit(days, y)
    assert model.sample(5, random_state=0)[0]["when"].dtype == pl.Date
    assert model.fill(days)["when"].dtype == pl.Date
    assert "when (hour)" not in [column.name for column in model.schema_.columns]


def test_periods_are_dates():
    X, y = visits()
    periods = X.assign(when=X["when"].dt.to_period("M"))
    starts = X.assign(when=periods["when"].dt.to_timestamp())
    model, expected = cb.NaiveBayes().fit(periods, y), cb.NaiveBayes().fit(starts, y)
    assert_array_equal(model.predict_proba(periods), expected.predict_proba(starts))
    assert "when (weekday)" not in [column.name for column in model.schema_.columns]


def test_durations_are_seconds():
    X, y = visits()
    durations = X["when"] - pd.Timestamp("2021-01-01")
    left, right = X.assign(when=durations), X.assign(when=durations.dt.total_seconds())
    model = cb.NaiveBayes(rule="ml").fit(left, y)
    assert_array_equal(model.predict_proba(left), cb.NaiveBayes(rule="ml").fit(right, y).predict_proba(right))
    assert model.fill(left)["when"].dtype == durations.dtype
    polars = pl.from_pandas(left)
    assert_array_equal(
        cb.NaiveBayes(rule="ml").fit(polars, y).predict_proba(polars), model.predict_proba(left)
    )


NUMBERS = {
    "decimals": lambda number: Decimal(int(number)) / 8,
    "fractions": lambda number: Fraction(int(number), 8),
    "times": lambda number: datetime.time(int(number) // 60 % 24, int(number) % 60),
    "intervals": lambda number: pd.Interval(number, number + 2),
}
AS_FLOATS = {
    "decimals": lambda number: int(number) / 8,
    "fractions": lambda number: int(number) / 8,
    "times": lambda number: (int(number) // 60 % 24) + int(number) % 60 / 60,
    "intervals": lambda number: number + 1.0,
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_objects_that_are_numbers(kind):
    cells, y = np.random.default_rng(0).integers(0, 1440, N), np.arange(N) % 2
    X = pd.DataFrame({"x": [NUMBERS[kind](cell) for cell in cells]})
    floats = pd.DataFrame({"x": [AS_FLOATS[kind](cell) for cell in cells]})
    model, expected = cb.NaiveBayes().fit(X, y), cb.NaiveBayes().fit(floats, y)
    assert_allclose(model.predict_proba(X), expected.predict_proba(floats), rtol=1e-12)


def test_open_intervals():
    ends = [pd.Interval(-np.inf, 2.0), pd.Interval(2.0, 4.0), pd.Interval(4.0, np.inf)] * 10
    model = cb.GaussianNB(rule="ml").fit(pd.DataFrame({"x": ends}), [0, 0, 1] * 10)
    assert_array_equal(model.theta_.ravel(), [2.5, 4.0])


@pytest.mark.parametrize("unit", ["s", "ns", "D"])
def test_an_array_of_dates(unit):
    X, y = visits()
    dates = X[["when"]].dropna().to_numpy().astype(f"M8[{unit}]")
    y = y[X["when"].notna()]
    model = cb.NaiveBayes(rule="ml").fit(dates, y)
    assert model.score(dates, y) > 0.9
    assert model.sample(3, random_state=0)[0].dtype.kind == "M"
    days = dates.astype("M8[us]").astype(np.int64) / 86400e6
    gaussian = cb.GaussianNB(rule="ml")
    assert_allclose(gaussian.fit(dates, y).theta_, clone(gaussian).fit(days, y).theta_, rtol=1e-12)


def test_kinds_of_dates():
    X, y = visits()

    def names(kinds):
        return [column.name for column in cb.NaiveBayes(kinds=kinds).fit(X, y).schema_.columns]

    assert names(None) == ["x", "when", "sex", "when (month)", "when (weekday)", "when (hour)"]
    assert names({"when": "kernel"}) == ["x", "when", "sex"]
    text = FORMS["text"](X)
    for table in (X, text):
        column = cb.NaiveBayes(kinds={"when": "categorical"}).fit(table, y).schema_["when"]
        assert column.reason == f"given: {X['when'].nunique()} levels"
    declared = cb.NaiveBayes().fit(text.astype({"when": "category"}), y)
    assert declared.schema_["when"].kind == "categorical"
    assert "text read as dates (YYYY-MM-DD)" in cb.NaiveBayes().fit(text, y).schema_["when"].reason


def test_families_that_name_a_date():
    X, y = visits()
    families = [("day", Gaussian(), ["when"]), ("rest", Categorical(alpha=1.0), [-1])]
    model = cb.GenerativeClassifier(families=families).fit(X.dropna(), y[X["when"].notna()])
    assert model.fitted_.binding.chosen == {"day": (1,), "rest": (2,)}


def test_dates_whose_day_and_month_cannot_be_told_apart():
    days = [f"{1 + row % 9:02d}/{1 + row % 11:02d}/2024" for row in range(N)]
    X, y = pd.DataFrame({"x": np.arange(N), "when": days}), np.arange(N) % 2
    with pytest.warns(ColumnWarning, match="'when' holds dates in which day and month cannot be told apart"):
        model = cb.NaiveBayes().fit(X, y)
    assert model.schema_["when"].kind == "categorical"


def test_counts_are_no_dates():
    X, y = visits()
    with pytest.raises(ValueError, match="column 'when' does not hold numbers"):
        cb.MultinomialNB().fit(X[["when"]], y)


def with_identifier():
    """Penguins with a column in which every row has its own text."""
    penguins = load_penguins()
    X = penguins.data
    return X, X.assign(tag=[f"bird {row}" for row in range(len(X))]), penguins.target


@pytest.mark.parametrize("estimator", TABULAR, ids=lambda estimator: type(estimator).__name__)
def test_identifiers_are_left_out_and_named(estimator):
    plain, X, y = with_identifier()
    with pytest.warns(ColumnWarning, match="column 'tag' left out: nearly all values are distinct"):
        model = clone(estimator).fit(X, y)
    assert_allclose(model.predict_proba(X), clone(estimator).fit(plain, y).predict_proba(plain), rtol=1e-9)
    assert model.n_features_in_ == X.shape[1]
    if hasattr(model, "schema_"):
        assert model.schema_["tag"].kind == "identifier"
        assert model.schema_["tag"].reason == f"{len(X)} distinct values in {len(X)} rows: left out"
    if hasattr(model, "explain"):
        assert np.abs(model.explain(X[:5]).contributions[:, -1]).max() < 1e-12  # differences of equal sums
    changed = X.assign(tag="unheard of")
    assert_array_equal(model.predict_proba(changed), model.predict_proba(X))


def test_numbers_written_as_text_are_named():
    rng = np.random.default_rng(0)
    X, y = (
        pd.DataFrame({"x": rng.normal(size=60), "text": rng.normal(size=60).astype(str)}),
        np.arange(60) % 2,
    )
    with pytest.warns(ColumnWarning, match="'text' holds numbers written as text: convert it to numbers"):
        cb.NaiveBayes().fit(X, y)
    with pytest.raises(ValueError, match="'x', 'text' hold numbers written as text: convert them to numbers"):
        cb.NaiveBayes().fit(X.astype(str), y)


def test_identifiers_are_used_on_request():
    _, X, y = with_identifier()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        given = cb.NaiveBayes(kinds={"tag": "categorical"}).fit(X, y)
        declared = cb.BayesClassifier(families=["kernel"], cv=2).fit(X.astype({"tag": "category"}), y)
        named = cb.GenerativeClassifier(families=[("tag", Categorical(alpha=1.0), ["tag"])]).fit(X, y)
    assert given.schema_["tag"].reason == f"given: {len(X)} levels"
    assert declared.schema_["tag"].kind == "categorical"
    assert named.score(X, y) == 1.0


def test_a_column_is_left_out_on_request():
    plain, _, y = with_identifier()
    X = plain.assign(number=np.arange(len(plain)))
    model = cb.NaiveBayes(kinds={"number": "identifier"}).fit(X, y)
    assert_array_equal(model.predict_proba(X), cb.NaiveBayes().fit(plain, y).predict_proba(plain))
    assert cb.NaiveBayes().fit(X, y).schema_["number"].kind == "kernel"


def test_few_rows_cannot_tell_identifiers():
    X = pd.DataFrame({"x": np.arange(19.0), "tag": [f"row {row}" for row in range(19)]})
    assert cb.NaiveBayes(rule="ml").fit(X, np.arange(19) % 2).schema_["tag"].kind == "categorical"


def test_rows_without_weight_have_no_influence():
    X, y = visits()
    text = FORMS["text"](X)
    spoiled = pd.concat([text, text.assign(when="soon")], ignore_index=True)
    weight = np.repeat([1.0, 0.0], N)
    model = cb.NaiveBayes().fit(spoiled, np.concatenate([y, y]), weight)
    assert_array_equal(model.predict_proba(text), cb.NaiveBayes().fit(text, y).predict_proba(text))


def test_only_identifiers():
    with pytest.raises(ValueError, match="nearly all values are distinct in every column"):
        cb.NaiveBayes().fit(pd.DataFrame({"tag": [f"row {row}" for row in range(30)]}), np.arange(30) % 2)


def test_further_rows_are_converted_as_the_first():
    X, y = visits()
    parts = [slice(0, 100), slice(100, N)]
    model = cb.NaiveBayes(rule="ml", discretize=None, kinds={"when": "gaussian"})
    for part in parts:
        model.partial_fit(X[part], y[part], classes=["early", "late"])
    whole = cb.NaiveBayes(rule="ml", kinds={"when": "gaussian"}).fit(X, y)
    first, last = (m.parameters_["gaussian"]["mean"] for m in (model, whole))
    assert_allclose(first, last, rtol=1e-12)


def test_members_accept_the_original_table():
    X, y = visits()
    model = cb.BayesClassifier(families=["kernel", "near"], cv=2).fit(X, y)
    for member in model.models_.values():
        assert member.feature_names_in_.tolist() == ["x", "when", "sex"]
        assert np.isfinite(member.predict_proba(X)).all()


def test_a_missing_date_counts_once():
    """The evidence of a missing date is that of one column, though it has four."""
    X, y = visits()
    X.loc[::5, "when"] = pd.NaT
    kernel, tied = (
        cb.BayesClassifier(families=[name], cv=2).fit(X, y).density_.fitted_ for name in ("kernel", "tied")
    )
    assert kernel.binding.encoders["kernel"].layout()["gappy"] == (False, True, *[False] * 4)
    names = tied.binding.encoders["tied"].names
    assert [name for name in names if "missing" in name] == ["when missing"]


def test_the_first_cell_may_be_missing():
    X, y = visits()
    for missing in (None, np.nan, pd.NA):
        column = FORMS["text"](X)["when"].astype(object)
        column[0] = missing
        model = cb.NaiveBayes().fit(X.assign(when=column), y)
        assert model.schema_["when"].reason.startswith("text read as dates (YYYY-MM-DD), in days")


@pytest.mark.parametrize("library", [pl.from_pandas, pa.Table.from_pandas])
def test_times_decimals_and_days_of_other_libraries(library):
    numbers, y = np.random.default_rng(0).integers(0, 1440, N), np.arange(N) % 2
    times = [NUMBERS["times"](number) for number in numbers]
    decimals = [NUMBERS["decimals"](number) for number in numbers]
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(number)) for number in numbers]
    X = pd.DataFrame({"time": times, "decimal": decimals, "day": days})
    table = library(X)
    assert_allclose(
        cb.NaiveBayes().fit(table, y).predict_proba(table),
        cb.NaiveBayes().fit(X, y).predict_proba(X),
        rtol=1e-12,
    )


def test_the_summary_names_columns_that_are_left_out():
    _, X, y = with_identifier()
    with pytest.warns(ColumnWarning):
        model = cb.BayesClassifier(families=["kernel"], cv=2).fit(X, y)
    assert f"column 'tag' was left out: {len(X)} distinct values in {len(X)} rows" in model.summary()


def test_models_of_different_calendars_are_not_merged():
    X, y = visits()
    model = cb.NaiveBayes(rule="ml", discretize=None, kinds={"x": "gaussian", "when": "gaussian"})
    halves = [clone(model).fit(X[part], y[part]) for part in (slice(0, 120), slice(120, N))]
    whole = clone(model).fit(X, y)
    assert_allclose(halves[0].merge(halves[1]).predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    days = X.assign(when=X["when"].dt.floor("D"))
    plain = cb.GenerativeClassifier(rule="ml")
    with pytest.raises(ValueError, match="different columns"):
        clone(plain).fit(X, y).merge(clone(plain).fit(days, y))
