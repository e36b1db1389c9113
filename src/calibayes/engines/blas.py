"""BLAS held to one thread: blocks are the unit of parallel work, and sums must not depend on the number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class _Limit:
    """One limit for the whole process: the first to come in sets it, the last to leave lifts it."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limiter = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()


@cache
def _controller() -> Any:
    return ThreadpoolController()


_limit = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS runs on one thread, also when several threads are inside at once."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
