"""Missing values as a level."""

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

from calibayes.encoders import AdaptiveBins, ByColumnType, Levels, MissingAsLevel
from calibayes.tables.read import read_frame
from tests.encoders.tables import TABLE, fitted


def test_missing_values_have_the_last_code():
    cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
    assert_array_equal(
        cells.encode(read_frame(TABLE)), [[0, 0, 0, 0], [1, 2, 0, 1], [2, 0, 0, 2], [1, 1, 0, 1]]
    )
    layout = cells.layout()
    assert layout["levels"] == (3, 3, 1, 3)
    assert layout["ordered"] == (3, 2, 0, 0)
    assert layout["gappy"] == (False, True, True, True)
    assert len(layout["log_volume"]) == 10


def test_a_missing_value_in_a_complete_column_and_a_new_level_have_no_code():
    cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
    new = TABLE.assign(complete=np.nan, text="c")
    assert (cells.encode(read_frame(new))[:, [0, 3]] == -1).all()


def test_decoded_columns_are_the_encoded_ones():
    cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins())))
    columns = cells.decode(cells.encode(read_frame(TABLE)), None)
    for name, column in zip(TABLE, columns, strict=True):
        assert pd.Series(column, name=name).equals(TABLE[name]) or name == "text"
    assert columns[3].tolist() == ["a", "b", None, "b"]


def test_missing_values_can_be_left_unknown():
    cells = fitted(MissingAsLevel(ByColumnType(AdaptiveBins()))).with_missing_unknown()
    assert_array_equal(cells.encode(read_frame(TABLE))[:, 1], [0, -1, 0, 1])


def test_the_code_for_missing_values_stays_the_last_one():
    cells = fitted(MissingAsLevel(Levels()), TABLE[["text"]])
    grown, moved = cells.extend(read_frame(pd.DataFrame({"text": ["aa", None]})))
    assert [code.tolist() for code in moved] == [[0, 2, 3]]
    assert grown.encode(read_frame(TABLE[["text"]]))[:, 0].tolist() == [0, 2, 3, 2]
    fewer, back = grown.restricted_to(np.array([1.0, 0.0, 2.0, 1.0]))
    assert [code.tolist() for code in back] == [[0, -1, 1, 2]]
    assert fewer.layout()["levels"] == (3,)
    united, ours, theirs = cells.unite(cells)
    assert (united.layout()["levels"], ours, theirs) == ((3,), None, None)


def test_remarks_name_columns_without_values():
    remarks = fitted(MissingAsLevel()).remarks()
    assert remarks == ["3 distinct values, 3 bins", "2 distinct values, 2 bins", "all missing", "2 levels"]
