"""Dask data frames and arrays as streams: the rows of all partitions, in order, with labels and weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from calibayes.backends.dask.frame import DaskStream

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

ROWS = 50


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def frame():
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": random.normal(size=ROWS),
            "color": random.choice(["red", "green"], ROWS),
            "label": random.integers(0, 2, ROWS),
            "count": random.integers(0, 9, ROWS),
            "weight": random.random(ROWS),
        }
    )


def chunks(stream, columns=None):
    return [load() for load in stream.parts(columns)]


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_the_chunks_of_a_frame_have_all_rows_in_order(partitions):
    known = frame()
    stream = DaskStream(dd.from_pandas(known, npartitions=partitions), "label", "weight")
    read = chunks(stream)
    assert stream.names == ("size", "color", "count")
    assert [kind.kind for kind in stream.types] == ["f", "O", "i"]
    assert stream.rows == ROWS
    assert [chunk.first for chunk in read] == np.cumsum([0, *(chunk.n for chunk in read[:-1])]).tolist()
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in read]), known["label"])
    np.testing.assert_array_equal(np.concatenate([chunk.weight for chunk in read]), known["weight"])
    for j, name in enumerate(stream.names):
        column = np.concatenate([chunk.table.column(j) for chunk in read])
        np.testing.assert_array_equal(column, known[name].to_numpy(dtype=column.dtype))


def test_only_the_named_columns_are_read():
    stream = DaskStream(dd.from_pandas(frame(), npartitions=2), "label", None)
    assert {chunk.table.names for chunk in chunks(stream, ["count"])} == {("count",)}
    labels_alone = chunks(stream, [])
    assert {chunk.table.names for chunk in labels_alone} == {()}
    assert sum(chunk.n for chunk in labels_alone) == ROWS


def test_partitions_without_rows_are_left_out():
    known = frame()
    data = dd.from_pandas(known, npartitions=5)
    stream = DaskStream(data[data["size"] > 1.0], "label", None)
    read = chunks(stream)
    assert all(chunk.n for chunk in read)
    labels = np.concatenate([chunk.labels for chunk in read])
    np.testing.assert_array_equal(labels, known.loc[known["size"] > 1.0, "label"])


@pytest.mark.parametrize("kind", ["numpy", "dask", "dask in other chunks"])
def test_the_chunks_of_an_array_have_all_rows_in_order(kind):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(ROWS, 3)), random.integers(0, 3, ROWS)
    labels = y if kind == "numpy" else da.from_array(y, chunks=10 if kind == "dask" else 17)
    stream = DaskStream(da.from_array(x, chunks=(10, 2)), labels, None)
    read = chunks(stream, ["x2", "x0"])
    np.testing.assert_array_equal(np.concatenate([chunk.table.content for chunk in read]), x[:, [2, 0]])
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in read]), y)


def test_a_series_of_labels_has_the_partitions_of_the_table():
    known = frame()
    data = dd.from_pandas(known, npartitions=3)
    read = chunks(DaskStream(data[["size"]], data["label"], data["weight"]))
    np.testing.assert_array_equal(np.concatenate([chunk.labels for chunk in read]), known["label"])
    with pytest.raises(ValueError, match="partitions of the table, of which there are 3; it has 2"):
        DaskStream(data[["size"]], dd.from_pandas(known, npartitions=2)["label"], None)


def test_labels_of_unknown_or_other_rows_are_refused():
    data = dd.from_pandas(frame(), npartitions=3)
    with pytest.raises(ValueError, match="there is no column 'species' for the target"):
        DaskStream(data, "species", None)
    with pytest.raises(
        ValueError, match="there is no column 'y' for the target; the columns are without names"
    ):
        DaskStream(da.zeros((5, 2)), "y", None)
    with pytest.raises(ValueError, match="49 values in the target of 50 rows"):
        DaskStream(data, np.zeros(49), None)
    with pytest.raises(ValueError, match="there is no column 'z'; the columns are"):
        chunks(DaskStream(data, "label", None), ["z"])
    fewer = data[data["size"] > 0]["label"]
    with pytest.raises(ValueError, match="labels and weights need the partitions of the table"):
        chunks(DaskStream(data[["size"]], fewer, None))
