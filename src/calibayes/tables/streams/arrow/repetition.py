"""Whether a source that is computed anew for each pass gives the same rows again."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.streams.chunk import Chunk


class Repetition:
    """Checksums of labels and weights, or of another column, by the number of a chunk's first row.

    Queries without an order may give their rows in another order each time, which no later step could notice: labels
    would be those of other rows.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._sums: dict[int, int] = {}

    def check(self, chunk: Chunk, column: Any = None) -> Chunk:
        """The chunk. Raises ValueError if labels, weights or the column differ from those of the first reading."""
        found = _checksum(column, _checksum(chunk.weight, _checksum(chunk.labels, chunk.n)))
        if self._sums.setdefault(chunk.first, found) != found:
            raise ValueError(
                f"{self.where} gave other rows than before, or in another order, but training reads them several times: "
                "add an ORDER BY to the query, or write its rows into a file first"
            )
        return chunk


def _checksum(column: Any, start: int) -> int:
    if column is None:
        return start
    if isinstance(column, CodedColumn):
        return _checksum(column.codes, crc32(repr(column.values.tolist()).encode(), start))
    if column.dtype == object:
        return crc32(repr(column.tolist()).encode(), start)
    return crc32(np.ascontiguousarray(column).view(np.uint8).data, start)
