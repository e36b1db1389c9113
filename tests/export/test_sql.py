"""Exported statements compute what models predict, in databases."""

import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from calibayes import (
    GaussianNB,
    JointKernelClassifier,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    PosteriorMixture,
)
from calibayes.export.evaluate import evaluate
from calibayes.export.families.gaussian import MOST_ELIMINATED, WideCovarianceWarning
from calibayes.export.model import model_expressions
from calibayes.export.sql import dialects, to_sql
from calibayes.export.sql.statement import output_names
from tests.export.cases import CASES, case, mixed, numbers
from tests.export.databases import (
    postgres,
    run_duckdb,
    run_postgres,
    run_sqlite,
    server_folder,
    server_user,
    sqlite_has_functions,
)
from tests.export.tables import as_columns
from tests.seeds import generator

IN_SQLITE = [
    "gaussian",
    "categorical",
    "naive Bayes",
    "missing cells as levels",
    "tree",
    "QDA",
    "logistic regression",
]
IN_POSTGRES = [
    *("gaussian", "categorical", "naive Bayes", "naive Bayes, dates"),
    *("missing cells as levels", "tree", "QDA"),
]
PRECISION = {"rtol": 0, "atol": 1e-9}


def predicted(name):
    """The probabilities that a model predicts for the rows of its case."""
    model, rows = case(name)
    return model.predict_proba(rows if hasattr(model, "feature_names_in_") else rows.to_numpy(dtype=float))


every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_expressions_predict_what_the_model_predicts(name):
    model, rows = case(name)
    found = evaluate(model_expressions(model).probabilities, as_columns(rows), len(rows))
    np.testing.assert_allclose(found, predicted(name), **PRECISION)


@every_case
def test_duckdb_predicts_what_the_model_predicts(name):
    model, rows = case(name)
    found, names = run_duckdb(rows, model.to_sql("visits"))
    np.testing.assert_allclose(found, predicted(name), **PRECISION)
    assert names == [f"p_{label}" for label in model.classes_]


@pytest.mark.skipif(not sqlite_has_functions(), reason="SQLite was compiled without mathematical functions")
@pytest.mark.parametrize("name", IN_SQLITE)
def test_sqlite_predicts_what_the_model_predicts(name):
    model, rows = case(name)
    np.testing.assert_allclose(
        run_sqlite(rows, model.to_sql("visits", dialect="sqlite")), predicted(name), **PRECISION
    )


@pytest.mark.skipif(server_folder() is None or server_user() is None, reason="there is no PostgreSQL server")
def test_postgres_predicts_what_the_models_predict():
    with postgres() as run:
        for name in IN_POSTGRES:
            model, rows = case(name)
            found = run_postgres(run, rows, model.to_sql("visits", dialect="postgres"))
            np.testing.assert_allclose(found, predicted(name), **PRECISION, err_msg=name)


@pytest.mark.parametrize(
    "dialect", ["bigquery", "clickhouse", "mysql", "redshift", "snowflake", "spark", "trino", "tsql"]
)
def test_other_dialects_are_parsed_as_one_select(dialect):
    model, rows = case("naive Bayes, kinds")
    (parsed,) = sqlglot.parse(model.to_sql("shop.visits", dialect=dialect), dialect=dialect)
    assert isinstance(parsed, sqlglot.exp.Select)
    assert parsed.named_selects == [f"p_{label}" for label in model.classes_]
    read = {column.name for column in parsed.find_all(sqlglot.exp.Column) if column.table == "data"}
    assert read == {str(column) for column in rows.columns}


# -- names ---------------------------------------------------------------------------------------------------------


@cache
def two_columns():
    rng = generator(40)
    y = rng.integers(0, 2, 60)
    return rng.normal(size=60) + y, rng.choice(np.array(["a", "b"], dtype=object), 60), y


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=8, deadline=None)
@given(st.lists(NAMES, min_size=5, max_size=5, unique_by=str.casefold))
@example(["select", 'a"; DROP TABLE visits; --', "it's", "Upper Case", "data"])
@example(["v0", "layer_0", "p_0", "x.y", "`tick`"])
@example(["\\", "%s", "--", "/*", "ä ö"])
def test_names_and_levels_may_be_anything(names):
    table, number, level, first, second = names
    x, letters, y = two_columns()
    frame = pd.DataFrame({number: x, level: np.where(letters == "a", first, second)})
    model = NaiveBayes(rule="ml", kinds={number: "gaussian", level: "categorical"}).fit(
        frame, np.array([first, second], dtype=object)[y]
    )
    found, columns = run_duckdb(frame, model.to_sql((table,)), table)
    np.testing.assert_allclose(found, model.predict_proba(frame), **PRECISION)
    assert columns == [f"p_{label}" for label in model.classes_]
    # A quoted name in BigQuery is a path, whose parts are divided by dots: no table there has a dot in its name.
    for dialect in ("mysql", "postgres", "snowflake", *(() if "." in table else ("bigquery",))):
        parsed = sqlglot.parse_one(model.to_sql((table,), dialect=dialect), dialect=dialect)
        assert {found.name for found in parsed.find_all(sqlglot.exp.Table) if found.alias == "data"} == {
            table
        }


@pytest.mark.parametrize("labels", [[1, 2], [True, False], [1.0, -2.0], ["yes", "no"], ["a", "A"]])
def test_columns_are_named_after_the_classes(labels):
    x, _, y = two_columns()
    model = GaussianNB(rule="ml").fit(x[:, None], np.array(labels)[y])
    found, names = run_duckdb(pd.DataFrame({"x0": x}), model.to_sql("visits"))
    np.testing.assert_allclose(found, model.predict_proba(x[:, None]), **PRECISION)
    assert len({name.casefold() for name in names}) == 2
    assert names[0] == f"p_{model.classes_[0]}"


def test_names_of_columns_stay_different_where_case_is_ignored():
    assert output_names(["a", "A", "b", "a_2"]) == ["p_a", "p_A_2", "p_b", "p_a_2_2"]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("visits", '"visits"'),
        ("shop.visits", '"shop"."visits"'),
        (("my.shop", 'the "visits"'), '"my.shop"."the ""visits"""'),
        ("a.b.c", '"a"."b"."c"'),
    ],
)
def test_a_table_is_quoted(table, expected):
    assert f"FROM {expected} AS " in case("gaussian")[0].to_sql(table)


# -- rows ----------------------------------------------------------------------------------------------------------


def test_rows_keep_their_order():
    model, _ = case("LDA")
    X = np.tile(numbers()[0], (400, 1)) + np.arange(400 * 240)[:, None] * 1e-7
    found, _ = run_duckdb(pd.DataFrame(X, columns=[f"x{j}" for j in range(4)]), model.to_sql("visits"))
    np.testing.assert_allclose(found, model.predict_proba(X), **PRECISION)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e101, -1e150])
@pytest.mark.parametrize("run", [run_duckdb, run_sqlite])
def test_rows_that_the_model_refuses_have_no_probabilities(value, run):
    model, _ = case("gaussian")
    X = np.array([[0.5, 0.5, 0.5, 0.5], [value, 0.5, 0.5, 0.5], [np.nan] * 4])
    with pytest.raises(ValueError, match=r"infinity|1e"):
        model.predict_proba(X)
    dialect = "duckdb" if run is run_duckdb else "sqlite"
    result = run(pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]), model.to_sql("visits", dialect=dialect))
    found = result[0] if run is run_duckdb else result
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[[0, 2]], model.predict_proba(X[[0, 2]]), **PRECISION)


def test_missing_or_negative_counts_have_no_probabilities():
    model, rows = case("multinomial")
    assert isinstance(model, MultinomialNB)
    frame = rows.iloc[:3].copy()
    frame.iloc[0, 0], frame.iloc[1, 1] = np.nan, -1.0
    found, _ = run_duckdb(frame, model.to_sql("visits"))
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [True, True, False])


def test_wide_full_covariances_predict_complete_rows_only():
    X, y = numbers(MOST_ELIMINATED + 1, 400)
    model = LinearDiscriminantAnalysis(rule="ml").fit(X, y)
    with pytest.warns(WideCovarianceWarning, match="missing value"):
        statement = model.to_sql("visits")
    rows = X[:4].copy()
    rows[2, 3] = np.nan
    found, _ = run_duckdb(pd.DataFrame(rows, columns=[f"x{j}" for j in range(X.shape[1])]), statement)
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False, False, True, False])
    np.testing.assert_allclose(found[[0, 1, 3]], model.predict_proba(rows[[0, 1, 3]]), **PRECISION)


# -- what cannot be exported ---------------------------------------------------------------------------------------


def test_an_unknown_dialect_is_refused_with_a_list():
    with pytest.raises(
        ValueError, match=r"unknown dialect 'sequel'; the dialects are .*bigquery.*duckdb.*postgres"
    ):
        case("gaussian")[0].to_sql("visits", dialect="sequel")
    assert len(dialects()) > 10


@pytest.mark.parametrize("table", ["", "a.b.c.d", "a..b", (), ("a", 3), 3.5])
def test_what_names_no_table_is_refused(table):
    with pytest.raises(ValueError, match=re.escape(f"got {table!r}")):
        case("gaussian")[0].to_sql(table)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        GaussianNB().to_sql("visits")


def test_a_model_that_keeps_rows_is_refused():
    X, y = numbers(2, 60)
    with pytest.raises(
        TypeError, match=r"JointKernelClassifier cannot be exported: .*training rows.* Export a model"
    ):
        JointKernelClassifier().fit(X, y).to_sql("visits")


def test_an_average_names_the_member_that_is_refused():
    rng = generator(41)
    X = rng.normal(size=(80, 2))
    models = [("near", JointKernelClassifier()), ("gaussian", GaussianNB(rule="ml"))]
    model = PosteriorMixture(models=models, cv=2).fit(X, X[:, 0] * X[:, 1] > 0)
    assert model.weights_["near"] > 0
    with pytest.raises(
        TypeError, match=r"PosteriorMixture cannot be exported: its member 'near' \(JointKernel"
    ):
        model.to_sql("visits")


def test_dates_written_as_text_are_refused():
    X, y = mixed()
    frame = pd.DataFrame({"day": X["seen"].dt.strftime("%d.%m.%Y"), "height": X["height"]})
    with pytest.raises(TypeError, match="'day' holds dates written as text"):
        NaiveBayes(rule="ml").fit(frame, y).to_sql("visits")


def test_dates_are_refused_where_no_function_reads_them():
    with pytest.raises(
        TypeError, match=r"'seen' holds dates, which are exported for .*duckdb.*, not for sqlite"
    ):
        case("naive Bayes, dates")[0].to_sql("visits", dialect="sqlite")


def test_a_missing_package_is_named(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("calibayes.export.sql")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError, match=r"pip install 'calibayes\[sql\]'"):
        case("gaussian")[0].to_sql("visits")
    assert callable(to_sql)
