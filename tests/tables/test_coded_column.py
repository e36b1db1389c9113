"""A table whose columns of text are stored as codes is the same as one of Python objects."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from calibayes.encoders import Dense
from calibayes.tables.conversion import learn_conversion
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from calibayes.tables.summary import content_hashes
from calibayes.tables.table import CodedColumn, distinct_values, numeric_matrix, training_table

N = 60
FRAME = pl.DataFrame(
    {
        "town": [("b", None, "a", "c")[i * i % 4] for i in range(N)],
        "flag": [(True, None, False)[i % 3] for i in range(N)],
        "day": [f"2024-{1 + i % 12:02d}-15" for i in range(N)],
        "name": [f"row {i}" for i in range(N)],
        "age": np.arange(N) / 7,
    }
)
PLAIN = read_frame(FRAME)


def coded(table):
    """The same table with its object columns as codes."""
    columns = {j: CodedColumn(*distinct_values(table, j)) for j in range(4)}
    content = tuple(columns.get(j, column) for j, column in enumerate(table.content))
    cache = {j: (column.values, column.codes) for j, column in columns.items()}
    return replace(table, content=content, distinct_cache=cache, missing_cache={})


CODED = coded(PLAIN)


def assert_same(left, right):
    assert left.names == right.names
    assert left.types() == right.types()
    assert left.n == right.n
    for j in range(len(left.names)):
        assert type(left.column(j)) is np.ndarray
        assert_array_equal(left.column(j), right.column(j))
        assert_array_equal(left.missing_mask(j), right.missing_mask(j))
        for one, other in zip(distinct_values(left, j), distinct_values(right, j), strict=True):
            assert_array_equal(one, other)


def test_columns_are_arrays_of_the_same_cells():
    assert_same(CODED, PLAIN)
    assert training_table(CODED) == training_table(PLAIN)
    assert_array_equal(content_hashes(CODED, 3), content_hashes(PLAIN, 3))
    assert_array_equal(CODED.matrix([0, 1]), PLAIN.matrix([0, 1]))


@pytest.mark.parametrize(
    "rows", [np.array([5, 1, 1, 30]), np.arange(N) % 5 == 1, np.array([], dtype=np.intp)]
)
def test_some_rows_are_the_same(rows):
    assert_same(CODED.rows(rows), PLAIN.rows(rows))
    assert all(isinstance(CODED.rows(rows).stored_column(j), CodedColumn) for j in range(4))


def test_a_column_can_be_taken_out():
    (left, removed), (right, expected) = CODED.without("day"), PLAIN.without("day")
    assert_same(left, right)
    assert_array_equal(removed, expected)


@pytest.mark.filterwarnings("ignore:column 'name' left out")
def test_dates_are_converted_and_other_columns_stay_codes():
    left, right = (learn_conversion(table, {}, levels=True).apply(table) for table in (CODED, PLAIN))
    assert left.conversion == right.conversion
    assert_same(left, right)
    assert isinstance(left.stored_column(0), CodedColumn)


def test_flags_can_be_numbers():
    left, right = (numeric_matrix(table, [1, 4], booleans=True) for table in (CODED, PLAIN))
    assert_array_equal(left, right)


def test_encoded_columns_are_the_same():
    weight = np.ones(N)
    left, right = (
        Dense().fit(summary_of(table, weight), [0, 1, 4]).encode(table) for table in (CODED, PLAIN)
    )
    assert_array_equal(left, right)


def test_it_behaves_like_an_object_array():
    column, cells = CODED.stored_column(0), PLAIN.column(0)
    assert (column.dtype, column.shape, column.ndim, len(column)) == (cells.dtype, cells.shape, 1, N)
    assert list(column) == cells.tolist()
    assert column[3] == cells[3]
    assert column[1:9:2].array().tolist() == cells[1:9:2].tolist()
    assert_array_equal(np.asarray(column), cells)
