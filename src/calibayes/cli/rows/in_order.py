"""A function of many items in several threads, with the results in order and a bounded number of items in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """The results for the items, in their order; at most ``jobs`` + 2 items are worked on or wait at a time."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(jobs, "calibayes") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= jobs + 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
