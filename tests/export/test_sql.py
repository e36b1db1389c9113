"""Exported statements compute what models predict, in databases."""

import datetime
import re
import sqlite3
import subprocess
import sys
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from calibayes import (
    AODE,
    GaussianNB,
    JointKernelClassifier,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    PosteriorMixture,
)
from calibayes.export import expressions as ex
from calibayes.export.family_densities import MOST_ELIMINATED, WideCovarianceWarning
from calibayes.export.model_expressions import model_expressions
from calibayes.export.sql import dialects, output_names, select_statement, stored_name, to_sql
from tests.export.cases import CASES, case, mixed, numbers
from tests.export.databases import (
    arrow_table,
    postgres,
    quoted,
    run_duckdb,
    run_postgres,
    run_sqlite,
    server_folder,
    server_user,
    sqlite_has_functions,
)
from tests.export.evaluate import evaluate
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
    *("missing cells as levels", "tree", "QDA", "LDA, dense with gaps", "QDA, dense with gaps"),
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


@pytest.fixture(scope="module")
def server():
    """A function that runs a script in a PostgreSQL server."""
    if server_folder() is None or server_user() is None:
        pytest.skip("there is no PostgreSQL server")
    with postgres() as run:
        yield run


@pytest.mark.parametrize("name", IN_POSTGRES)
def test_postgres_predicts_what_the_model_predicts(name, server):
    model, rows = case(name)
    found = run_postgres(server, rows, model.to_sql("visits", dialect="postgres"))
    np.testing.assert_allclose(found, predicted(name), **PRECISION)


@every_case
def test_inner_queries_have_columns_of_numbers_alone(name):
    """Some databases, such as PostgreSQL, do not compare a boolean with a number."""
    probabilities = model_expressions(case(name)[0]).probabilities
    outputs = {f"p_{j}": p for j, p in enumerate(probabilities)}
    statement = select_statement(outputs, sqlglot.exp.to_table("visits"), "duckdb")
    columns = [column.this.unnest() for query in statement.ctes for column in query.this.expressions]
    assert columns
    conditions = sqlglot.exp.Predicate | sqlglot.exp.Connector | sqlglot.exp.Not | sqlglot.exp.Boolean
    assert [column.sql() for column in columns if isinstance(column, conditions)] == []


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


# Names that a database might take for the same one: other cases, letters without a simple other case, long ones.
ALIKE = st.tuples(
    st.sampled_from(["", "é" * 28, "long" * 15]),
    st.text("cCäÄß\u017fsS\u212aKk\u0131Ii", min_size=1, max_size=4),
).map("".join)


def has_columns(names, dialect, server):
    """Whether a database has a table with columns of these names."""
    create = f"CREATE TABLE visits ({', '.join(f'{quoted(name)} integer' for name in names)})"
    try:
        if dialect == "postgres":
            server(f"DROP TABLE IF EXISTS visits; {create};")
            return True
        with (duckdb if dialect == "duckdb" else sqlite3).connect(":memory:") as connection:
            connection.execute(create)
    except (duckdb.Error, sqlite3.Error, subprocess.CalledProcessError):
        return False
    return True


@pytest.mark.parametrize(("dialect", "most"), [("duckdb", 20), ("sqlite", 50), ("postgres", 12)])
def test_names_that_are_not_refused_are_told_apart_by_the_database(dialect, most, request):
    server = request.getfixturevalue("server") if dialect == "postgres" else None

    @settings(max_examples=most, deadline=None)
    @given(st.lists(ALIKE, min_size=2, max_size=2, unique=True))
    @example(["c", "C"])
    @example(["long" * 16 + "a", "long" * 16 + "b"])
    def are_told_apart(names):
        are_refused = stored_name(names[0], dialect) == stored_name(names[1], dialect)
        assert are_refused or has_columns(names, dialect, server)

    are_told_apart()


LONG = "long" * 15


@pytest.mark.parametrize(
    ("names", "refusing", "accepting"),
    [
        (["c", "C"], ["duckdb", "sqlite", "mysql", "bigquery", "tsql"], ["postgres", "snowflake"]),
        ([f"{LONG} one", f"{LONG} two"], [], ["duckdb", "postgres", "redshift"]),
        ([f"{LONG}{LONG} one", f"{LONG}{LONG} two"], ["postgres"], ["duckdb", "redshift"]),
        ([f"{LONG}{LONG} seven 1", f"{LONG}{LONG} seven 2"], ["postgres", "redshift"], ["sqlite"]),
    ],
)
@pytest.mark.parametrize("is_read", [True, False], ids=["both are read", "one is read"])
def test_columns_that_a_database_takes_for_the_same_one_are_refused(names, refusing, accepting, is_read):
    x, _, y = two_columns()
    frame = pd.DataFrame({names[0]: x, names[1]: -x * y})
    kinds = {} if is_read else {names[0]: "identifier"}
    model = NaiveBayes(rule="ml", kinds=kinds).fit(frame, y)
    for dialect in refusing:
        with pytest.raises(
            TypeError, match=f"{names[0]!r} and {names[1]!r} have the same name in {dialect}, .* rename one"
        ):
            model.to_sql("visits", dialect=dialect)
    for dialect in accepting:
        assert model.to_sql("visits", dialect=dialect)


@pytest.mark.parametrize(("name", "problem"), [("", "is empty"), ("a\0b", "has a zero character")])
@pytest.mark.parametrize("export", [lambda model: model.to_sql("visits"), lambda model: model.to_onnx()])
def test_names_that_no_database_has_are_refused(name, problem, export):
    pytest.importorskip("onnx")
    x, letters, y = two_columns()
    frame = pd.DataFrame({"x": x, name: letters})
    with pytest.raises(TypeError, match=re.escape(f"the name of column {name!r} {problem}: rename it")):
        export(NaiveBayes(rule="ml").fit(frame, y))
    assert export(NaiveBayes(rule="ml", kinds={name: "identifier"}).fit(frame, y))


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
    names = output_names([f"{LONG}é {number}" for number in range(12)], "postgres")
    assert len({name.casefold() for name in names}) == 12
    assert max(len(name.encode()) for name in names) <= 63


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


@pytest.mark.parametrize("table", ["layer_0", "Layer_1"])
@pytest.mark.parametrize(("run", "dialect"), [(run_duckdb, "duckdb"), (run_sqlite, "sqlite")])
def test_a_table_may_have_the_name_of_an_inner_query(table, run, dialect):
    model, rows = case("gaussian")
    result = run(rows, model.to_sql(table, dialect=dialect), table)
    found = result[0] if run is run_duckdb else result
    np.testing.assert_allclose(found, predicted("gaussian"), **PRECISION)


# -- cells ---------------------------------------------------------------------------------------------------------


def rows_of_collated(frame, collation, dialect, statement):
    """The result of a statement over a table whose column of text "t" has a collation."""
    created = f"CREATE TABLE visits (t VARCHAR COLLATE {collation}, x DOUBLE)"
    if dialect == "sqlite":
        with sqlite3.connect(":memory:") as connection:
            connection.execute(created)
            connection.executemany("INSERT INTO visits VALUES (?, ?)", frame.to_numpy(dtype=object).tolist())
            return np.array(connection.execute(statement).fetchall())
    with duckdb.connect() as connection:
        connection.execute(created)
        connection.register("given", arrow_table(frame))
        connection.execute("INSERT INTO visits SELECT * FROM given")
        return np.array(connection.execute(statement).fetchall())


@pytest.mark.parametrize(
    "levels", [["a", "A", "a "], ["a", "A", "a ", "B", "b", "\u00e9", "e\u0301", "Z", "_"]]
)
@pytest.mark.parametrize(
    ("dialect", "collation"), [("sqlite", "NOCASE"), ("sqlite", "RTRIM"), ("duckdb", "NOCASE")]
)
def test_text_is_compared_by_code_points_whatever_the_collation_of_the_column(levels, dialect, collation):
    rng = generator(42)
    text = np.array(levels, dtype=object)[rng.integers(0, len(levels), 200)]
    frame = pd.DataFrame({"t": text, "x": rng.normal(size=200)})
    y = np.where(rng.random(200) < 0.8, text == levels[0], rng.random(200) < 0.5)
    model = NaiveBayes(rule="ml", kinds={"t": "categorical"}).fit(frame, y)
    found = rows_of_collated(frame, collation, dialect, model.to_sql("visits", dialect=dialect))
    np.testing.assert_allclose(found, model.predict_proba(frame), **PRECISION)


@cache
def of_fixed_offset():
    """A model whose classes depend on the hour of a clock ahead of UTC, and its table."""
    rng = generator(43)
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    times = pd.Timestamp("2023-11-20 22:10", tz="UTC") + pd.to_timedelta(rng.integers(0, 9000, 300), unit="h")
    frame = pd.DataFrame({"seen": times.tz_convert(zone), "height": rng.normal(size=300)})
    y = np.where(rng.random(300) < 0.9, frame["seen"].dt.hour < 12, rng.random(300) < 0.5)
    return NaiveBayes(rule="ml").fit(frame, y), frame


def test_hours_of_a_fixed_offset():
    model, frame = of_fixed_offset()
    assert model.conversion_.converters[0].zone == "UTC+05:30"
    expected = model.predict_proba(frame)
    expressions = model_expressions(model).probabilities
    np.testing.assert_allclose(evaluate(expressions, as_columns(frame), len(frame)), expected, **PRECISION)
    np.testing.assert_allclose(run_duckdb(frame, model.to_sql("visits"))[0], expected, **PRECISION)


def test_hours_of_a_fixed_offset_in_postgres(server):
    """PostgreSQL reads the sign of "UTC+05:30" as POSIX does, west of Greenwich."""
    model, frame = of_fixed_offset()
    found = run_postgres(server, frame, model.to_sql("visits", dialect="postgres"))
    np.testing.assert_allclose(found, model.predict_proba(frame), **PRECISION)


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(rule="ml"),
        LinearDiscriminantAnalysis(rule="ml"),
        LinearDiscriminantAnalysis(rule="ml", encoder="dense"),
    ],
)
def test_tiny_numbers_do_not_underflow_in_postgres(model, server):
    """The mean of a class is exactly 0, so that the square of a residual may be smaller than any double."""
    rng = generator(44)
    y = np.arange(100) % 2
    X = np.column_stack([np.where(y, rng.normal(size=100) + 1, 0.0), rng.normal(size=100)])
    rows = np.array([[1e-200, 0.5], [-1e-320, np.nan], [0.0, 1.0], [0.5, 0.5]])
    model.fit(X, y)
    frame = pd.DataFrame(rows, columns=["x0", "x1"])
    found = run_postgres(server, frame, model.to_sql("visits", dialect="postgres"))
    np.testing.assert_allclose(found, model.predict_proba(rows), **PRECISION)


@pytest.mark.parametrize("table", [(1.0, np.nan, 3.0), (1.0, np.nan, 3.0, 4.0, 5.0, np.nan)])
@pytest.mark.parametrize(("run", "dialect"), [(run_duckdb, "duckdb"), (run_sqlite, "sqlite")])
def test_missing_entries_of_a_table_are_filled(table, run, dialect):
    entry = ex.TableEntry(table, ex.Once(ex.NumberColumn("code")))
    outputs = {"entry": entry, "filled": ex.Filled(entry, ex.Constant(9.0))}
    statement = select_statement(outputs, sqlglot.exp.to_table("visits", alias="data"), dialect).sql(dialect)
    codes = np.array([0.0, 1.0, 2.0, np.nan])
    result = run(pd.DataFrame({"code": codes}), statement)
    found = result[0] if run is run_duckdb else result
    np.testing.assert_array_equal(found, evaluate(list(outputs.values()), {"code": codes}, 4))
    assert found[:, 1].tolist() == [1.0, 9.0, 3.0, 9.0]


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


def test_values_that_are_needed_late_are_computed_late():
    """Many trees over few values would otherwise be columns of all inner queries up to the last one."""
    cells = [ex.NumberColumn(name) for name in "ab"]
    chain: ex.Expression = ex.Once(cells[0])
    for _ in range(6):
        chain = ex.Once(ex.Function("exp", chain))
    trees = [ex.Once(ex.Arithmetic("*", ex.Constant(float(n)), cells[1])) for n in range(50)]
    statement = select_statement({"sum": ex.Sum((chain, *trees))}, sqlglot.exp.to_table("t"), "duckdb")
    assert sum(len(query.this.expressions) > len(trees) for query in statement.ctes) == 1


@pytest.mark.parametrize(("run", "dialect"), [(run_duckdb, "duckdb"), (run_sqlite, "sqlite")])
def test_a_model_of_one_class_and_one_column(run, dialect):
    X = np.array([[0.0], [1.0], [2.0]])
    model = GaussianNB(rule="ml").fit(X, ["only"] * 3)
    result = run(pd.DataFrame(X, columns=["x0"]), model.to_sql("visits", dialect=dialect))
    assert (result[0] if run is run_duckdb else result).tolist() == [[1.0]] * 3


def test_class_frequencies_alone_are_exported():
    """An average in which no model predicts better than the class frequencies reads no column."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    model = PosteriorMixture(models=[("gaussian", GaussianNB(rule="ml"))], cv=2).fit(X, y)
    assert not model.models_
    found, _ = run_duckdb(pd.DataFrame(X, columns=["x0", "x1"]), model.to_sql("visits"))
    np.testing.assert_allclose(found, model.predict_proba(X), **PRECISION)


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
    with pytest.raises(ImportError, match=r"pip install sqlglot"):
        case("gaussian")[0].to_sql("visits")
    assert callable(to_sql)


def test_a_statement_of_too_many_numbers_is_refused_before_it_is_written(monkeypatch):
    """100 columns of AODE are some million numbers, for which a database took 20 GB."""
    X = generator(0).normal(size=(60, 5))
    model = AODE().fit(X, np.arange(60) % 2)
    assert to_sql(model, "rows")
    monkeypatch.setattr("calibayes.export.sql.MOST_NUMBERS", 1000)
    with pytest.raises(TypeError, match=r"tables of [\d,]+ numbers, more than the 1,000 that databases can"):
        to_sql(model, "rows")
