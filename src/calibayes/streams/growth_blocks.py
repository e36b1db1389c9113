"""Rows of a stream as blocks that trees are grown on: in memory as one, or beyond a budget many in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.engines.serial_and_threads import local_engine
from calibayes.kernels.growth_rows import (
    GrowthBlocks,
    GrowthRows,
    ManyBlocks,
    OneBlock,
    RowMarks,
    one_or_all,
)
from calibayes.kernels.moments import RowCounts
from calibayes.kernels.tree_nodes import WORD
from calibayes.streams.array_store import KeptArrays
from calibayes.streams.chunks import as_types
from calibayes.tables.read import memory_budget

if TYPE_CHECKING:
    from calibayes.streams.streamed_rows import SelectedRows, StreamedRows


@dataclass(frozen=True)
class BytesOfRows:
    """How the rows of a chunk become a block."""

    conversion: Any
    encoder: Any
    counts: RowCounts

    def block(self, rows: SelectedRows) -> GrowthRows:
        """The block of the rows of a chunk."""
        table = self.conversion.apply(as_types(rows.table, self.conversion.types))
        block: GrowthRows = self.encoder.one_block(table, rows.codes, rows.weight, self.counts).rows
        return block


def growth_blocks(rows: StreamedRows, encoder: Any, counts: RowCounts) -> GrowthBlocks:
    """All rows, encoded in one pass over them: on the workers of a Dask cluster if they are read there, else here."""
    encoding = BytesOfRows(rows.summary.conversion, encoder, counts)
    if rows.is_on_workers:
        from calibayes.backends.dask.tree_blocks import GrowthOnWorkers

        return ManyBlocks(rows.engine, GrowthOnWorkers(rows.chunks(), encoding))
    copies = counts.copies(rows.codes, rows.weight)
    n = len(rows.codes) if copies is None else int(copies.sum())
    rows.report(f"encoding {n} rows")
    words = ceil(len(encoder.sizes) / WORD)
    if n * words * WORD <= memory_budget():
        first = (lambda start: start) if copies is None else np.append(0, np.cumsum(copies)).__getitem__
        return OneBlock(_together(rows, encoding, first, (words, n)))
    return ManyBlocks(local_engine(rows.engine), BlockList(_apart(rows, encoding)))


def _together(
    rows: StreamedRows, encoding: BytesOfRows, first: Callable[[int], int], shape: tuple[int, int]
) -> GrowthRows:
    """All rows as one block; ``first`` is the place of the first copy of a row."""
    words, labels = np.zeros(shape, dtype=np.uint64), np.zeros(shape[1], dtype=np.int32)
    weights: dict[int, Array] = {}
    cells: list[Array] = []

    def write(given: SelectedRows) -> dict[str, int]:
        block, begin = encoding.block(given), int(first(given.start))
        words[:, begin : begin + block.n], labels[begin : begin + block.n] = block.words, block.labels
        cells.append(block.first)
        if block.n:
            weights[begin] = block.weight
        return {"rows": block.n}

    local_engine(rows.engine).total(write, rows.chunks())
    firsts = sorted(weights)
    sizes = np.diff([*firsts, shape[1]]).tolist()
    weight = one_or_all([weights[first] for first in firsts], sizes)
    return GrowthRows(words, cells[0], labels, weight)


def _apart(rows: StreamedRows, encoding: BytesOfRows) -> list[GrowthRows]:
    """A block for each chunk, whose words are kept in memory up to the budget, and then in a temporary file."""
    kept, blocks = KeptArrays(), {}

    def write(given: SelectedRows) -> dict[str, int]:
        block = encoding.block(given)
        words = kept.allocate(block.words.shape, np.uint64)
        words[:] = block.words
        block.words = words
        if block.n:
            blocks[given.start] = block
        return {"rows": block.n}

    local_engine(rows.engine).total(write, rows.chunks())
    return [blocks[start] for start in sorted(blocks)]


@dataclass(frozen=True, eq=False)
class BlockList:
    """A source of blocks that are kept in this process."""

    blocks: list[GrowthRows]

    is_read_once: ClassVar[bool] = True

    def parts(self) -> Iterator[Callable[[], GrowthRows]]:
        """Loaders of the blocks."""
        return iter([partial(_same, block) for block in self.blocks])

    def marked(self, marks: RowMarks) -> BlockList:
        """The blocks with what is known of them once all were seen."""
        ends = pairwise(accumulate((block.n for block in self.blocks), initial=0))
        return BlockList(
            [block.marked(marks.of(slice(*end))) for block, end in zip(self.blocks, ends, strict=True)]
        )


def _same(block: GrowthRows) -> GrowthRows:
    return block
