"""The chunks of a stream as what an engine adds up over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from calibayes.backends.dask.collections import LazyParts
from calibayes.backends.dask.frame import DaskStream
from calibayes.kernels.dispatch import most_threads
from calibayes.streams.chunks import Chunk, RowStream, read_ahead


@dataclass(frozen=True)
class ChunkSource:
    """The chunks of a stream, with the named columns only; all by default.

    A single thread computes with one chunk while the next one is read; several read and compute one each.
    """

    stream: RowStream
    columns: tuple[str, ...] | None = None

    is_read_once: ClassVar[bool] = True

    def parts(self) -> Iterator[Callable[[], Chunk]]:
        """Loaders of the chunks, in the order of the rows."""
        parts = self.stream.parts(self.columns)
        return iter(parts) if most_threads() > 1 else read_ahead(parts)

    @property
    def is_lazy(self) -> bool:
        """Whether the chunks can be made by tasks of Dask."""
        return isinstance(self.stream, DaskStream)

    def lazy_parts(self) -> LazyParts | None:
        """Tasks of Dask that make the chunks; None if the stream is read in this process."""
        return self.stream.lazy_parts(self.columns) if isinstance(self.stream, DaskStream) else None
