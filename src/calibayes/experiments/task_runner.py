"""Compute tasks in several processes and cache each result as soon as it is finished."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import Any

from threadpoolctl import threadpool_limits

from calibayes.experiments.result_cache import ResultCache
from calibayes.experiments.task import Task, task_key

Results = dict[str, dict[str, Any]]
"""Key of a task -> its result."""

SECONDS = "processor seconds"
"""Entry of each result: processor time of the task."""
CHECK_SECONDS = 2.0
"""Time between two checks that no worker process has ended."""


def run_tasks(
    tasks: Sequence[Task], cache: ResultCache, jobs: int, on_finished: Callable[[int], None]
) -> Results:
    """Results of all tasks, from the cache or computed.

    ``on_finished`` is called with the number of tasks finished since the last call. An interruption loses only the
    tasks in progress. A task that raises ValueError has the result ``{"failed": message}``, which is not cached. Raises
    ChildProcessError if a process was killed; the results of finished tasks are cached.
    """
    by_key = {task_key(task): task for task in tasks}
    cached = {key: cache.get(key) for key in by_key}
    results: Results = {key: result for key, result in cached.items() if result is not None}
    on_finished(len(results))
    missing = [(key, task) for key, task in by_key.items() if key not in results]
    if not missing:
        return results
    others = set(multiprocessing.active_children())
    with _worker_pool(min(jobs, len(missing))) as pool:
        futures = [pool.submit(_run_task, entry) for entry in missing]
        for key, result in _finished(futures, set(multiprocessing.active_children()) - others):
            if "failed" not in result:
                cache.put(key, result)
            results[key] = result
            on_finished(1)
    return results


@contextmanager
def _worker_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which are ended without waiting for their tasks if the block is left by an exception."""
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, _prepare_worker, (dict(os.environ),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _finished(
    futures: Sequence[Future[tuple[str, dict[str, Any]]]], workers: set[BaseProcess]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keys and results as tasks finish. If a process was killed, finished tasks come first, then the error.

    The pool of Python 3.11 does not notice the end of a process that it started last: the processes are checked, too.
    """
    pending, is_broken = set(futures), False
    while pending and not is_broken:
        done, pending = wait(pending, CHECK_SECONDS, FIRST_COMPLETED)
        for future in done:
            try:
                yield future.result()
            except BrokenProcessPool:
                is_broken = True
        is_broken |= bool(pending) and not done and not all(process.is_alive() for process in workers)
    for future in pending:  # finished between the last check and the end of the pool
        if future.done() and future.exception() is None:
            yield future.result()
    if is_broken:
        raise ChildProcessError(
            "a worker process of the computation ended unexpectedly: it was killed, perhaps for lack of memory. "
            "Finished results are cached: run the same command again to resume, with fewer processes (--jobs) if "
            "memory is short"
        )


def _prepare_worker(environment: dict[str, str]) -> None:
    """One BLAS thread per process; keyboard interrupts are left to the parent process."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _run_task(key_and_task: tuple[str, Task]) -> tuple[str, dict[str, Any]]:
    key, task = key_and_task
    start = time.process_time()
    try:
        return key, {**task.run(), SECONDS: time.process_time() - start}
    except ValueError as error:
        return key, {"failed": str(error)}
