"""Engines: where sums over blocks run. Any engine gives the same numbers, bit for bit, on the same blocks."""

from calibayes.engines.local import Serial, Threads, engine_for, one_thread, thread_count

__all__ = ["Serial", "Threads", "engine_for", "one_thread", "thread_count"]
