"""Work on stretches of rows in threads. The stretches do not depend on the number of threads, so neither do sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Result = TypeVar("Result")

BYTES = 2**22
"""What a stretch of rows holds, about."""

_jobs: ContextVar[int] = ContextVar("jobs", default=1)


@contextmanager
def jobs(number: int) -> Iterator[None]:
    """Inside, passes over whole tables may use so many threads."""
    token = _jobs.set(number)
    try:
        yield
    finally:
        _jobs.reset(token)


def by_stretch(function: Callable[[slice], Result], n: int, row_bytes: int) -> list[Result]:
    """What the function says of each stretch of n rows, in their order; at least one stretch."""
    rows = max(BYTES // max(row_bytes, 1), 1)
    stretches = [slice(start, min(start + rows, n)) for start in range(0, max(n, 1), rows)]
    if _jobs.get() == 1 or len(stretches) == 1:
        return [function(stretch) for stretch in stretches]
    with ThreadPoolExecutor(min(_jobs.get(), len(stretches))) as pool:
        return list(pool.map(function, stretches))
