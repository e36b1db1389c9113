"""Files that are damaged, missing or different: the error names the place; a read that fails once is repeated."""

import pickle
import sqlite3

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs, ipc

from calibayes.streams import arrow as arrow_readers
from calibayes.streams import table_files as parquet_files
from calibayes.streams.stream_input import open_stream
from tests.tables.streams.sources import (
    arrow_file,
    chunks_of,
    duckdb_relation,
    mixed_table,
    opened,
    parquet,
    small_chunks,
    with_labels,
)

TABLE = with_labels(mixed_table(60))


def test_a_missing_file_or_pattern_is_named(tmp_path):
    for name in ("none.parquet", "*.parquet"):
        with pytest.raises(ValueError, match="there is no file"):
            opened(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no files"):
        opened(tmp_path / "empty")


def test_an_unknown_or_mixed_kind_is_named(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(ValueError, match=r"the kind of .*a.txt is unknown: its name must end in .parquet"):
        opened(tmp_path / "a.txt")
    (tmp_path / "both").mkdir()
    parquet(TABLE, tmp_path / "both")
    (tmp_path / "both" / "b.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="files of several kinds"):
        opened(tmp_path / "both")


def test_missing_columns_are_named(tmp_path):
    path = parquet(TABLE, tmp_path)
    with pytest.raises(
        ValueError, match=r"no column 'z' for the target in .*table.parquet; its columns are float"
    ):
        open_stream(path, "z")
    with pytest.raises(ValueError, match="no column 'z' for the weight"):
        open_stream(path, "y", "z")
    with pytest.raises(ValueError, match="no column 'z' in"):
        chunks_of(opened(path), ["z"])
    pq.write_table(pa.table({"y": [1, 2]}), path)
    with pytest.raises(ValueError, match="no columns besides labels"):
        open_stream(path, "y")


def test_lists_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [[1, 2], [3]], "y": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(TypeError, match=r"column 'a' holds several values in a cell \(list<"):
        open_stream(tmp_path / "a.parquet", "y")


def test_no_rows_are_refused(tmp_path):
    empty = TABLE.slice(0, 0)
    sources = [
        parquet(empty, tmp_path),
        arrow_file(empty, tmp_path),
        empty,
        empty.to_reader,
        pl.from_arrow(empty).lazy(),
    ]
    for source in [*sources, duckdb_relation(empty.select(["text", "y", "w"]), tmp_path)]:
        with pytest.raises(ValueError, match="has no rows"):
            chunks_of(opened(source))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"x": [1.5], "y": [0]}, "'x' holds double in the former and int64 in the latter"),
        ({"y": [0]}, "'x' is only in the latter"),
        ({"x": [1], "z": [1], "y": [0]}, "'z' is only in the former"),
    ],
)
def test_files_with_other_columns_are_named(other, message, tmp_path):
    pq.write_table(pa.table({"x": [1], "y": [0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=rf"2.parquet has other columns than .*1.parquet: {message}"):
        open_stream(tmp_path, "y")


def test_files_may_have_their_columns_in_another_order(tmp_path):
    pq.write_table(pa.table({"x": [1], "y": [0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"y": [0], "x": [2]}), tmp_path / "2.parquet")
    assert [chunk.table.column(0).tolist() for chunk in chunks_of(open_stream(tmp_path, "y"))] == [[1], [2]]


@pytest.mark.parametrize("write", [parquet, arrow_file])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(write, share, tmp_path):
    path = write(TABLE, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises((ValueError, OSError), match=rf"{path.name} cannot be read: \S"):
        opened(path)


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "table.parquet"
    numbers = pa.table({"x": np.random.default_rng(0).normal(size=300), "y": np.zeros(300)})
    pq.write_table(numbers, path, row_group_size=100, compression="snappy")
    stream = open_stream(path, "y")
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    content = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + 60] = b"\xff" * 60
    path.write_bytes(content)
    with small_chunks(100):
        stream = open_stream(path, "y")
        first, second, third = list(stream.parts())
    assert first().n == third().n == 100
    with pytest.raises((ValueError, OSError), match=r"row group 1 of .*table.parquet cannot be read: \S"):
        second()


def test_a_damaged_batch_is_named(tmp_path):
    path = tmp_path / "table.arrow"
    table = pa.table({"x": np.random.default_rng(0).integers(0, 99, 3000), "y": np.zeros(3000)})
    with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table, max_chunksize=1000)
    with small_chunks(1000):
        stream = open_stream(path, "y")
        content = bytearray(path.read_bytes())
        content[len(content) // 2 - 500 : len(content) // 2] = b"\xff" * 500
        path.write_bytes(content)
        loaders = list(stream.parts())
    with pytest.raises((ValueError, OSError), match=r"batch 1 of .*table.arrow cannot be read: \S"):
        _ = [load() for load in loaders]


def test_damaged_places_of_text_are_found(tmp_path):
    """Arrow files store where each text begins; a wrong place lies outside of the memory of the batch."""
    path = tmp_path / "table.arrow"
    table = pa.table({"x": [f"text {i}" for i in range(100)], "y": range(100)})
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    places = np.frombuffer(table["x"].chunk(0).buffers()[1], np.int32)[:101].tobytes()
    damaged = np.frombuffer(places, np.int32).copy()
    damaged[50] = 2**30
    path.write_bytes(path.read_bytes().replace(places, damaged.tobytes()))
    with pytest.raises(ValueError, match=r"batch 0 of .*table.arrow cannot be read: \S"):
        chunks_of(open_stream(path, "y"))


def test_a_file_that_holds_a_stream_is_read_and_named_if_truncated(tmp_path):
    path = tmp_path / "table.arrow"
    with ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=9)
    with small_chunks(10):
        chunks = chunks_of(opened(path))
    assert [chunk.n for chunk in chunks] == [10] * 6
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises((ValueError, OSError), match=r"table.arrow cannot be read: \S"):
        chunks_of(opened(path))


class Flaky:
    """A function that fails with OSError in some of its calls, counted from 1."""

    def __init__(self, function, *failing):
        self.function, self.failing, self.calls = function, failing, 0

    def __call__(self, *arguments, **options):
        self.calls += 1
        if self.calls in self.failing:
            raise OSError("connection reset")
        return self.function(*arguments, **options)


def test_a_read_that_fails_once_is_repeated(tmp_path, monkeypatch):
    path = parquet(TABLE, tmp_path)
    original = parquet_files.open_parquet
    for failing in ((1,), (2,), (4,)):
        monkeypatch.setattr(parquet_files, "open_parquet", Flaky(original, *failing))
        with small_chunks(10):
            assert sum(chunk.n for chunk in chunks_of(opened(path))) == 60
    monkeypatch.setattr(parquet_files, "open_parquet", Flaky(original, 2, 3))
    with pytest.raises(
        OSError, match=r"row groups 0 to 8 of .*table.parquet cannot be read: connection reset"
    ):
        chunks_of(opened(path))


def failing_reader(failures):
    """A function that makes readers, the first ones of which fail after two batches."""

    def batches(number):
        for i, batch in enumerate(TABLE.to_batches(max_chunksize=7)):
            if i == 2 and number < failures:
                raise OSError("connection reset")
            yield batch

    def make():
        make.calls += 1
        return pa.RecordBatchReader.from_batches(TABLE.schema, batches(make.calls - 2))

    make.calls = 0
    return make


def test_a_sequential_source_that_fails_once_goes_on_where_it_was():
    with small_chunks(10):
        stream = opened(failing_reader(1))
        chunks = chunks_of(stream, ["integer"])
        assert (
            np.concatenate([chunk.table.column(0) for chunk in chunks]).tolist()
            == TABLE["integer"].to_pylist()
        )
        stream = opened(failing_reader(2))
        with pytest.raises(OSError, match="the reader cannot be read: connection reset"):
            chunks_of(stream)


@pytest.mark.parametrize("when", ["opened", "read"])
def test_errors_of_a_database_name_the_source(when):
    """Those of any driver (PEP 249), also where they come from the thread that reads ahead."""

    def batches():
        sqlite3.connect(":memory:").execute("select * from penguins")
        yield from ()

    def make():
        return pa.RecordBatchReader.from_batches(
            TABLE.schema, batches() if when == "read" else list(batches())
        )

    with pytest.raises(ValueError, match="the reader cannot be read: no such table: penguins"):
        chunks_of(opened(make))


def test_an_error_of_a_program_stays_as_it_is():
    def make():
        raise TypeError("no reader here")

    with pytest.raises(TypeError, match=r"^no reader here$"):
        opened(make)


def test_what_can_be_read_only_once_is_refused():
    for source in (TABLE.to_reader(), iter(TABLE.to_batches())):
        with pytest.raises(ValueError, match=r"can be read only once, .* pass a function"):
            opened(source)


def test_what_is_empty_when_it_is_read_again_says_so():
    reader = TABLE.to_reader()
    stream = opened(lambda: reader)
    chunks_of(stream)
    with pytest.raises(ValueError, match=r"the reader has no rows; if it was read before .* pass a function"):
        chunks_of(stream)


def test_other_objects_are_refused():
    with pytest.raises(ValueError, match="rows cannot be read from a int"):
        opened(3)
    with pytest.raises(ValueError, match="the function must return a reader of Arrow batches"):
        opened(lambda: 3)


def test_labels_of_another_length_are_refused(tmp_path):
    path = parquet(TABLE, tmp_path)
    for number in (59, 61):
        with pytest.raises(ValueError, match=f"{number} values .* of 60( or more)? rows"):
            open_stream(path, np.zeros(number))
        with pytest.raises(ValueError, match=f"{number} values .* of 60( or more)? rows"):
            chunks_of(open_stream(TABLE.to_reader, "y", np.zeros(number)), [])
        with pytest.raises(ValueError, match=f"{number} values .* of 60( or more)? rows"):
            open_stream(np.zeros((60, 2)), np.zeros(number))


def test_rows_in_another_order_at_the_second_reading_are_refused():
    orders = iter([TABLE, TABLE, TABLE.take(pa.array(np.arange(60)[::-1]))])
    stream = opened(lambda: next(orders).to_reader())
    chunks_of(stream, [])
    with pytest.raises(ValueError, match=r"other rows than before, .* ORDER BY"):
        chunks_of(stream)


def test_loaders_of_files_can_be_sent_to_another_process(tmp_path):
    with small_chunks(7):
        loaders = list(opened(parquet(TABLE, tmp_path, rows=20)).parts(["float"]))
    again = pickle.loads(pickle.dumps(loaders[1]))
    assert again().table.column(0).tolist() == loaders[1]().table.column(0).tolist()


def test_addresses_of_file_systems_are_read(tmp_path):
    path = parquet(TABLE, tmp_path)
    assert opened(f"file://{path}").rows == 60
    (file,) = opened(path).given.tables.args[0]
    assert isinstance(file.filesystem, fs.LocalFileSystem)


def test_a_pause_in_the_middle_leaves_no_open_reader():
    closed = []

    def batches():
        try:
            yield from TABLE.to_batches(max_chunksize=7)
        finally:
            closed.append(True)

    read = lambda columns, size: batches()
    tables = arrow_readers.sequential_rows(read, 10, "the reader", ["integer"])
    next(tables)
    tables.close()
    assert closed == [True]
