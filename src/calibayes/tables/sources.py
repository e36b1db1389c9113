"""Tables in memory, handed out in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array
from calibayes.kernels.numbers.sparse import bytes_per_row, take_rows

BYTES_PER_BLOCK = 2**23
"""A block is read several times in a pass: it should be found in the caches again, and be worth a call."""
FEWEST_ROWS = 256
SHARES = 4
"""Blocks are a multiple of so many, where they are as many: threads then have equal shares of them."""
BYTES_A_SUM = 16
"""Least bytes of a block for each number it is summed up in: those are set to zero, added to and added up."""
BYTES_A_CLASS = 32
"""Temporary numbers of a row for each class: log density, posterior, weights."""


@dataclass(frozen=True)
class ArraySource:
    """Encoded columns of each family, dense or CSR, labels and weights.

    Parameters
    ----------
    rows_per_block : int, optional
        By default a block holds about eight megabytes, whatever the number of jobs.
    """

    columns: Mapping[str, Array]
    labels: Array
    weight: Array
    held_out: Array
    rows_per_block: int | None = None
    k: int = 1
    """Number of classes: temporary arrays have a cell for each row and class."""
    least_cells: int = 0
    """Cells that a block stores at least: as many as the numbers it is summed up in."""

    @property
    def n(self) -> int:
        return len(self.labels)

    @cached_property
    def _rows(self) -> int:
        if self.rows_per_block is not None:
            return self.rows_per_block
        row = sum(bytes_per_row(columns) for columns in self.columns.values()) + BYTES_A_CLASS * self.k
        # Sums over a block have a number for each class and column at least: they should not outweigh it.
        sums = max(self.least_cells, self.k * sum(columns.shape[1] for columns in self.columns.values()))
        least = max(FEWEST_ROWS, int(BYTES_A_SUM * sums // row))
        blocks = min(-(-self.n * row // BYTES_PER_BLOCK), self.n // least)
        return max(-(-self.n // _shared(max(int(blocks), 1))), 1)

    def take(self, rows: slice | Array, first: int = 0) -> Block:
        columns = {name: take_rows(array, rows) for name, array in self.columns.items()}
        return Block(columns, self.labels[rows], self.weight[rows], self.held_out[rows], first)

    def parts(self) -> Sequence[Callable[[], Block]]:
        rows = self._rows
        return [partial(self.take, slice(start, start + rows), start) for start in range(0, self.n, rows)]

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        order = rng.permutation(self.n)
        return (self.take(order[start : start + size]) for start in range(0, self.n, size))


def _shared(blocks: int) -> int:
    return blocks // SHARES * SHARES or blocks
