"""CSV files: separators, formats of numbers, missing values, and the notes that say what was done."""

import gzip

import numpy as np
import pytest

from calibayes.datasets import load_file
from calibayes.streams import raw_bytes


def written(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


def values(data, j):
    """Column j as an array, None where a text is missing."""
    column = data.data.iloc[:, j]
    return (
        column.to_numpy()
        if column.dtype.kind == "f"
        else column.astype(object).where(column.notna(), None).to_numpy()
    )


@pytest.mark.parametrize("mark", ["?", "-", "unknown", "Unknown", " ? "])
def test_a_marker_in_a_column_of_numbers_is_missing_and_noted(tmp_path, mark):
    path = written(tmp_path, "x,y\n" + "1.5,a\n2,b\n" * 5 + f"{mark},a\n")
    data = load_file(path, "y")
    column = values(data, 0)
    assert column.dtype == np.float64
    assert np.isnan(column).tolist() == [False] * 10 + [True]
    assert data.notes == (f"column 'x': 10 of 11 cells are numbers; 1 {mark.strip()!r} taken as missing",)


@pytest.mark.parametrize("mark", ["#N/A", "N/A", "n/a", "<NA>", "NULL", "-nan", "NA", ""])
def test_the_missing_values_of_pandas_are_missing(tmp_path, mark):
    data = load_file(written(tmp_path, f"x,w,y\n1,p,a\n{mark},{mark},b\n3,q,a\n"), "y")
    assert np.isnan(values(data, 0)).tolist() == [False, True, False]
    assert values(data, 1).tolist() == ["p", None, "q"]


def test_markers_in_a_column_of_text_are_levels(tmp_path):
    data = load_file(written(tmp_path, "x,y\nred,a\n?,b\nunknown,a\n"), "y")
    assert values(data, 0).tolist() == ["red", "?", "unknown"]
    assert data.notes == ()


def test_the_caller_can_say_what_is_missing(tmp_path):
    path = written(tmp_path, "x,w,y\n1,red,a\n?,none,b\n-9,blue,a\n")
    data = load_file(path, "y", missing_values=["-9", "none"])
    assert values(data, 0).tolist() == ["1", "?", None]
    assert values(data, 1).tolist() == ["red", None, "blue"]
    data = load_file(path, "y", missing_values=["?"])
    assert values(data, 0)[[0, 2]].tolist() == [1.0, -9.0]
    with pytest.raises(ValueError, match="missing_values must be a list of strings, got 'none'"):
        load_file(path, "y", missing_values="none")


def test_a_column_that_is_almost_numeric_is_noted(tmp_path):
    data = load_file(written(tmp_path, "x,y\n" + "1,a\n2,b\n" * 10 + "n.d.,a\n"), "y")
    assert values(data, 0).dtype == object
    assert data.notes[0].startswith(
        "column 'x' was read as text: 20 of 21 cells are numbers, but 'n.d.' is not"
    )
    assert "missing_values" in data.notes[0]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found_in_the_header(tmp_path, separator):
    content = "a,b,y\n1,2.5,p\n3,4,q\n".replace(",", separator)
    data = load_file(written(tmp_path, content), "y")
    assert list(data.data.columns) == ["a", "b"]
    assert values(data, 1).tolist() == [2.5, 4.0]
    assert data.notes == ()


def test_thousands_separators(tmp_path):
    data = load_file(written(tmp_path, 'x,y\n"1,234",a\n"-12,345,678.5",b\n17,a\n'), "y")
    assert values(data, 0).tolist() == [1234.0, -12345678.5, 17.0]
    assert data.notes == ("column 'x': commas read as thousands separators, such as '1,234' as 1234",)
    assert values(load_file(written(tmp_path, 'x,y\n"12,34,56",a\n17,b\n'), "y"), 0).tolist() == [
        "12,34,56",
        "17",
    ]


def test_decimal_commas(tmp_path):
    data = load_file(written(tmp_path, "x;z;y\n1,5;1.234,5;a\n2;?;b\n-0,25;7;a\n"), "y")
    assert values(data, 0).tolist() == [1.5, 2.0, -0.25]
    assert values(data, 1)[[0, 2]].tolist() == [1234.5, 7.0]
    assert data.notes[0] == "column 'x': commas read as decimal commas, such as '1,5' as 1.5"
    assert len(data.notes) == 3


@pytest.mark.parametrize("content", ["x\ty\n5,1\ta\n1,250\tb\n", 'x,y\n"5,1",a\n"1,250",b\n'])
def test_decimal_commas_in_files_separated_by_tabs_or_commas(tmp_path, content):
    data = load_file(written(tmp_path, content), "y")
    assert values(data, 0).tolist() == [5.1, 1.25]
    assert data.notes == ("column 'x': commas read as decimal commas, such as '5,1' as 5.1",)


def test_a_number_below_one_has_no_thousands(tmp_path):
    assert values(load_file(written(tmp_path, "x\ty\n0,375\ta\n1,250\tb\n"), "y"), 0).tolist() == [
        0.375,
        1.25,
    ]


def test_the_path_may_be_a_string(tmp_path):
    assert load_file(str(written(tmp_path, "x,y\n1,a\n2,b\n")), "y").name == "table"


def test_the_decompressed_size_is_limited(tmp_path, monkeypatch):
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,a\n" * 100_000))
    assert len(load_file(path, "y").data) == 100_000
    monkeypatch.setattr(raw_bytes, "LARGEST_DECOMPRESSED", 2**18)
    with pytest.raises(ValueError, match=r"more than 256 KiB, .* decompress it first"):
        load_file(path, "y")


def test_a_column_of_dates_is_noted(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("day,word,y\n2024-02-01,a,0\n,b,1\n2024-03-01,a,1\n", encoding="utf-8")
    data = load_file(path, "y")
    assert data.notes == ("column 'day' holds dates, written as YYYY-MM-DD; estimators read them as such",)
