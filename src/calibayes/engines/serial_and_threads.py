"""Engines that run in this process: one block after another, or several at a time in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from calibayes.core.named_arrays import total
from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Engine, Parts
from calibayes.kernels.dispatch import most_threads, ordered_map, reused_threads, thread_limit


class _BlasLimit:
    """The BLAS limit of the whole process: set by the first caller to enter `one_thread`, lifted by the last to leave."""

    lock = Lock()
    controller: Any = None
    limiter: Any = None
    callers = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, BLAS uses one thread, so that sums do not depend on the number of threads; threads may enter concurrently.

    Examples
    --------
    >>> import numpy as np
    >>> with one_thread():
    ...     total = np.ones(3) @ np.ones(3)
    """
    with _BlasLimit.lock:
        if _BlasLimit.callers == 0:
            _BlasLimit.controller = _BlasLimit.controller or ThreadpoolController()
            _BlasLimit.limiter = _BlasLimit.controller.limit(limits=1, user_api="blas")
        _BlasLimit.callers += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.callers -= 1
            if _BlasLimit.callers == 0:
                _BlasLimit.limiter.restore_original_limits()


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


def local_engine(engine: Engine) -> Engine:
    """The engine, or one of this process if that is distributed: for functions that change something in this process.

    Examples
    --------
    >>> local_engine(Serial())
    Serial()
    """
    return engine_for(most_threads()) if is_distributed(engine) else engine


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
    number = thread_count(n_jobs)
    chosen: Engine = Serial() if number == 1 else Threads(number)
    with collected_warnings(), one_thread(), reused_threads(number):
        yield chosen if engine is None else chosen_engine(engine, n_jobs)
