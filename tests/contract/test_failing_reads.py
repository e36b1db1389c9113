"""Reads that fail in the middle of a pass: repeated once, then an error that names the source, and nothing else is changed."""

from contextlib import contextmanager

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from calibayes import NaiveBayes
from calibayes.streams import csv_blocks, table_files
from tests.seeds import generator
from tests.tables.streams.sources import small_chunks

ROWS, PART = 60, 10
VECTOR = 2048
"""Rows that DuckDB reads at a time."""


class Reads:
    """Counts the reads of parts of a source, some of which fail."""

    def __init__(self):
        self.count, self.failing = 0, ()

    def __call__(self):
        self.count += 1
        if self.count in self.failing:
            raise OSError("connection reset")

    @contextmanager
    def failing_at(self, *numbers):
        self.count, self.failing = 0, numbers
        yield
        assert set(numbers) <= set(range(self.count + 1))
        self.failing = ()

    def each(self, items):
        for item in items:
            self()
            yield item


def frame():
    rng = generator(71)
    y = np.arange(ROWS) % 2
    numbers = rng.normal(size=(ROWS, 2)) + y[:, None]
    return pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "label": np.where(y, "yes", "no")})


def counted_batches(kind, reads, monkeypatch):
    original = kind.batches
    monkeypatch.setattr(kind, "batches", lambda *arguments: reads.each(original(*arguments)))


def parquet(reads, folder, monkeypatch):
    pq.write_table(pa.Table.from_pandas(frame()), folder / "table.parquet", row_group_size=PART)
    counted_batches(table_files.ParquetFile, reads, monkeypatch)
    return folder / "table.parquet"


def arrow_file(reads, folder, monkeypatch):
    table = pa.Table.from_pandas(frame())
    with ipc.new_file(folder / "table.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=PART)
    counted_batches(table_files.IpcFile, reads, monkeypatch)
    return folder / "table.arrow"


class CountedFile:
    """An open file whose reads are counted."""

    def __init__(self, file, reads):
        self.file, self.reads = file, reads

    def read(self, size):
        self.reads()
        return self.file.read(size)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


def csv_file(reads, folder, monkeypatch):
    frame().to_csv(folder / "table.csv", index=False)
    opened = csv_blocks.opened_text
    monkeypatch.setattr(csv_blocks, "opened_text", lambda *place: CountedFile(opened(*place), reads))
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 400)
    monkeypatch.setattr(csv_blocks, "COLUMN_BYTES", 0)
    return folder / "table.csv"


def duckdb_relation(reads, folder, monkeypatch):
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("given", pa.Table.from_pandas(pd.concat([frame()] * 140)))

    def checked(column):
        reads()
        return column

    connection.create_function("checked", checked, ["VARCHAR"], "VARCHAR", type="arrow", side_effects=True)
    return connection.sql("SELECT a, b, checked(label) AS label FROM given")


def function_of_batches(reads, folder, monkeypatch):
    table = pa.Table.from_pandas(frame())
    batches = table.to_batches(max_chunksize=PART)
    return lambda: pa.RecordBatchReader.from_batches(table.schema, reads.each(batches))


def dask_frame(reads, folder, monkeypatch):
    """Dask takes functions of equal arguments for the same one: the folder is another one in each test."""
    whole = frame()

    def part(first, folder):
        reads()
        return whole.iloc[first : first + PART]

    return dd.from_map(part, range(0, ROWS, PART), folder=str(folder), meta=whole.iloc[:0])


SOURCES = {
    parquet: r"row group \d of .*table\.parquet",
    arrow_file: r"batch \d of .*table\.arrow",
    csv_file: r"table\.csv",
    duckdb_relation: "the DuckDB relation",
    function_of_batches: "the reader",
    dask_frame: r"the (partition from row \d+ on of the )?Dask DataFrame",
}
"""Function that makes a source whose reads are counted -> how it is named."""


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95], ids=["first pass", "middle", "last pass"])
def test_a_read_that_fails(source, share, tmp_path, monkeypatch):
    reads = Reads()
    features = frame().drop(columns="label")
    with small_chunks(VECTOR if source is duckdb_relation else PART):
        given = source(reads, tmp_path, monkeypatch)
        with reads.failing_at():
            expected = NaiveBayes(rule="ml", n_jobs=1).fit(given, "label").predict_proba(features)
        failing = max(2, int(share * reads.count))
        with reads.failing_at(failing):
            model = NaiveBayes(rule="ml", n_jobs=1).fit(given, "label")
        np.testing.assert_array_equal(model.predict_proba(features), expected)
        held = dict(vars(model))
        with (
            reads.failing_at(failing, failing + 1),
            pytest.raises(OSError, match=rf"{SOURCES[source]} cannot be read: .*connection reset"),
        ):
            model.fit(given, "label")
        assert vars(model).keys() == held.keys()
        assert all(vars(model)[name] is held[name] for name in held)
        np.testing.assert_array_equal(model.predict_proba(features), expected)
        np.testing.assert_array_equal(model.fit(given, "label").predict_proba(features), expected)


def test_a_relation_whose_file_is_gone_is_named(tmp_path):
    frame().to_parquet(tmp_path / "table.parquet")
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(tmp_path / "table.parquet"))
        model = NaiveBayes(rule="ml").fit(relation, "label")
        (tmp_path / "table.parquet").unlink()
        with pytest.raises(OSError, match="the DuckDB relation cannot be read: IO Error: No files found"):
            model.fit(relation, "label")
