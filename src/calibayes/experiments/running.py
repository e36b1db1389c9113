"""Cells computed in several processes, each finished one kept at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from calibayes.experiments.results.cells import Cell, key
from calibayes.experiments.store import Store

Results = dict[str, dict[str, Any]]
"""Key of a cell -> its result."""

SECONDS = "processor seconds"
"""Beside each result: what it took."""


def run_cells(cells: Sequence[Cell], store: Store, jobs: int, done: Callable[[int], None]) -> Results:
    """Results of all cells: those that are kept already, and the others as they are finished.

    ``done`` is told how many more are there. An interruption loses the cells in progress and no others.
    """
    wanted = {key(cell): cell for cell in cells}
    kept = {name: store.get(name) for name in wanted}
    results: Results = {name: result for name, result in kept.items() if result is not None}
    done(len(results))
    missing = [(name, cell) for name, cell in wanted.items() if name not in results]
    if not missing:
        return results
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(jobs, len(missing)), _prepare_worker, (dict(os.environ),)) as pool:
        for name, result in pool.imap_unordered(_work, missing):
            if "failed" not in result:
                store.put(name, result)
            results[name] = result
            done(1)
    return results


def _prepare_worker(environment: dict[str, str]) -> None:
    """One thread of BLAS each; an interruption is the parent's to handle."""
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threadpool_limits(1)


def _work(named: tuple[str, Cell]) -> tuple[str, dict[str, Any]]:
    """A result; that a model refuses its rows is one too, but not one to keep."""
    name, cell = named
    began = time.process_time()
    try:
        return name, {**cell.run(), SECONDS: time.process_time() - began}
    except ValueError as error:
        return name, {"failed": str(error)}
