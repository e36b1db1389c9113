"""Waiting for tasks of a Dask cluster that prefer some workers, whichever workers are lost meanwhile.

If the last worker of a cluster is lost, the scheduler sets tasks aside that are ready. When another worker arrives, it resumes
only those that the new worker is preferred for, or that prefer none: the others would wait for ever, although any worker
may take them (distributed 2026.8, `bulk_schedule_unrunnable_after_adding_worker`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

PATIENCE = 2.0
"""Seconds between two looks at the cluster."""
LOOKS = 2
"""Number of consecutive looks that must find that nothing is computed."""
PREFIX = "calibayes-"
"""Beginning of the names of all tasks of the engine."""


class WaitsForLostWorker(Exception):
    """Tasks wait for a worker that is lost, and no other one computes them."""


def wait_for(client: Any, futures: Any, preferred: set[str]) -> None:
    """Return when all futures are finished or one has failed.

    Raises WaitsForLostWorker if nothing is computed and one of the preferred workers is lost, CancelledError if the
    scheduler has dropped the tasks.
    """
    distributed: Any = import_module("distributed")
    waited, looks = futures if isinstance(futures, list) else [futures], 0
    while not any(future.status == "error" for future in waited):
        try:
            distributed.wait(waited, timeout=PATIENCE)
            return
        except TimeoutError:
            looks = looks + 1 if _waits_for_lost_worker(client, preferred) else 0
        if looks == LOOKS:
            raise WaitsForLostWorker


def _waits_for_lost_worker(client: Any, preferred: set[str]) -> bool:
    """Whether a preferred worker is lost and other workers, if there are any, compute no task of the engine."""
    workers = client.nthreads()
    if not workers or preferred <= workers.keys():
        return False
    computed = [key for keys in client.processing().values() for key in keys]
    return not any(PREFIX in str(key) for key in computed)
