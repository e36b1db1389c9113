"""Work on stretches of rows in threads. The stretches do not depend on the number of threads, so neither do sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BYTES = 2**22
"""What a stretch of rows holds, about."""

_jobs: ContextVar[int] = ContextVar("jobs", default=1)
_pools: ContextVar[dict[int, Executor]] = ContextVar("pools")
"""Threads that wait for work, by their number. They themselves see none, so that no thread waits for its own pool."""


@contextmanager
def thread_limit(number: int) -> Iterator[None]:
    """Inside, passes over whole tables may use so many threads."""
    token = _jobs.set(number)
    try:
        yield
    finally:
        _jobs.reset(token)


@contextmanager
def reuse_threads() -> Iterator[None]:
    """Inside, threads that were started stay: starting some takes longer than a pass over a small table."""
    pools: dict[int, Executor] = {}
    token = _pools.set(pools)
    try:
        yield
    finally:
        _pools.reset(token)
        for pool in pools.values():
            pool.shutdown()


@contextmanager
def threads(number: int) -> Iterator[Executor]:
    """So many threads: those that are kept, or new ones."""
    pools = _pools.get(None)
    if pools is None:
        with ThreadPoolExecutor(number) as pool:
            yield pool
    else:
        if number not in pools:
            pools[number] = ThreadPoolExecutor(number)
        yield pools[number]


def map_items(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """What the function says of each item, in their order, in threads where this one may use some."""
    return list(ordered_map(function, items))


def ordered_map(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The same one after the other, so that nobody need keep them all."""
    if _jobs.get() == 1 or len(items) < 2:
        yield from map(function, items)
    else:
        with threads(_jobs.get()) as pool:
            yield from pool.map(function, items)


def map_row_ranges(function: Callable[[slice], Result], n: int, row_bytes: int) -> list[Result]:
    """What the function says of each stretch of n rows, in their order; at least one stretch."""
    rows = max(BYTES // max(row_bytes, 1), 1)
    return map_items(function, [slice(start, min(start + rows, n)) for start in range(0, max(n, 1), rows)])
