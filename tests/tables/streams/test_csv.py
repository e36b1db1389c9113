"""CSV files in chunks have the same columns as in memory."""

import bz2
import csv
import gzip

import numpy as np
import pyarrow.csv as pa_csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibayes.streams import csv_blocks
from calibayes.streams.stream_input import open_stream
from calibayes.streams.text_input import ExpectedColumn, ExpectedTable, open_table, read_whole
from calibayes.tables import csv_parsing
from tests.tables.streams.sources import chunks_of, small_chunks, whole_table

FILES = {
    "numbers": "a,b,y\n1,2.5,0\n-3,1e5,1\n+4,inf,0\n,nan,1\n",
    "text": "a,b,y\nx,?,no\n z,unknown,yes\nx,-,no\n NA ,null,yes\n",
    "marks among numbers": "a,b,y\n1,x,0\n?,?,1\nUnknown,-,0\n 2 ,x,1\nNA,#N/A,0\n",
    "thousands": 'a,b,y\n"1,250",x,0\n"3",x,1\n"1,000,000.5",x,1\n',
    "decimal commas": "a;b;y\n1,5;x;0\n1.250,75;y;1\n-;z;1\n",
    "tabs": "a\tb\ty\n1\tx, y\t0\n2\t\t1\n",
    "quotes": 'a,b,y\n"x\ny","say ""no""",0\n"a,b",,1\n\n"c","d",1\n',
    "byte order mark": "\ufeffa,b,y\n1,x,0\n2,y,1\n",
    "no value": "a,b,y\n,NA,0\nNaN,,1\n",
    "blanks": "a,b,y\n 1, x,0\n2 ,x ,1\n",
    "dates": "a,b,y\n2024-01-31,True,0\n2024-02-01,False,1\n",
}


def assert_same_as_in_memory(path, rows=2):
    table = read_whole(path).table
    labels = table.names.index("y")
    with small_chunks(rows):
        stream = open_stream(path, "y")
        columns, _ = whole_table(stream)
        found = [label for chunk in chunks_of(stream) for label in chunk.labels]
    expected = [table.column(j) for j in range(len(table.names)) if j != labels]
    assert stream.names == tuple(name for name in table.names if name != "y")
    assert [column.dtype for column in columns] == [column.dtype for column in expected]
    for column, reference in zip(columns, expected, strict=True):
        np.testing.assert_array_equal(column, reference)
    assert found == table.column(labels).tolist()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block", [2**23, 32], ids=["one block", "small blocks"])
def test_columns_are_those_of_the_file_in_memory(name, block, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", block)
    monkeypatch.setattr(csv_blocks, "COLUMN_BYTES", 0)
    (tmp_path / "table.csv").write_text(FILES[name], encoding="utf-8", newline="")
    assert_same_as_in_memory(tmp_path / "table.csv")


def test_gzipped_files_are_read(tmp_path):
    with gzip.open(tmp_path / "table.csv.gz", "wt", encoding="utf-8") as file:
        file.write(FILES["text"])
    assert_same_as_in_memory(tmp_path / "table.csv.gz")


def wide_file(path, header_bytes, rows=3):
    """A file whose header has so many bytes, and each of whose rows lies beyond the bytes that show how it is written."""
    names = [f"{j} {'long name ' * 20}" for j in range(header_bytes // 200)]
    lines = [",".join(names) + ",y", *(",".join(["1.5"] * len(names)) + f",{i % 2}" for i in range(rows))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


WIDTHS = pytest.mark.parametrize(
    "header_bytes",
    [csv.field_size_limit() + 2000, csv_parsing.LOOK_BYTES + 2000],
    ids=["one cell", "one look"],
)
"""A header that is longer than a cell of the module csv may be, which it is for every other separator; and one that is longer than
what is looked at."""


@WIDTHS
def test_a_header_may_be_long(header_bytes, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks, "LOOK_BYTES", 2**14)
    assert_same_as_in_memory(wide_file(tmp_path / "wide.csv", header_bytes))


@WIDTHS
@pytest.mark.parametrize("with_pyarrow", [True, False])
def test_a_long_header_of_a_table_to_predict(header_bytes, with_pyarrow, tmp_path):
    path = wide_file(tmp_path / "wide.csv", header_bytes)
    expected = ExpectedTable((), labels=ExpectedColumn("y", "number"))
    opened = open_table(str(path), expected, block_bytes=2**16, with_pyarrow=with_pyarrow)
    assert len(opened.names) == header_bytes // 200 + 1
    assert [label for load in opened.blocks for label in load().labels] == [0, 1, 0]


def test_what_is_too_long_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_parsing, "LARGEST_RECORD", 2**20)
    path = tmp_path / "table.csv"
    path.write_text("x" * 2**21)
    with pytest.raises(ValueError, match=r"its first line does not end within \d+ bytes"):
        read_whole(path)
    path.write_text('a,y\n1,0\n"' + "x" * csv.field_size_limit() + "\n2,1\n")
    with pytest.raises(ValueError, match=r"line 3: field larger than .*; is a quotation mark not closed\?"):
        read_whole(path)


CELLS = [
    "",
    "NA",
    "?",
    "-",
    "1",
    "2.5",
    "-3e2",
    " 4",
    "x",
    "x y",
    "é",
    "1,5",
    '"q"',
    "unknown",
    "n/a ",
    "inf",
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(st.sampled_from(CELLS), st.sampled_from(CELLS[:8])), min_size=1, max_size=12),
    size=st.integers(1, 5),
)
def test_random_cells_are_read_as_in_memory(rows, size, tmp_path):
    with open(tmp_path / "random.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("a", "b", "y"), *((a, b, i) for i, (a, b) in enumerate(rows))])
    assert_same_as_in_memory(tmp_path / "random.csv", size)


def long_file(path, last, first="1"):
    """A file whose last row lies beyond the first look."""
    path.write_text("a,b,y\n" + f"{first},x,0\n" * 40 + f"{last},x,1\n")
    return path


@pytest.fixture
def short_look(monkeypatch):
    monkeypatch.setattr(csv_blocks, "LOOK_BYTES", 64)
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 48)
    monkeypatch.setattr(csv_blocks, "COLUMN_BYTES", 0)


@pytest.mark.usefixtures("short_look")
@pytest.mark.parametrize("last", ["2", "?", " NA", " 7 ", "unknown"])
def test_marks_of_missing_values_may_come_late(last, tmp_path):
    assert_same_as_in_memory(long_file(tmp_path / "table.csv", last), rows=7)


@pytest.mark.usefixtures("short_look")
@pytest.mark.parametrize("last", ["5", "x", "?", '"1,000"', "NA"])
def test_a_column_that_is_empty_at_the_beginning_is_read_to_its_end(last, tmp_path):
    assert_same_as_in_memory(long_file(tmp_path / "table.csv", last, first=""), rows=7)


@pytest.mark.usefixtures("short_look")
def test_text_after_numbers_is_an_error_that_names_the_cell(tmp_path):
    stream = open_stream(long_file(tmp_path / "table.csv", "seven"), "y")
    with pytest.raises(
        ValueError, match=r"table.csv cannot be read: column 'a' holds numbers .* but 'seven'"
    ):
        chunks_of(stream)


@pytest.mark.usefixtures("short_look")
def test_a_dataset_with_types_reads_such_a_file(tmp_path):
    import pyarrow as pa
    import pyarrow.dataset as ds

    options = pa_csv.ConvertOptions(column_types={"a": pa.string()})
    dataset = ds.dataset(
        long_file(tmp_path / "table.csv", "seven"), format=ds.CsvFileFormat(convert_options=options)
    )
    (chunk,) = chunks_of(open_stream(dataset, "y"))
    assert chunk.table.distinct_cache[0][0].tolist() == ["1", "seven"]


def test_files_with_the_same_header_are_joined(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.csv").write_text(f"a,b,y\n{number},x{number},0\n")
    (chunk,) = chunks_of(open_stream(tmp_path, "y"))
    assert chunk.table.column(0).tolist() == [1, 2]
    assert chunk.table.column(1).tolist() == ["x1", "x2"]
    (tmp_path / "3.csv").write_text("a,c,y\n1,2,0\n")
    with pytest.raises(ValueError, match=r"3.csv has other columns than .*1.csv"):
        open_stream(tmp_path, "y")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "table.csv is empty"),
        (b"a,y\n", "table.csv has no rows"),
        (
            b"a,y\n1,2\n1,2,3\n",
            "table.csv cannot be read: row 1 below the header \\(counted from 0\\) has 3 cells, but the header has 2",
        ),
        (b"a,a,y\n1,2,3\n", "'a' occurs more than once"),
        (b"a,y\n\xff,1\n", "table.csv is not a readable CSV file in UTF-8"),
    ],
)
def test_files_that_cannot_be_read_are_named(content, message, tmp_path):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        chunks_of(open_stream(tmp_path / "table.csv", "y"))


@pytest.mark.usefixtures("short_look")
def test_an_uneven_row_after_the_first_look_is_named(tmp_path):
    stream = open_stream(long_file(tmp_path / "table.csv", "1,2"), "y")
    with pytest.raises(
        ValueError,
        match=r"table.csv cannot be read: row 40 below the header \(counted from 0\) has 4 cells, but the header has 3",
    ):
        chunks_of(stream)


def test_a_truncated_compressed_file_is_named(tmp_path):
    whole = gzip.compress(("a,y\n" + "".join(f"{i},{i * i}\n" for i in range(3000))).encode())
    (tmp_path / "table.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises((OSError, ValueError), match=r"table.csv.gz"):
        chunks_of(open_stream(tmp_path / "table.csv.gz", "y"))


TEXT = "a;b;y\n1,5;é;0\n2,5;x;1\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode("utf-16"),
        b"sep=;\r\n" + TEXT.encode(),
        bz2.compress(TEXT.encode()),
        TEXT.replace("\n", "\r").encode(),
    ],
    ids=["utf-16", "stated separator", "bzip2", "carriage returns"],
)
def test_encoding_compression_and_ends_of_lines_are_recognized(content, tmp_path):
    (tmp_path / "table.csv").write_bytes(content)
    assert_same_as_in_memory(tmp_path / "table.csv")
    (chunk,) = chunks_of(open_stream(tmp_path / "table.csv", "y"))
    assert chunk.table.column(0).tolist() == [1.5, 2.5]
    assert chunk.table.column(1).tolist() == ["é", "x"]
