"""Chunks of a row group that is too large for one chunk: read one after another, each decoded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any

from calibayes.tables.streams.arrow.batches import tables_of


class RowGroup:
    """Consecutive rows that can only be read from their beginning.

    Threads that load neighboring chunks share one reading position. A chunk that lies before it is read by beginning
    again.
    """

    def __init__(self, read: Callable[[int], Iterator[Any]], rows: int, size: int) -> None:
        """``read(size)`` gives batches of about ``size`` of the ``rows``, from the first one on."""
        self._read, self.rows, self.size = read, rows, size
        self._lock, self._next = Lock(), 0
        self._tables: Iterator[Any] = iter(())

    def __reduce__(self) -> Any:
        return RowGroup, (self._read, self.rows, self.size)

    def __len__(self) -> int:
        """Number of chunks."""
        return (self.rows + self.size - 1) // self.size

    def chunk(self, number: int) -> Any:
        """A chunk as a table of Arrow."""
        with self._lock:
            try:
                return self._advanced_to(number)
            except BaseException:
                self._restart()
                raise

    def _advanced_to(self, number: int) -> Any:
        if number < self._next or self._next == 0:
            self._restart()
            self._tables = tables_of(self._read(self.size), self.size)
        while True:
            table = next(self._tables, None)
            if table is None:
                raise ValueError(f"fewer than the {self.rows} rows that its metadata promise")
            self._next += 1
            if self._next > number:
                break
        if self._next == len(self):
            self._restart()
        return table

    def _restart(self) -> None:
        """Let go of what was read."""
        self._tables, self._next = iter(()), 0
