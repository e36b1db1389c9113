"""A Dask cluster on this machine, shared by the tests of a module, and functions that end workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibayes.engines import Dask

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """A client of two worker processes, which are started anew when they are killed.

    Workers are forked from a process that has imported the package, which takes seconds otherwise.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        distributed.utils.get_mp_context().set_forkserver_preload(["calibayes", "distributed"])
        cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        with cluster, distributed.Client(cluster) as client:
            yield client


def first_time(flag: Path) -> bool:
    """Whether this is the first call with a flag, of all processes."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class KilledOnce:
    """A function of blocks that kills its worker at the first call for the block that begins at a given row."""

    def __init__(self, function: Callable[[Any], Any], flag: Path, row: int) -> None:
        self.function, self.flag, self.row = function, flag, row

    def __call__(self, block: Any) -> Any:
        first = block.start if hasattr(block, "start") else block.first
        if first == self.row and first_time(self.flag):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(block)


class KillingEngine:
    """The Dask engine, with a worker killed in the middle of each of the first passes."""

    is_distributed = True

    def __init__(self, folder: Path, row: int, passes: int) -> None:
        self.engine, self.folder, self.row, self.left = Dask(), folder, row, passes
        self.killed = 0

    def total(self, function: Callable[[Any], Any], source: Any) -> Any:
        if self.left:
            self.left -= 1
            flag = self.folder / f"pass-{self.left}"
            sums = self.engine.total(KilledOnce(function, flag, self.row), source)
            self.killed += flag.exists()
            return sums
        return self.engine.total(function, source)

    def each(self, function: Callable[[Any], Any], source: Any) -> list[Any]:
        return self.engine.each(function, source)
