"""Rows and weights of cells of the ordered bits of a column's numbers, which can be added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.column_totals import (
    CellTotals,
    LabeledRows,
    cell_totals,
    cells_with,
    united_cells,
)
from calibayes.kernels.levels.distinct_sample import DistinctSample, distinct_sample
from calibayes.kernels.levels.ordered_cells import CellCounts, CellTree, cell_numbers, root_tree
from calibayes.tables.summaries import column
from calibayes.tables.summaries.distinct_sums import DistinctSums


@dataclass(frozen=True)
class CellSums:
    """The cells of a tree that have rows, and some of the distinct numbers."""

    cells: CellTotals
    sampled: DistinctSample
    """Some of the distinct numbers; none in the passes after the first, which has them all the same."""

    @property
    def counts(self) -> CellCounts:
        """Rows, smallest and largest number, and total weight of each cell."""
        return self.cells.counts

    @property
    def weights(self) -> Array:
        """Weights by class, (cells, k + 1)."""
        return self.cells.weights

    @property
    def known_rows(self) -> int:
        """Number of rows whose value is known."""
        return int(self.cells.totals[:, 0].sum())

    def __add__(self, other: CellSums) -> CellSums:
        return CellSums(united_cells(self.cells, other.cells), _united(self.sampled, other.sampled))


NO_SAMPLE = DistinctSample(np.zeros(0), 0)


def cell_sums(x: Array, tree: CellTree, rows: LabeledRows, sampled: DistinctSample = NO_SAMPLE) -> CellSums:
    """Sums of the numbers x (n,); missing ones (NaN) are in no cell, rows without a label (-1) in the last column."""
    return CellSums(cell_totals(x, tree, rows), sampled)


def in_root_cells(distinct: DistinctSums) -> CellSums:
    """The sums of distinct numbers in the cells of the root."""
    if not len(distinct.values):
        empty = np.zeros(0, dtype=np.int64)
        return CellSums(cells_with(CellCounts(empty, empty, *np.zeros((3, 0))), distinct.weights), NO_SAMPLE)
    entries, first = np.unique(cell_numbers(distinct.values, root_tree()), return_index=True)
    last = np.append(first[1:], len(distinct.values)) - 1
    rows = np.add.reduceat(distinct.rows, first)
    weights = np.add.reduceat(distinct.weights, first, axis=0)
    counts = CellCounts(entries, rows, distinct.values[first], distinct.values[last], weights.sum(axis=1))
    return CellSums(cells_with(counts, weights), distinct_sample(distinct.values, column.MOST_SAMPLED))


def _united(left: DistinctSample, right: DistinctSample) -> DistinctSample:
    """The sample of the distinct numbers of both."""
    if not len(left.values) and left.zeros <= right.zeros:
        return right
    together = np.concatenate([left.values, right.values])
    return distinct_sample(together, column.MOST_SAMPLED, max(left.zeros, right.zeros))
