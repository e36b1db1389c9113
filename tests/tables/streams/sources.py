"""Tables of Arrow in all forms that a stream is opened from."""

import datetime
import decimal
from contextlib import contextmanager

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from calibayes.streams import chunks as chunk_module
from calibayes.streams.chunks import as_types, column_types
from calibayes.streams.stream_input import open_stream
from calibayes.tables.table import distinct_values, is_missing


@contextmanager
def small_chunks(rows):
    """Inside, chunks have at most so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_module, "CHUNK_ROWS", rows)
        patch.setattr(chunk_module, "FEWEST_CHUNK_ROWS", 1)
        yield


def chunks_of(stream, columns=None):
    return [load() for load in stream.parts(columns)]


def whole_table(stream):
    """Columns of all chunks, converted to common types and joined, and the tables of the chunks."""
    chunks = chunks_of(stream)
    types = column_types(chunks[0].table)
    for one in chunks[1:]:
        types = types + column_types(one.table)
    tables = [as_types(one.table, types.result(chunks[0].table)) for one in chunks]
    return [np.concatenate([table.column(j) for table in tables]) for j in range(len(stream.names))], tables


def assert_same_as(stream, table):
    """The chunks together are the table: names, kind, types, time zones, cells, distinct values."""
    columns, parts = whole_table(stream)
    assert stream.names == table.names
    assert stream.origin == table.origin
    for part in parts:
        assert part.types() == table.types()
        assert part.zones == table.zones
        assert isinstance(part.content, tuple) == isinstance(table.content, tuple)
    for j, column in enumerate(columns):
        expected = table.column(j)
        assert column.dtype == expected.dtype
        np.testing.assert_array_equal(column, expected)
        for part in parts:
            if part.dtype_kind(j) == "O":
                assert_distinct(part, j)


def assert_distinct(table, j):
    """The stored distinct values and codes are those of the cells."""
    values, codes = table.distinct_cache[j] if j in table.distinct_cache else distinct_values(table, j)
    cells = [None if is_missing(cell) else cell for cell in table.column(j)]
    known = sorted({cell for cell in cells if cell is not None})
    assert values.tolist() == known
    assert [None if code == len(values) else values[code] for code in codes] == cells


def parquet(table, folder, rows=7):
    pq.write_table(table, folder / "table.parquet", row_group_size=rows)
    return folder / "table.parquet"


def arrow_file(table, folder, rows=7):
    with ipc.new_file(folder / "table.arrow", table.schema) as writer:
        writer.write_table(table.unify_dictionaries(), max_chunksize=rows)
    return folder / "table.arrow"


def feather_file(table, folder):
    feather.write_feather(table, folder / "table.feather", compression="zstd", chunksize=5)
    return folder / "table.feather"


def dataset(table, folder):
    return ds.dataset(parquet(table, folder))


def duckdb_relation(table, folder):
    return duckdb.from_arrow(table)


def lazy_frame(table, folder):
    return pl.from_arrow(table).lazy()


def mixed_table(n=23, seed=0):
    """Columns of every type, with and without missing cells."""
    rng = np.random.default_rng(seed)
    hole = rng.random(n) < 0.3

    def column(values, kind=None, *, holes=False):
        return pa.array(values, kind, mask=hole if holes else None)

    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 500, n)]
    moments = [
        datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)
    ]
    texts = [f"level {i}" for i in rng.integers(0, 4, n)]
    columns = {
        "float": column(rng.normal(size=n)),
        "float with holes": column(rng.normal(size=n), holes=True),
        "float32": column(rng.normal(size=n).astype(np.float32)),
        "float32 with holes": column(rng.normal(size=n).astype(np.float32), holes=True),
        "integer": column(rng.integers(-5, 5, n)),
        "integer with holes": column(rng.integers(-5, 5, n), holes=True),
        "late hole": pa.array([*range(n - 1), None], pa.int16()),
        "small": column(rng.integers(0, 9, n).astype(np.uint8)),
        "large": column(rng.integers(2**62, 2**63, n).astype(np.int64)),
        "text": column(texts),
        "text with holes": column(texts, holes=True),
        "large text": column(texts, pa.large_string(), holes=True),
        "empty text": pa.array(["", *["é"] * (n - 1)]),
        "early holes": pa.array([None] * (n - 3) + ["b", "a", "b"]),
        "category": column(texts).dictionary_encode(),
        "category with holes": column(texts, holes=True).dictionary_encode(),
        "flag": column(rng.random(n) < 0.5),
        "flag with holes": column(rng.random(n) < 0.5, holes=True),
        "late flag": pa.array([None] * (n - 3) + [True, True, False]),
        "day": column(days, holes=True),
        "moment": column(moments, pa.timestamp("us")),
        "nanoseconds": column(moments, pa.timestamp("ns"), holes=True),
        "zoned": column(moments, pa.timestamp("us", "Europe/Berlin"), holes=True),
        "duration": column(
            [datetime.timedelta(seconds=int(s)) for s in range(n)], pa.duration("us"), holes=True
        ),
        "time": column([moment.time() for moment in moments], pa.time64("us"), holes=True),
        "decimal": column(
            [decimal.Decimal(int(i)) / 8 for i in rng.integers(0, 99, n)], pa.decimal128(9, 3), holes=True
        ),
        "no text": pa.nulls(n, pa.string()),
        "no flag": pa.nulls(n, pa.bool_()),
        "no number": pa.nulls(n, pa.int32()),
    }
    return pa.table(columns)


def with_labels(table, seed=0):
    rng = np.random.default_rng(seed)
    labels = pa.array(np.array(["no", "yes"], dtype=object)[rng.integers(0, 2, table.num_rows)])
    return table.append_column("y", labels).append_column("w", pa.array(rng.random(table.num_rows)))


def opened(source, y="y", sample_weight="w"):
    return open_stream(source, y, sample_weight)
