"""Rows that trees are grown on, encoded and kept on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from calibayes.backends.dask.collections import LazyParts, Unhashed, unwrapped
from calibayes.backends.dask.engine import kept_futures
from calibayes.kernels.growth_rows import GrowthRows, RowMarks
from calibayes.streams.growth_blocks import BytesOfRows
from calibayes.streams.streamed_rows import SelectedChunks, SelectedRows


@dataclass(frozen=True, eq=False)
class GrowthOnWorkers:
    """A source of blocks, one for each partition, which stay on the workers.

    A block holds bytes, labels and weights. What trees have made of it is kept beside it, and computed again from the trees
    wherever it is lost.
    """

    chunks: SelectedChunks
    encoding: BytesOfRows

    is_read_once: ClassVar[bool] = False

    def parts(self) -> Iterator[Callable[[], GrowthRows]]:
        """Loaders of the blocks, encoded in this process."""
        for load in self.chunks.parts():
            yield partial(self._block, load)

    def _block(self, load: Callable[[], SelectedRows]) -> GrowthRows:
        return self.encoding.block(load())

    def lazy_parts(self) -> LazyParts:
        """Tasks that make the blocks."""
        rows = self.chunks.lazy_parts()
        if rows is None:
            raise ValueError("the stream is read in this process: its rows cannot be encoded on workers")
        name, shared = f"calibayes-bytes-{uuid4().hex}", f"calibayes-encoder-{uuid4().hex}"
        graph: dict[Any, Any] = {shared: (unwrapped, Unhashed(self.encoding, shared))}
        keys = []
        for i, (key, place) in enumerate(zip(rows.keys, rows.places, strict=True)):
            if len(self.chunks.selected(*place).codes):
                keys.append((name, i))
                graph[name, i] = (_block, shared, key)
        return LazyParts({**rows.graph, **graph}, keys)

    @property
    def sizes(self) -> list[int]:
        """Number of rows of each block."""
        rows = self.chunks.lazy_parts()
        parts = [] if rows is None else [self.chunks.selected(*place) for place in rows.places]
        counts = self.encoding.counts
        copies = [counts.copies(part.codes, np.broadcast_to(part.weight, len(part.codes))) for part in parts]
        pairs = zip(parts, copies, strict=True)
        sizes = [len(part.codes) if number is None else int(number.sum()) for part, number in pairs]
        return [size for size in sizes if size]

    def marked(self, marks: RowMarks) -> MarkedOnWorkers:
        """The blocks with what is known of them once all were seen."""
        return MarkedOnWorkers(self, marks)


@dataclass(frozen=True, eq=False)
class MarkedOnWorkers:
    """A source of the blocks of another source with their marks."""

    before: GrowthOnWorkers
    marks: RowMarks

    is_read_once: ClassVar[bool] = False

    def parts(self) -> Iterator[Callable[[], GrowthRows]]:
        """Loaders of the blocks, encoded in this process."""
        begin = 0
        for load in self.before.parts():
            block = load()
            yield partial(block.marked, self.marks.of(slice(begin, begin + block.n)))
            begin += block.n

    def lazy_parts(self) -> LazyParts:
        """Tasks that make the blocks, from those that are on the workers if there are any."""
        futures = kept_futures(self.before)
        blocks = LazyParts({}, futures) if futures else self.before.lazy_parts()
        name, ends = f"calibayes-marked-{uuid4().hex}", pairwise(accumulate(self.before.sizes, initial=0))
        graph: dict[Any, Any] = {}
        for i, (key, end) in enumerate(zip(blocks.keys, ends, strict=True)):
            graph[name, i] = (_marked, key, Unhashed(self.marks.of(slice(*end)), f"{name}-{i}"))
        return LazyParts({**blocks.graph, **graph}, list(graph))

    def marked(self, marks: RowMarks) -> MarkedOnWorkers:
        """The same blocks with other marks."""
        return replace(self, marks=marks)


def _block(encoding: BytesOfRows, rows: SelectedRows) -> GrowthRows:
    return encoding.block(rows)


def _marked(block: GrowthRows, wrapped: Unhashed) -> GrowthRows:
    return block.marked(wrapped.value)
