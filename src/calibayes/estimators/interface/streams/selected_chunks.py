"""Rows of a stream that take part in a training, chunk by chunk, with their class codes and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.streams.stream_labels import Selection
from calibayes.tables.dask_collections import LazyParts, Unhashed
from calibayes.tables.streams.chunk import Chunk
from calibayes.tables.streams.chunk_source import ChunkSource
from calibayes.tables.table import Table


class SelectedRows(NamedTuple):
    """The rows of a chunk that take part."""

    table: Table
    codes: Array
    """Class codes, (n,), -1 for a row without a label."""
    weight: Array
    start: int
    """Number of rows that take part before these."""


class _Selected(NamedTuple):
    """Which rows of a chunk take part, with their codes and weights: what is sent to the worker that reads the chunk."""

    keep: Array | None
    codes: Array
    weight: Array | float
    """One number if it is that of all rows."""
    start: int

    def of(self, chunk: Chunk) -> SelectedRows:
        """The rows of the chunk."""
        table = chunk.table if self.keep is None else chunk.table.rows(self.keep)
        weight = np.broadcast_to(self.weight, len(self.codes))
        return SelectedRows(table, self.codes, weight, self.start)


@dataclass(frozen=True, eq=False)
class SelectedChunks:
    """A source of `SelectedRows`: the chunks of a stream in a process, or on the workers that make them."""

    chunks: ChunkSource
    selection: Selection
    codes: Array
    weight: Array

    is_read_once: ClassVar[bool] = True

    def parts(self) -> Iterator[Callable[[], SelectedRows]]:
        """Loaders of the rows of each chunk."""
        for load in self.chunks.parts():
            yield partial(self._read, load)

    def _read(self, load: Callable[[], Chunk]) -> SelectedRows:
        chunk = load()
        return self.selected(chunk.first, chunk.n).of(chunk)

    def selected(self, first: int, count: int) -> _Selected:
        """Those of ``count`` rows from ``first`` on that take part."""
        keep, start = self.selection.rows(first, count), self.selection.place(first)
        rows = slice(start, start + (count if keep is None else int(np.count_nonzero(keep))))
        return _Selected(keep, self.codes[rows], compact(self.weight[rows]), start)

    def lazy_parts(self) -> LazyParts | None:
        """Tasks that make the rows of each chunk; None if the stream is read in this process."""
        raw = self.chunks.lazy_parts()
        if raw is None:
            return None
        name = f"calibayes-rows-{uuid4().hex}"
        graph = {
            (name, i): (_selected_rows, Unhashed(self.selected(*place), f"{name}-{i}"), key)
            for i, (key, place) in enumerate(zip(raw.keys, raw.places, strict=True))
        }
        return LazyParts({**raw.graph, **graph}, list(graph), raw.places)


def _selected_rows(selected: Unhashed, chunk: Chunk) -> SelectedRows:
    rows: SelectedRows = selected.value.of(chunk)
    return rows


def compact(values: Array) -> Any:
    """The values, or one number if an array repeats it without storing it again."""
    return values if len(values) == 0 or values.strides[0] else values[0]
