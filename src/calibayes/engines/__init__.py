"""Engines: where functions of blocks run. Any engine gives the same numbers, bit for bit, on the same blocks.

`Dask` adds the sums of blocks in another order, which changes results by rounding alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes.engines.serial_and_threads import (
    Serial,
    Threads,
    chosen_engine,
    computing,
    engine_for,
    is_distributed,
    one_thread,
    thread_count,
)

if TYPE_CHECKING:
    from calibayes.backends.dask.engine import Dask

__all__ = [
    "Dask",
    "Serial",
    "Threads",
    "chosen_engine",
    "computing",
    "engine_for",
    "is_distributed",
    "one_thread",
    "thread_count",
]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """`Dask`, imported at first use."""
        if name != "Dask":
            raise AttributeError(f"module 'calibayes.engines' has no attribute {name!r}")
        return import_module("calibayes.backends.dask.engine").Dask
