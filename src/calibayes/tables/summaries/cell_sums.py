"""Rows and weights of cells of the ordered bits of a column's numbers, which can be added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.column_totals import LabeledRows, cell_totals
from calibayes.kernels.levels.distinct_sample import DistinctSample, distinct_sample
from calibayes.kernels.levels.ordered_cells import CellCounts, CellTree, cell_numbers, root_tree
from calibayes.tables.summaries.column import MOST_SAMPLED
from calibayes.tables.summaries.distinct_sums import DistinctSums


@dataclass(frozen=True)
class CellSums:
    """The cells of a tree that have rows, and weights by class (cells, k + 1)."""

    counts: CellCounts
    weights: Array
    sampled: DistinctSample
    """Some of the distinct numbers; none in the passes after the first, which has them all the same."""

    @property
    def known_rows(self) -> int:
        """Number of rows whose value is known."""
        return int(self.counts.rows.sum())

    def __add__(self, other: CellSums) -> CellSums:
        left, right = self.counts, other.counts
        entries = np.concatenate([left.entries, right.entries])
        order = np.argsort(entries, kind="stable")
        entries = entries[order]
        is_first = np.append(True, entries[1:] != entries[:-1])[: len(entries)]
        again = np.flatnonzero(~is_first)  # the entries that both have
        pairs = np.cumsum(is_first)[again] - 1

        def united(ours: Array, theirs: Array, combine: np.ufunc) -> Array:
            every = np.concatenate([ours, theirs])[order]
            result = every[is_first]
            result[pairs] = combine(result[pairs], every[again])
            return result

        weights = united(self.weights, other.weights, np.add)
        counts = CellCounts(
            entries[is_first],
            united(left.rows, right.rows, np.add),
            united(left.low, right.low, np.minimum),
            united(left.high, right.high, np.maximum),
            united(left.weight, right.weight, np.add),
        )
        return CellSums(counts, weights, _united(self.sampled, other.sampled))


NO_SAMPLE = DistinctSample(np.zeros(0), 0)


def cell_sums(x: Array, tree: CellTree, rows: LabeledRows, sampled: DistinctSample = NO_SAMPLE) -> CellSums:
    """Sums of the numbers x (n,); missing ones (NaN) are in no cell, rows without a label (-1) in the last column."""
    return CellSums(*cell_totals(x, tree, rows), sampled)


def in_root_cells(distinct: DistinctSums) -> CellSums:
    """The sums of distinct numbers in the cells of the root."""
    if not len(distinct.values):
        empty = np.zeros(0, dtype=np.int64)
        return CellSums(CellCounts(empty, empty, *np.zeros((3, 0))), distinct.weights, NO_SAMPLE)
    entries, first = np.unique(cell_numbers(distinct.values, root_tree()), return_index=True)
    last = np.append(first[1:], len(distinct.values)) - 1
    rows = np.add.reduceat(distinct.rows, first)
    weights = np.add.reduceat(distinct.weights, first, axis=0)
    counts = CellCounts(entries, rows, distinct.values[first], distinct.values[last], weights.sum(axis=1))
    return CellSums(counts, weights, distinct_sample(distinct.values, MOST_SAMPLED))


def _united(left: DistinctSample, right: DistinctSample) -> DistinctSample:
    """The sample of the distinct numbers of both."""
    if not len(left.values) and left.zeros <= right.zeros:
        return right
    together = np.concatenate([left.values, right.values])
    return distinct_sample(together, MOST_SAMPLED, max(left.zeros, right.zeros))
