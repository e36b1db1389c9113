"""A stream has the same columns, values and types as the whole table in memory."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibayes.streams import table_files as ipc_files
from calibayes.streams.stream_input import open_stream
from calibayes.tables.read import is_streamed, read_frame
from calibayes.testing import tables
from tests.tables.streams.sources import (
    arrow_file,
    assert_same_as,
    chunks_of,
    dataset,
    duckdb_relation,
    feather_file,
    lazy_frame,
    mixed_table,
    opened,
    parquet,
    small_chunks,
    with_labels,
)

FORMS = {
    "parquet": parquet,
    "arrow": arrow_file,
    "feather": feather_file,
    "dataset": dataset,
    "table": lambda table, folder: table,
    "exporter": lambda table, folder: Exporter(table),
    "function": lambda table, folder: table.to_reader,
    "scanner": lambda table, folder: ds.dataset(parquet(table, folder)).filter(ds.field("w") < 1),
}


class Exporter:
    """An object that only has the protocol of Arrow streams."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [5, 100])
def test_chunks_of_any_source_are_the_rows_of_the_table(form, rows, tmp_path):
    table = with_labels(mixed_table())
    with small_chunks(rows):
        stream = opened(FORMS[form](table, tmp_path))
        assert_same_as(stream, read_frame(table.drop_columns(["y", "w"])))
        chunks = chunks_of(stream)
    assert stream.rows in (None, table.num_rows)
    assert max(len(chunk.labels) for chunk in chunks) <= rows
    assert [chunk.first for chunk in chunks] == np.cumsum([0, *(chunk.n for chunk in chunks)])[:-1].tolist()
    assert [label for chunk in chunks for label in chunk.labels] == table["y"].to_pylist()
    np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in chunks]), table["w"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=tables(libraries=["polars"]), rows=st.integers(1, 30), group=st.integers(1, 30))
def test_random_tables_are_read_the_same_from_parquet(drawn, rows, group, tmp_path):
    table = drawn.training.to_arrow().append_column("y", pa.array(range(len(drawn.training))))
    pq.write_table(table, tmp_path / "random.parquet", row_group_size=group)
    with small_chunks(rows):
        stream = open_stream(tmp_path / "random.parquet", "y")
        assert_same_as(stream, read_frame(pq.read_table(tmp_path / "random.parquet").drop_columns(["y"])))


@settings(max_examples=20, deadline=None)
@given(drawn=tables(libraries=["polars"]), rows=st.integers(1, 30))
def test_random_lazy_frames_are_read_as_polars_frames(drawn, rows):
    with small_chunks(rows):
        stream = open_stream(drawn.training.lazy().with_columns(y=1), "y")
        assert_same_as(stream, read_frame(drawn.training))


def test_a_duckdb_relation_is_read_as_its_arrow_table(tmp_path):
    table = with_labels(mixed_table()).drop_columns(["category", "category with holes", "duration"])
    with small_chunks(5):
        stream = opened(duckdb_relation(table, tmp_path))
        relation = duckdb_relation(table, tmp_path)
        read = getattr(relation, "to_arrow_table", None) or relation.fetch_arrow_table
        expected = read().drop_columns(["y", "w"])
        in_utc = expected["zoned"].cast(pa.timestamp("us", "UTC"))  # not in the time zone of the session
        expected = expected.set_column(expected.column_names.index("zoned"), "zoned", in_utc)
        assert_same_as(stream, read_frame(expected))


def test_a_lazy_frame_of_many_types_is_read_as_its_polars_frame(tmp_path):
    frame = lazy_frame(with_labels(mixed_table()), tmp_path)
    with small_chunks(5):
        assert_same_as(opened(frame), read_frame(frame.collect().drop("y", "w")))


@pytest.mark.parametrize("form", FORMS)
def test_only_the_named_columns_are_read(form, tmp_path):
    with small_chunks(6):
        stream = opened(FORMS[form](with_labels(mixed_table()), tmp_path))
        (first, *_), (labels, *_) = chunks_of(stream, ["text", "float"]), chunks_of(stream, [])
    assert first.table.names == ("text", "float")
    assert labels.table.names == ()
    assert labels.n == len(labels.labels) == first.n > 0


def test_loaders_can_be_called_again_and_in_any_order(tmp_path):
    with small_chunks(4):
        stream = opened(parquet(with_labels(mixed_table()), tmp_path, rows=9))
        loaders = list(stream.parts(["integer"]))
    in_order = [load().table.column(0).tolist() for load in loaders]
    assert [load().table.column(0).tolist() for load in reversed(loaders)] == in_order[::-1]
    assert [len(cells) for cells in in_order] == [4, 4, 1, 4, 4, 1, 4, 1]


def test_threads_load_neighboring_chunks(tmp_path):
    table = with_labels(mixed_table(500))
    with small_chunks(20):
        for path in (parquet(table, tmp_path, rows=250), arrow_file(table, tmp_path, rows=250)):
            loaders = list(opened(path).parts())
            expected = [load().table for load in loaders]
            with ThreadPoolExecutor(4) as pool:
                found = [chunk.table for chunk in pool.map(lambda load: load(), loaders * 2)]
            for left, right in zip(found, expected * 2, strict=True):
                for j in range(len(left.names)):
                    np.testing.assert_array_equal(left.column(j), right.column(j))


def test_large_batches_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(ipc_files, "LARGE_BATCH", 10)
    table = with_labels(mixed_table(60))
    with small_chunks(7):
        stream = opened(arrow_file(table, tmp_path, rows=30))
        assert_same_as(stream, read_frame(table.drop_columns(["y", "w"])))


def test_small_row_groups_are_read_together(tmp_path):
    with small_chunks(10):
        stream = opened(parquet(with_labels(mixed_table()), tmp_path, rows=4))
        assert [chunk.n for chunk in chunks_of(stream)] == [8, 8, 7]


@pytest.mark.parametrize("pattern", ["", "year=*", "year=*/**/*.parquet"], ids=["folder", "folders", "files"])
def test_folders_are_read_with_their_partitions(pattern, tmp_path):
    table = with_labels(
        pa.table({"year": [2023, 2024, 2024, None], "place": ["a", "b", "b", "a b"], "x": [1.0, 2, 3, 4]})
    )
    pq.write_to_dataset(table, tmp_path / "data", partition_cols=["year", "place"])
    (tmp_path / "data" / "_SUCCESS").touch()
    stream = opened(str(tmp_path / "data" / pattern))
    assert stream.names == ("x", "year", "place")
    assert stream.rows == 4
    rows = {
        (chunk.table.column(0)[0], *(chunk.table.column(j).tolist()[-1] for j in (1, 2)))
        for chunk in chunks_of(stream)
    }
    assert {row for row in rows if row[1] == row[1]} == {(1.0, 2023, "a"), (2.0, 2024, "b")}
    assert {row[2] for row in rows if row[1] != row[1]} == {"a b"}


def test_globs_and_lists_are_files_in_order(tmp_path):
    for number in (2, 1):
        pq.write_table(pa.table({"x": [number, number], "y": [0, 1]}), tmp_path / f"{number}.parquet")
    for source in (str(tmp_path / "*.parquet"), [tmp_path / "1.parquet", tmp_path / "2.parquet"], tmp_path):
        chunks = chunks_of(open_stream(source, "y"))
        assert [chunk.table.column(0).tolist() for chunk in chunks] == [[1, 1], [2, 2]]
        assert [chunk.first for chunk in chunks] == [0, 2]


def test_labels_and_weights_may_be_arrays(tmp_path):
    table = mixed_table()
    labels, weight = np.arange(table.num_rows), np.ones(table.num_rows)
    with small_chunks(4):
        chunks = chunks_of(open_stream(parquet(table, tmp_path), labels, weight), [])
    assert np.concatenate([chunk.labels for chunk in chunks]).tolist() == labels.tolist()
    assert {chunk.weight.sum() == chunk.n for chunk in chunks} == {True}


def test_a_memory_mapped_array_is_read_chunk_by_chunk(tmp_path):
    array = np.random.default_rng(0).normal(size=(50, 3))
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "y.npy", np.arange(50))
    mapped, labels = (np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    for source in (mapped, mapped[:], mapped[:, ::-1][:, ::-1]):
        with small_chunks(7):
            stream = open_stream(source, labels)
            chunks = chunks_of(stream)
        assert stream.rows == 50
        np.testing.assert_array_equal(np.vstack([chunk.table.content for chunk in chunks]), array)
        assert np.concatenate([chunk.labels for chunk in chunks]).tolist() == list(range(50))
    (part,) = chunks_of(open_stream(mapped, labels), ["x2", "x0"])
    np.testing.assert_array_equal(part.table.content, array[:, [2, 0]])


def test_what_is_streamed(tmp_path, monkeypatch):
    table = pa.table({"x": [1.0], "y": [0]})
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(100, 2))
    streamed = ["a.parquet", tmp_path, ["a.csv"], pl.LazyFrame({"x": [1]}), table.to_batches()[0], table.to_reader(),
                lambda: None, duckdb_relation(table, tmp_path), ds.dataset(table)]  # fmt: skip
    assert [is_streamed(source) for source in streamed] == [True] * len(streamed)
    in_memory = [
        np.zeros((2, 2)),
        [[1, "a"]],
        [],
        table,
        table.to_pandas(),
        pl.DataFrame({"x": [1]}),
        None,
        3,
        mapped,
    ]
    in_memory += [pl.Series([1]), table.to_pandas()["x"], table["x"], table["x"].chunk(0)]
    assert [is_streamed(source) for source in in_memory] == [False] * len(in_memory)
    monkeypatch.setenv("CALIBAYES_MEMORY", "1K")
    assert is_streamed(mapped)
