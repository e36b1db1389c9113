"""Parallel loops over items or ranges of rows. Ranges do not depend on the number of threads, so neither do sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BYTES = 2**22
"""Approximate size of a range of rows in bytes."""

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


def map_items(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function(item)`` for each item, in the order of the items, in parallel within `thread_limit`."""
    return list(ordered_map(function, items))


def ordered_map(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """`map_items` as an iterator, so that results need not be stored all at once."""
    if _jobs.get() == 1 or len(items) < 2:
        yield from map(function, items)
    else:
        with thread_pool(_jobs.get()) as pool:
            yield from pool.map(function, items)


def map_row_ranges(function: Callable[[slice], Result], n: int, row_bytes: int) -> list[Result]:
    """``function(rows)`` for consecutive slices of n rows of about `BYTES` bytes, in order; at least one slice."""
    size = max(BYTES // max(row_bytes, 1), 1)
    return map_items(function, [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)])
