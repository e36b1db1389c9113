"""Loops in parallel threads.

`map_items` and `map_row_ranges` run loops over items or ranges of rows in parallel, within `thread_limit`. Ranges do not
depend on the number of threads, so neither do sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

RANGE_BYTES = 2**22
"""Approximate size of a range of rows in bytes."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_jobs: ContextVar[int] = ContextVar("jobs", default=1)
"""Number of threads that a loop may use."""
_pools: ContextVar[dict[int, Executor]] = ContextVar("pools")
"""Idle thread pools by their number of threads. Worker threads do not inherit the variable, so that no worker waits for
a task in its own pool."""


@contextmanager
def thread_limit(number: int) -> Iterator[None]:
    """Context in which loops may use up to ``number`` threads."""
    token = _jobs.set(number)
    try:
        yield
    finally:
        _jobs.reset(token)


@contextmanager
def reuse_threads() -> Iterator[None]:
    """Context in which thread pools are kept between loops: starting one takes longer than a pass over a small table."""
    pools: dict[int, Executor] = {}
    token = _pools.set(pools)
    try:
        yield
    finally:
        _pools.reset(token)
        for pool in pools.values():
            pool.shutdown()


@contextmanager
def thread_pool(number: int) -> Iterator[Executor]:
    """A pool of ``number`` threads: a kept one inside `reuse_threads`, else a new one."""
    pools = _pools.get(None)
    if pools is None:
        with ThreadPoolExecutor(number) as pool:
            yield pool
    else:
        if number not in pools:
            pools[number] = ThreadPoolExecutor(number)
        yield pools[number]


def most_threads() -> int:
    """Number of threads that a loop may use here."""
    return _jobs.get()


def map_items(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function(item)`` for each item, in the order of the items, in parallel within `thread_limit`."""
    return list(ordered_map(function, items))


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map_items` as an iterator, so that results need not be stored all at once.

    Items that are no sequence, such as parts of a file that are being read, are taken a few at a time.
    """
    if _jobs.get() == 1 or (isinstance(items, Sequence) and len(items) < 2):
        yield from map(function, items)
        return
    with thread_pool(_jobs.get()) as pool:
        if isinstance(items, Sequence):
            yield from pool.map(function, items)
        else:
            yield from _few_at_a_time(pool, function, items, 2 * _jobs.get())


def _few_at_a_time(
    pool: Executor, function: Callable[[Item], Result], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Results in the order of the items, of which at most so many are taken before their results are used."""
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def map_row_ranges(function: Callable[[slice], Result], n: int, row_bytes: int) -> list[Result]:
    """``function(rows)`` for consecutive slices of n rows of about `RANGE_BYTES` bytes, in order; at least one slice."""
    size = max(RANGE_BYTES // max(row_bytes, 1), 1)
    return map_items(function, [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)])
