"""The record of a training table: kinds and missing cells of any table, arithmetic, and what `verify` refuses."""

import datetime
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from calibayes.tables.conversion import learn_conversion
from calibayes.tables.read import read_array, read_frame
from calibayes.tables.table import TrainingTable, training_table

RECORD = TrainingTable(10, 8, ("a", "b"), ("float64", "string"), (3, 0))


def frame(library):
    day = datetime.datetime(2024, 2, 29)
    return library.DataFrame(
        {
            "number": [1.5, None, 2.5],
            "count": [1, 2, 3],
            "text": ["a", None, "b"],
            "flag": [True, False, True],
            "perhaps": [True, None, False],
            "moment": [day, day, None],
            "span": [datetime.timedelta(1), None, None],
            "written": ["2024-02-29", "2024-03-01", "2024-03-02"],
        }
    )


KINDS = ("float64", "int64", "string", "boolean", "boolean", "datetime", "duration", "string")
MISSING = (1, 0, 1, 0, 1, 1, 2, 0)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("is_converted", [False, True], ids=["as read", "converted"])
def test_kinds_and_missing_cells_of_a_frame(library, is_converted):
    table = read_frame(frame(library))
    if is_converted:
        table = learn_conversion(table, {}, levels=True).apply(table)
        assert len(table.names) > len(KINDS)  # with columns derived from dates, which were not given
    record = training_table(table)
    record.verify()
    assert record == TrainingTable(3, 3, tuple(frame(library).columns), KINDS, MISSING)


def test_categories_and_days_of_a_frame():
    days = pl.DataFrame({"day": [datetime.date(2024, 2, 29)], "kind": ["a"], "size": [np.float32(1)]})
    table = read_frame(days.with_columns(pl.col("kind").cast(pl.Categorical)))
    assert training_table(table).kinds == ("date", "category", "float32")
    numbers = read_frame(pd.DataFrame({"level": pd.Categorical([1, 2, None])}))
    assert training_table(numbers) == TrainingTable(3, 3, ("level",), ("category",), (1,))


@pytest.mark.parametrize(
    ("array", "word", "missing"),
    [
        (np.ones((2, 3)), "float64", (0, 0, 0)),
        (np.array([[1, np.nan], [np.nan, np.nan]], dtype=np.float32), "float32", (1, 2)),
        (np.array([[1, np.nan]], dtype=np.longdouble), "longdouble", (0, 1)),
        (np.ones((2, 2), dtype=np.uint8), "uint8", (0, 0)),
        (np.array([["a", "b"]]), "string", (0, 0)),
        (np.array([["a", None], ["b", None]], dtype=object)[:, :1], "string", (0,)),
        (np.array([[True, False]]), "boolean", (0, 0)),
        (np.array([["2024-02-29", "NaT"]], dtype="datetime64[D]"), "datetime", (0, 1)),
        (csr_array([[0.0, np.nan], [1.0, 0.0]]), "float64", (0, 1)),
        (csr_array(([1.0, np.inf], ([0, 1], [0, 0])), shape=(2, 2)), "float64", (0, 0)),
    ],
)
def test_kinds_and_missing_cells_of_an_array(array, word, missing):
    record = training_table(read_array(array))
    record.verify()
    assert record.kinds == (word,) * len(missing)
    assert record.missing == missing


def test_missing_cells_of_a_tall_matrix_are_counted_in_blocks():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(70_000, 5))
    matrix[rng.random(matrix.shape) < [0.0, 0.01, 0.5, 0.9, 1.0]] = np.nan
    assert training_table(read_array(matrix)).missing == tuple(np.isnan(matrix).sum(axis=0).tolist())


def test_kinds_of_stacked_columns_are_those_of_the_frame():
    table = read_frame(pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]}))
    record = training_table(table.rows(np.array([0])))
    assert (record.rows, record.kinds, record.missing) == (1, ("int64", "float64"), (0, 0))


def test_rows_are_selected_after_missing_values_were_looked_up():
    table = read_frame(pd.DataFrame({"a": ["x", None, None]}))
    assert training_table(table).missing == (2,)
    assert training_table(table.rows(np.array([False, True, False]))).missing == (1,)


def test_tables_are_added_and_subtracted():
    more = replace(RECORD, rows=4, labeled=4, missing=(1, 2))
    assert RECORD + more == replace(RECORD, rows=14, labeled=12, missing=(4, 2))
    assert RECORD + more - more == RECORD
    emptied = RECORD - (RECORD + more)
    emptied.verify()
    assert emptied == replace(RECORD, rows=0, labeled=0, missing=(0, 0))


def test_a_line_of_text():
    assert str(RECORD) == "10 rows (8 with a label), 2 columns, 3 missing cells"
    assert str(TrainingTable(1, 1, ("a",), ("int64",), (1,))) == "1 row, 1 column, 1 missing cell"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rows": -1, "labeled": -1, "missing": (0, 0)}, "has -1 rows"),
        ({"labeled": 11}, "11 of 10 rows"),
        ({"labeled": -1}, "-1 of 10 rows"),
        ({"kinds": ("float64",)}, "kinds of the training table must have 2 entries, got 1"),
        ({"missing": (0,)}, "missing cells of the training table must have 2 entries, got 1"),
        ({"columns": ("a", "a")}, "two columns of the training table have one name"),
        ({"kinds": ("float64", "complex128")}, "unknown kind \\['complex128'\\]"),
        ({"missing": (11, 0)}, "a column of 10 training rows has \\[11\\] missing cells"),
        ({"missing": (-1, 0)}, "a column of 10 training rows has \\[-1\\] missing cells"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(changes, problem):
    RECORD.verify()
    with pytest.raises(ValueError, match=problem):
        replace(RECORD, **changes).verify()
