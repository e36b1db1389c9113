"""Engines: where functions of blocks run. Any engine gives the same numbers, bit for bit, on the same blocks.

`Dask` adds the sums of blocks in another order, which changes results by rounding alone.
"""

from calibayes.backends.dask.engine import Dask
from calibayes.engines.local import (
    Serial,
    Threads,
    chosen_engine,
    computing,
    engine_for,
    is_distributed,
    one_thread,
    thread_count,
)

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
