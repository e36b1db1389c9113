"""Rows about a centre, in blocks that stay in cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibayes.core.protocols import Array

CELLS = 2**17
"""Numbers in a block of rows: a megabyte in float64."""
FEWEST_ROWS = 64


def in_blocks(n: int, d: int) -> Iterator[slice]:
    """Rows that fit into cache together."""
    rows = max(CELLS // max(d, 1), FEWEST_ROWS)
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


class Room:
    """Memory for the rows of one block, used again for every block and class."""

    def __init__(self) -> None:
        self._cells: dict[str, Array] = {}

    def away(self, x: Array, centre: Array, dtype: Any = np.float64) -> Array:
        """x - centre of each row, in some type, until the next call."""
        return np.subtract(x, centre, out=self._of(x.shape, np.dtype(dtype)), casting="same_kind")

    def _of(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        n, d = shape
        if dtype.char not in self._cells or self._cells[dtype.char].size < n * d:
            self._cells[dtype.char] = np.empty(n * d, dtype=dtype)
        return self._cells[dtype.char][: n * d].reshape(shape)
