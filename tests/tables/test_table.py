"""Tables: rows, missing values, distinct values and the cache of encoders."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from calibayes.core.notices import counted, text_table
from calibayes.encoders import Dense
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array, read_frame
from calibayes.tables.table import distinct_values, numeric_matrix

FRAME = pd.DataFrame({"town": ["b", None, "a", "c", "b"], "age": [1.0, 2.0, np.nan, 4.0, 5.0]})


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1))
def test_distinct_texts_are_sorted_and_coded(cells):
    values, codes = distinct_values(read_array(np.array(cells, dtype=object)[:, None]), 0)
    known = [cell for cell in cells if cell is not None]
    if known:  # a column without any is one of numbers
        assert values.tolist() == sorted(set(known))
    assert [None if code == len(values) else values[code] for code in codes] == cells


@pytest.mark.parametrize("selection", [np.array([0, 1, 4]), np.array([True, True, False, False, True])])
def test_distinct_values_of_some_rows_are_those_of_their_own_table(selection):
    table = read_frame(FRAME)
    before = table.rows(selection)
    distinct_values(table, 0)
    after = table.rows(selection)
    assert after.distinct_cache.keys() == {0}
    for left, right in zip(distinct_values(before, 0), distinct_values(after, 0), strict=True):
        assert_array_equal(left, right)
    assert_array_equal(after.missing_mask(0), [False, True, False])


def test_missing_categories_of_a_pyarrow_table_are_missing():
    table = read_frame(pa.table({"town": pa.array(["b", None, "a"]).dictionary_encode()}))
    assert table.column(0).tolist() == ["b", None, "a"]
    numbers = read_frame(pa.table({"size": pa.array([2, None, 1]).dictionary_encode()}))
    assert numbers.missing_mask(0).tolist() == [False, True, False]


def test_missing_values_are_counted():
    table = read_frame(FRAME)
    assert [int(table.missing_mask(j).sum()) for j in (0, 1)] == [1, 1]


def test_a_cache_is_shared_by_encoders_of_the_same_rows_and_weights():
    table, weight = read_frame(FRAME).with_cache(), np.ones(5)
    encoder = Dense().fit(summary_of(table, weight), range(2))
    assert Dense().fit(summary_of(table, weight), range(2)) is encoder
    assert Dense().fit(summary_of(table, weight.copy()), range(2)) is not encoder
    assert encoder.encode(table) is encoder.encode(table)
    assert table.rows(np.arange(3)).cache == {}
    assert read_frame(FRAME).cache is None


def test_booleans_become_numbers_on_request():
    table = read_array(np.array([[True, 1.5], [None, 2.5]], dtype=object))
    assert_array_equal(numeric_matrix(table, [0, 1], booleans=True), [[1.0, 1.5], [np.nan, 2.5]])
    with pytest.raises(ValueError, match="column 'x0' does not hold numbers"):
        numeric_matrix(table, [0, 1])


def test_text_tables_are_aligned():
    assert text_table([("a", "bb", "c"), ("aaa", "", "cc")]) == "a    bb  c\naaa      cc"
    assert (counted(1, "row"), counted(0, "row")) == ("1 row", "0 rows")
