"""Engines that run in this process: one block after another, or several at a time in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from calibayes.core.named_arrays import total
from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Engine, Parts
from calibayes.kernels.dispatch import ordered_map, reuse_threads, thread_limit


class _Limit:
    """One BLAS limit for the whole process: set by the first caller to enter, lifted by the last to leave."""

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
    """Inside, BLAS uses one thread, so that sums do not depend on the number of threads; threads may enter concurrently.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     total = np.ones(3) @ np.ones(3)
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


@dataclass(frozen=True)
class Serial:
    """One block after another, in the calling thread.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> GaussianNB(engine=Serial()).fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]).predict([[5.0]])
    array([1])
    """

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Parts) -> Any:
        with one_thread():
            return total(function(load()) for load in source.parts())

    def each(self, function: Callable[[Any], Any], source: Parts) -> list[Any]:
        """``function(block)`` of every block, in the order of the rows."""
        with one_thread():
            return [function(load()) for load in source.parts()]


@dataclass(frozen=True)
class Threads:
    """``jobs`` threads; sums are added in the order of the rows, so results do not depend on their number.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> GaussianNB(engine=Threads(2)).fit([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]).predict([[5.0]])
    array([1])
    """

    jobs: int = 2

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Parts) -> Any:
        with one_thread(), thread_limit(self.jobs):
            return total(ordered_map(lambda load: function(load()), source.parts()))

    def each(self, function: Callable[[Any], Any], source: Parts) -> list[Any]:
        """``function(block)`` of every block, in the order of the rows; a single block may use all threads."""
        with one_thread(), thread_limit(self.jobs):
            return list(ordered_map(lambda load: function(load()), source.parts()))


def chosen_engine(engine: Any, n_jobs: Any) -> Engine:
    """The engine given, or that for ``n_jobs``: serial for one job, threads for more.

    Raises ValueError if it is no engine, or ``n_jobs`` no number of jobs.

    Examples
    --------
    >>> chosen_engine(None, 1), chosen_engine(Threads(3), 1)
    (Serial(), Threads(jobs=3))
    """
    if engine is None:
        return engine_for(n_jobs)
    if isinstance(engine, type) or not hasattr(engine, "total") or not hasattr(engine, "each"):
        raise ValueError(
            f"engine must have the methods `total` and `each`, such as Threads(2), got {engine!r}"
        )
    return engine


def is_distributed(engine: Any) -> bool:
    """Whether an engine runs functions in other processes, which cannot change anything in this one.

    Examples
    --------
    >>> is_distributed(Serial())
    False
    """
    return bool(getattr(engine, "is_distributed", False))


def engine_for(n_jobs: int | None) -> Serial | Threads:
    """Serial for one job, threads for more; negative numbers count from the number of cores, as in joblib.

    Examples
    --------
    >>> engine_for(1), engine_for(3)
    (Serial(), Threads(jobs=3))
    """
    number = thread_count(n_jobs)
    return Serial() if number == 1 else Threads(number)


def thread_count(n_jobs: Any) -> int:
    """Number of threads that ``n_jobs`` means. Raises ValueError unless it is a whole number other than 0, or None.

    Examples
    --------
    >>> thread_count(None), thread_count(3)
    (1, 3)
    """
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    return int(effective_n_jobs(n_jobs))


@contextmanager
def computing(engine: Any, n_jobs: Any) -> Iterator[Engine]:
    """The engine of a call. Inside, it uses ``n_jobs`` threads over blocks and BLAS one; warnings are given at the end.

    Examples
    --------
    >>> with computing(None, 2) as engine:
    ...     print(engine)
    Threads(jobs=2)
    """
    chosen, number = chosen_engine(engine, n_jobs), thread_count(n_jobs)
    with collected_warnings(), one_thread(), reuse_threads(), thread_limit(number):
        yield chosen
