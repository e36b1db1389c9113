"""Engines: where functions of blocks run. Any engine gives the same numbers, bit for bit, on the same blocks."""

from calibayes.engines.local import (
    Serial,
    Threads,
    chosen_engine,
    computing,
    engine_for,
    one_thread,
    thread_count,
)

__all__ = ["Serial", "Threads", "chosen_engine", "computing", "engine_for", "one_thread", "thread_count"]
