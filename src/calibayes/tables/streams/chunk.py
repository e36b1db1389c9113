"""What a stream of rows is: chunks of consecutive rows that can be read again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.origin import Origin
from calibayes.tables.table import Table

CHUNK_ROWS = 2**17
CHUNK_BYTES = 2**25
"""A chunk has at most so many rows, and about so many bytes with eight to a cell."""
FEWEST_CHUNK_ROWS = 2**10


class Chunk(NamedTuple):
    """Consecutive rows, as they were read."""

    table: Table
    """The columns that were asked for, without those of labels and weights."""
    labels: Array | None
    """Labels as they are stored, (n,): an array, or a `CodedColumn` for text; None if no target was named."""
    weight: Array | None
    """Weights as they are stored, (n,); None if there are none."""
    first: int
    """Number of the first row in the stream."""

    @property
    def n(self) -> int:
        """Number of rows, also if no column was asked for."""
        return self.table.n if self.labels is None else len(self.labels)


class RowStream(Protocol):
    """Rows that can be read several times, chunk by chunk.

    A chunk has the types that its own rows have: integers are floats in a chunk with missing cells and integers in one
    without, booleans are objects in a chunk with missing cells. `tables.streams.types.ColumnTypes` finds the types of
    all rows.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without those of labels and weights."""

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Types of the columns if no cell is missing, as far as they are known without reading rows."""

    @property
    def origin(self) -> Origin:
        """The kind of table that sampled rows are returned as."""

    @property
    def rows(self) -> int | None:
        """Number of rows; None if only reading tells."""

    def parts(self, columns: Sequence[str] | None = None) -> Iterable[Callable[[], Chunk]]:
        """Loaders of the chunks, in the order of the rows, the same chunks in every call.

        Only the named columns are read, all by default; an empty list reads labels and weights alone. Loaders of files
        that can be read at any place read when they are called, so several threads can call them at a time; those of
        sequential sources hold rows that were read while iterating. A loader can be called again.

        Raises ValueError or OSError, naming the file, if rows cannot be read.
        """


def chunk_rows(d: int) -> int:
    """Number of rows of a chunk of d columns."""
    return int(np.clip(CHUNK_BYTES // (8 * max(d, 1)), FEWEST_CHUNK_ROWS, CHUNK_ROWS))
