"""Encoded rows between passes, in memory and in a temporary file."""

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calibayes.streams import array_store as kept_module
from calibayes.streams.array_store import KeptArrays
from calibayes.tables.read import memory_budget
from calibayes.tables.row_blocks import ArraySource


@pytest.fixture(params=[0, 10**6], ids=["file", "memory"])
def kept(request, tmp_path):
    return KeptArrays(request.param, str(tmp_path))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float64])
@pytest.mark.parametrize("shape", [(100, 3), (100,), (100, 0)])
def test_rows_are_read_as_they_were_written(kept, dtype, shape):
    rng = np.random.default_rng(0)
    expected = rng.integers(0, 100, shape).astype(dtype)
    kept.allocate((7, 5), np.float64)
    array = kept.allocate(shape, dtype)
    for start in (60, 0, 30):
        array[start : start + 40] = expected[start : start + 40]
    assert (array.shape, array.ndim, array.dtype, len(array)) == (shape, len(shape), np.dtype(dtype), 100)
    chosen = [
        slice(10, 20),
        slice(None),
        slice(95, 200),
        slice(5, 5),
        slice(3, 60, 7),
        slice(50, 10, -3),
        4,
        -1,
    ]
    chosen += [
        rng.permutation(100),
        np.array([3, 3, -1]),
        np.array([], dtype=np.intp),
        expected.sum() + np.arange(100) > 50,
    ]
    for rows in chosen:
        np.testing.assert_array_equal(array[rows], expected[rows])
        assert array[rows].dtype == expected.dtype


def test_what_was_not_written_is_zero(kept):
    array = kept.allocate((5, 2), np.int32)
    array[1:3] = np.ones((2, 2))
    assert array[:].tolist() == [[0, 0], [1, 1], [1, 1], [0, 0], [0, 0]]


def test_rows_outside_are_refused(kept):
    array = kept.allocate((5, 2), np.int32)
    with pytest.raises(IndexError):
        array[np.array([5])]
    with pytest.raises(ValueError, match="shape"):
        array[4:6] = np.ones((2, 2))


def test_threads_write_different_rows(kept):
    array = kept.allocate((4000, 3), np.int64)
    expected = np.arange(12000).reshape(4000, 3)
    parts = [slice(start, start + 10) for start in range(0, 4000, 10)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda rows: array.__setitem__(rows, expected[rows]), parts))
    np.testing.assert_array_equal(array[:], expected)


def test_blocks_of_a_source_are_the_same_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    columns, labels = rng.integers(0, 9, (1000, 4)).astype(np.uint8), rng.integers(0, 2, 1000)
    arrays = KeptArrays(0, str(tmp_path))
    array = arrays.allocate(columns.shape, columns.dtype)
    array[:] = columns
    sources = [ArraySource({"a": one}, labels, np.ones(1000), labels > 5, k=2) for one in (columns, array)]
    for left, right in zip(*(source.parts() for source in sources), strict=True):
        np.testing.assert_array_equal(left().columns["a"], right().columns["a"])
    shuffled = [source.batches(64, np.random.default_rng(1)) for source in sources]
    for left, right in zip(*shuffled, strict=True):
        np.testing.assert_array_equal(left.columns["a"], right.columns["a"])


def test_the_budget_is_spent_in_the_order_of_the_arrays(tmp_path):
    arrays = KeptArrays(100, str(tmp_path))
    kinds = [type(arrays.allocate((size,), np.uint8)).__name__ for size in (60, 60, 40, 1)]
    assert kinds == ["ndarray", "OnDisk", "ndarray", "OnDisk"]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        *(("", 2**28), (" ", 2**28), ("0", 0), ("1000", 1000), ("2K", 2048), ("1.5MiB", 3 * 2**19)),
        *(("2 gb", 2**31), (" 2G ", 2**31), ("1e9", 10**9), (".5k", 512), ("5.b", 5), ("0.1", 0)),
        *(("8388607T", 8388607 * 2**40), ("1e2TiB", 100 * 2**40)),
    ],
)
def test_the_budget_is_set_by_the_environment(text, budget, monkeypatch):
    monkeypatch.setenv("CALIBAYES_MEMORY", text)
    assert memory_budget() == budget


@pytest.mark.parametrize(
    "text",
    [
        *(
            "much",
            "-1",
            "-0",
            "+1",
            "1X",
            "nan",
            "inf",
            "infinity",
            "G",
            "b",
            ".",
            "e9",
            "1e",
            "1e-3G",
            "0x10",
        ),
        *("1e99G", "1e999", "9" * 400, "8388608T", "1_000", "1,5G", "1 000", "1GG", "1G2", "१", "²"),
    ],
)
def test_a_wrong_budget_is_refused(text, monkeypatch):
    monkeypatch.setenv("CALIBAYES_MEMORY", text)
    with pytest.raises(ValueError, match=r"CALIBAYES_MEMORY must be a number of bytes such as 512M"):
        memory_budget()


def test_the_file_has_no_name(tmp_path):
    arrays = KeptArrays(0, str(tmp_path))
    arrays.allocate((10,), np.uint8)[:] = np.ones(10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("function", ["posix_fallocate", "pwrite"])
def test_a_full_disk_is_named(function, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kept_module.os, function, full)
    arrays = KeptArrays(0, str(tmp_path))
    with pytest.raises(OSError, match=r"800 bytes .* do not fit") as raised:
        arrays.allocate((100,), np.float64)[:] = np.ones(100)
    assert str(tmp_path) in str(raised.value)
    assert "TMPDIR" in str(raised.value)


def test_a_file_system_that_cannot_reserve_space_is_used(tmp_path, monkeypatch):
    def unsupported(*arguments):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(kept_module.os, "posix_fallocate", unsupported)
    arrays = KeptArrays(0, str(tmp_path))
    array = arrays.allocate((5,), np.float64)
    array[:] = np.arange(5)
    assert array[:].tolist() == list(range(5))


def test_another_error_of_writing_is_named(tmp_path, monkeypatch):
    def broken(*arguments):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(kept_module.os, "pwrite", broken)
    arrays = KeptArrays(0, str(tmp_path))
    array = arrays.allocate((5,), np.float64)
    with pytest.raises(OSError, match=r"encoded rows cannot be written into .*Input/output error"):
        array[:] = np.arange(5)


def test_a_short_write_goes_on(tmp_path, monkeypatch):
    whole = os.pwrite
    monkeypatch.setattr(kept_module.os, "pwrite", lambda file, view, place: whole(file, view[:3], place))
    arrays = KeptArrays(0, str(tmp_path))
    array = arrays.allocate((10,), np.float64)
    array[:] = np.arange(10)
    assert array[:].tolist() == list(range(10))


def test_nothing_is_left_after_a_kill(tmp_path):
    script = (
        "import sys, time, numpy as np\nfrom calibayes.streams.array_store import KeptArrays\n"
        "kept = KeptArrays(0, sys.argv[1])\nkept.allocate((1000,), np.uint8)[:] = np.ones(1000)\n"
        "print('written', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"written\n"
        process.kill()
        assert process.wait(30) != 0
    assert list(tmp_path.iterdir()) == []
