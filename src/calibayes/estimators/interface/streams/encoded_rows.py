"""Encoded rows of a stream on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array
from calibayes.estimators.interface.streams.selected_chunks import SelectedChunks, SelectedRows, compact
from calibayes.tables.dask_collections import LazyParts, Unhashed, unwrapped
from calibayes.tables.sources import ArraySource
from calibayes.tables.streams.types import as_types


@dataclass(frozen=True)
class Encoding:
    """How the rows of a chunk are encoded."""

    binding: Any
    conversion: Any
    types: Mapping[str, np.dtype[Any]]
    """Name of a family -> the type in which its columns are stored."""
    widths: Mapping[str, int]
    """Name of a family -> number of its columns."""

    def columns(self, rows: SelectedRows) -> dict[str, Array]:
        """The encoded columns of each family."""
        table = self.conversion.apply(as_types(rows.table, self.conversion.types))
        encoded = self.binding.encode(table).items()
        return {name: columns.astype(self.types[name], copy=False) for name, columns in encoded}

    def placed(self, rows: SelectedRows) -> tuple[int, dict[str, Array]]:
        """The number of rows before these, and their encoded columns."""
        return rows.start, self.columns(rows)


@dataclass(frozen=True, eq=False)
class EncodedOnWorkers:
    """A source of blocks that are encoded on the workers, from the partitions there, and stay on them."""

    chunks: SelectedChunks
    encoding: Encoding
    held_out: Array
    sizes: Mapping[str, int]
    """Number of classes and least number of cells of a block: see `ArraySource`."""

    is_read_once: ClassVar[bool] = False

    def parts(self) -> Iterator[Callable[[], Block]]:
        """Loaders of blocks of a partition each, encoded in this process."""
        for load in self.chunks.parts():
            yield partial(self._block, load)

    def _block(self, load: Callable[[], SelectedRows]) -> Block:
        rows = load()
        held_out = self.held_out[rows.start : rows.start + len(rows.codes)]
        return Block(self.encoding.columns(rows), rows.codes, rows.weight, held_out, rows.start)

    def lazy_parts(self) -> LazyParts:
        """Tasks that make the blocks of each partition."""
        rows = self.chunks.lazy_parts()
        if rows is None:
            raise ValueError("the stream is read in this process: its rows cannot be encoded on workers")
        name, shared = f"calibayes-block-{uuid4().hex}", f"calibayes-encoders-{uuid4().hex}"
        graph: dict[Any, Any] = {shared: (unwrapped, Unhashed(self.encoding, shared))}
        keys = []
        for i, (key, place) in enumerate(zip(rows.keys, rows.places, strict=True)):
            part = self.chunks.selected(*place)
            held_out = compact(self.held_out[part.start : part.start + len(part.codes)])
            if len(part.codes):
                keys.append((name, i))
                graph[name, i] = (_blocks, shared, key, Unhashed((held_out, self.sizes), f"{name}-{i}"))
        return LazyParts({**rows.graph, **graph}, keys)

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        """Raises ValueError: random batches of rows would have to be gathered from all workers."""
        raise ValueError(
            "batch_size needs rows in the memory of this process: leave it out for a Dask collection that is trained on by "
            "the Dask engine, or use another engine"
        )


def _blocks(encoding: Encoding, rows: SelectedRows, wrapped: Unhashed) -> list[Block]:
    """The encoded rows of a partition, in blocks of the usual size."""
    held_out, sizes = wrapped.value
    every = np.broadcast_to(held_out, len(rows.codes))
    source = ArraySource(encoding.columns(rows), rows.codes, rows.weight, every, **sizes)
    blocks = (load() for load in source.parts())
    return [replace(block, first=rows.start + block.first) for block in blocks]
