"""Batches of any size as tables of one size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibayes.tables.streams.arrow.modules import pyarrow


def tables_of(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Batches of any size as tables of ``size`` rows, the last one of fewer."""
    pa, waiting, rows = pyarrow(), [], 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= size:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, size)
            rows -= size
            waiting = table.slice(size).to_batches() if rows else []
    if rows:
        yield pa.Table.from_batches(waiting)
