"""Chunks that are read in the background, a bounded number at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Item = TypeVar("Item")
END = object()


def read_ahead(parts: Iterable[Callable[[], Item]], number: int = 1) -> Generator[Callable[[], Item]]:
    """The same loaders, of which the next ``number`` are called in a background thread while one is used.

    An error is raised by the loader whose rows could not be read. The thread ends when the iterator is closed, also by
    Ctrl-C.
    """
    iterator: Any = iter(parts)
    with ThreadPoolExecutor(1, "read-ahead") as pool:
        waiting: deque[Future[Any]] = deque(pool.submit(_next, iterator) for _ in range(number))
        try:
            while (ready := waiting.popleft()).exception() is not None or ready.result() is not END:
                waiting.append(pool.submit(_next, iterator))
                yield ready.result
        finally:
            for future in waiting:
                future.cancel()
            pool.shutdown()
            getattr(iterator, "close", _nothing)()


def _next(iterator: Iterator[Callable[[], Any]]) -> Any:
    """The result of the next loader, or END."""
    load = next(iterator, None)
    return END if load is None else load()


def _nothing() -> None:
    pass
