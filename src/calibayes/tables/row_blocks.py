"""Encoded columns in memory, yielded in blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from calibayes.core.protocols import AnyArray, Array, Block
from calibayes.kernels.event_counts import is_sparse

BYTES_PER_BLOCK = 2**23
"""A block is read several times in a pass: small enough to stay in the processor's caches, large enough that the cost
of a call does not matter."""
FEWEST_ROWS = 256
UPDATES_PER_BLOCK = 2**28
"""Rows times numbers of their sums: a block takes some hundredths of a second, so that none of many threads waits long for the last one."""
BLOCK_MULTIPLES = (4, 16)
"""The number of blocks is a multiple of the larger one, or of the other, if there are as many: threads then get equal shares."""
BYTES_PER_SUM = 16
"""Least bytes of a block per number in its sums, which are allocated, filled and added for each block."""
BYTES_PER_CLASS = 32
"""Temporary bytes per row and class: log density, posterior, weights."""


@dataclass(frozen=True)
class ArraySource:
    """Encoded columns of each family (dense or CSR), labels and weights, in memory.

    Parameters
    ----------
    rows_per_block : int, optional
        By default a block holds about eight megabytes, or fewer where rows take long, whatever the number of jobs.
    """

    columns: Mapping[str, AnyArray]
    labels: Array
    weight: Array
    held_out: Array
    rows_per_block: int | None = None
    k: int = 1
    """Number of classes: temporary arrays have an entry for each row and class."""
    least_cells: int = 0
    """Least number of cells of a block: as many as its sums have numbers."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @cached_property
    def _rows(self) -> int:
        """Rows per block."""
        if self.rows_per_block is not None:
            return self.rows_per_block
        n = len(self.labels)
        row = BYTES_PER_CLASS * self.k + sum(
            _sparse_row_bytes(columns) if is_sparse(columns) else columns.shape[1] * columns.dtype.itemsize
            for columns in self.columns.values()
        )
        # The sums of a block have at least one number per class and column; they must not outweigh its rows.
        sums = max(self.least_cells, self.k * sum(columns.shape[1] for columns in self.columns.values()))
        least = max(FEWEST_ROWS, int(BYTES_PER_SUM * sums // row))
        most, wanted = n // least, max(n * row / BYTES_PER_BLOCK, n * self.least_cells / UPDATES_PER_BLOCK)
        blocks = max(min(math.ceil(wanted), most), 1)
        low, high = BLOCK_MULTIPLES
        multiple = high if blocks >= high else low if blocks >= low else 1
        upwards = -(-blocks // multiple) * multiple
        return max(-(-n // (upwards if upwards <= most else blocks // multiple * multiple)), 1)

    def take(self, rows: slice | Array, first: int = 0) -> Block:
        """The given rows as a block; ``first`` is the number of its first row in the table."""
        tables = self.columns.items()
        columns = {name: _sparse_rows(x, rows) if is_sparse(x) else x[rows] for name, x in tables}
        return Block(columns, self.labels[rows], self.weight[rows], self.held_out[rows], first)

    def parts(self) -> Sequence[Callable[[], Block]]:
        rows = self._rows
        return [ConsecutiveRows(self, start, start + rows) for start in range(0, len(self.labels), rows)]

    def batches(self, size: int, rng: np.random.Generator) -> Iterator[Block]:
        order = rng.permutation(self.n)
        return (self.take(order[start : start + size]) for start in range(0, self.n, size))


@dataclass(frozen=True)
class ConsecutiveRows:
    """A loader of consecutive rows of a source. Its pickle holds these rows alone, not the source."""

    source: ArraySource
    start: int
    stop: int

    def __call__(self) -> Block:
        return self.source.take(slice(self.start, self.stop), self.start)

    def __reduce__(self) -> Any:
        return partial, (_same, self())


def _same(block: Block) -> Block:
    return block


def _sparse_rows(x: AnyArray, rows: slice | Array) -> AnyArray:
    """The given rows of a sparse matrix; consecutive rows of a CSR matrix share its memory."""
    if not isinstance(rows, slice) or rows.step not in (None, 1) or x.format != "csr":
        return x[rows]
    start, stop, _ = rows.indices(x.shape[0])
    cells = slice(x.indptr[start], x.indptr[max(start, stop)])
    row_starts = x.indptr[start : max(start, stop) + 1] - x.indptr[start]
    shape = (len(row_starts) - 1, x.shape[1])
    selected = type(x)((x.data[cells], x.indices[cells], row_starts), shape=shape, copy=False)
    selected.has_sorted_indices = x.has_sorted_indices
    return selected


def _sparse_row_bytes(x: AnyArray) -> float:
    """Stored bytes per row of a sparse matrix, on average."""
    return float(x.nnz * (x.data.itemsize + x.indices.itemsize) / max(x.shape[0], 1))
