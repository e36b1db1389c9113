"""Functions and an engine that end workers of a Dask cluster, once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from calibayes.engines import Dask

distributed = pytest.importorskip("distributed")


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

    def __init__(self, folder: Path, row: int, passes: int, engine: Dask | None = None) -> None:
        self.engine, self.folder, self.row, self.left = engine or Dask(), folder, row, passes
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
