"""Chunks that are read while others are used."""

import gc
import sys
import threading
import time
from contextlib import closing
from functools import partial

import pytest

from calibayes.streams.chunks import READ_AHEAD, read_ahead


def loaders(number, log=None, delay=0.0):
    """Loaders of 0, 1, ...; the log has the numbers that were loaded."""

    def load(i):
        time.sleep(delay)
        if log is not None:
            log.append(i)
        return i

    return (partial(load, i) for i in range(number))


def failing(number):
    yield from loaders(number)
    yield partial(int, "no number")
    yield from loaders(number)


def background_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def wait_for(log, number):
    deadline = time.time() + 10
    while len(log) < number and time.time() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_all_chunks_come_in_order(number):
    assert [load() for load in read_ahead(loaders(20), number)] == list(range(20))
    assert list(read_ahead([], number)) == []


@pytest.mark.parametrize("number", [1, 3])
def test_no_more_than_the_given_number_are_read_ahead(number):
    log = []
    with closing(read_ahead(loaders(20, log), number)) as ahead:
        first = next(ahead)
        wait_for(log, number + 1)
        time.sleep(0.05)
        assert log == list(range(number + 1))
        assert first() == first() == 0


def test_reading_overlaps_with_computing():
    begin = time.perf_counter()
    for load in read_ahead(loaders(10, delay=0.03)):
        load()
        time.sleep(0.03)
    assert time.perf_counter() - begin < 10 * 0.06 * 0.9


def test_an_error_is_raised_by_the_chunk_that_has_it():
    ahead = read_ahead(failing(2), 3)
    assert [next(ahead)(), next(ahead)()] == [0, 1]
    broken = next(ahead)
    with pytest.raises(ValueError, match="no number"):
        broken()
    ahead.close()
    assert background_threads() == []


def test_the_thread_ends_with_the_iterator():
    def interrupted():
        for load in read_ahead(loaders(1000), 2):
            if load() == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert background_threads() == []


def test_the_source_is_closed_with_the_iterator():
    closed = []

    def source():
        try:
            yield from loaders(100)
        finally:
            closed.append(True)

    ahead = read_ahead(source())
    next(ahead)
    ahead.close()
    assert closed == [True]


@pytest.mark.parametrize(
    "is_other", [False, True], ids=["by the reading thread", "by a thread that it waits for"]
)
def test_any_thread_may_collect_the_iterator_as_garbage(is_other, monkeypatch):
    """After an error nothing but a circle of references holds it, and Python collects garbage in any thread."""
    problems, go_on = [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", problems.append)

    def collects():
        assert go_on.wait(10)
        collector = threading.Thread(target=gc.collect, daemon=True)
        if is_other:
            collector.start()
            collector.join(10)
        else:
            gc.collect()
        ended.append(not collector.is_alive())

    ended = []
    held = [read_ahead([lambda: 1, collects])]
    assert next(held[0])() == 1
    (reader,) = [thread for thread in threading.enumerate() if thread.name.startswith(READ_AHEAD)]
    gc.disable()
    try:
        held.append(held)
        del held
        go_on.set()
        reader.join(20)
    finally:
        gc.enable()
    assert ended == [True]
    assert not reader.is_alive()
    assert problems == []
