"""Where the computations of a call run: threads, BLAS, engine; and when its warnings are given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Engine
from calibayes.engines import engine_for, one_thread, thread_count
from calibayes.estimators.interface import checks
from calibayes.kernels.threads import reuse_threads, thread_limit


@contextmanager
def computing(n_jobs: Any) -> Iterator[None]:
    """Inside, a call uses ``n_jobs`` threads over blocks and BLAS one; its warnings are given once, at the end."""
    number = thread_count(checks.jobs(n_jobs))
    with collected_warnings(), one_thread(), reuse_threads(), thread_limit(number):
        yield


def chosen_engine(engine: Any, n_jobs: Any) -> Engine:
    """The engine given, or the one for ``n_jobs``. Raises ValueError if it is no engine."""
    if engine is None:
        return engine_for(checks.jobs(n_jobs))
    if isinstance(engine, type) or not hasattr(engine, "total") or not hasattr(engine, "each"):
        raise ValueError(
            f"engine must have the methods `total` and `each`, such as Threads(2), got {engine!r}"
        )
    chosen: Engine = engine
    return chosen
