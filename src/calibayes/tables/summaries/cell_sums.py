"""Rows and weights of cells of the ordered bits of a column's numbers, which can be added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.distinct_sample import DistinctSample, distinct_sample
from calibayes.kernels.levels.ordered_cells import (
    CellCounts,
    CellTree,
    cell_counts,
    cell_numbers,
    cell_weights,
    root_tree,
)
from calibayes.tables.summaries.column import MOST_SAMPLED
from calibayes.tables.summaries.distinct_sums import DistinctSums


@dataclass(frozen=True)
class CellSums:
    """The cells of a tree that have rows, and weights by class (cells, k + 1)."""

    counts: CellCounts
    weights: Array
    sampled: DistinctSample
    """Some of the distinct numbers."""

    def __add__(self, other: CellSums) -> CellSums:
        entries = np.union1d(self.counts.entries, other.counts.entries)
        rows, low = np.zeros(len(entries), dtype=np.int64), np.full(len(entries), np.inf)
        high, weight = -low, np.zeros(len(entries))
        weights = np.zeros((len(entries), self.weights.shape[1]))
        for part in (self, other):
            at = np.searchsorted(entries, part.counts.entries)
            rows[at] += part.counts.rows
            low[at] = np.minimum(low[at], part.counts.low)
            high[at] = np.maximum(high[at], part.counts.high)
            weight[at] += part.counts.weight
            weights[at] += part.weights
        sampled = _united(self.sampled, other.sampled)
        return CellSums(CellCounts(entries, rows, low, high, weight), weights, sampled)


def cell_sums(x: Array, tree: CellTree, labels: Array, weight: Array, columns: int) -> CellSums:
    """Sums of the numbers x (n,); missing ones (NaN) are in no cell, rows without a label (-1) in the last column."""
    counts = cell_counts(x, weight, tree)
    weights = cell_weights(x, tree, labels, weight, columns)[counts.entries]
    return CellSums(counts, weights, distinct_sample(x, MOST_SAMPLED))


def in_root_cells(distinct: DistinctSums) -> CellSums:
    """The sums of distinct numbers in the cells of the root."""
    if not len(distinct.values):
        empty = np.zeros(0, dtype=np.int64)
        nothing = DistinctSample(np.zeros(0), 0)
        return CellSums(CellCounts(empty, empty, *np.zeros((3, 0))), distinct.weights, nothing)
    entries, first = np.unique(cell_numbers(distinct.values, root_tree()), return_index=True)
    last = np.append(first[1:], len(distinct.values)) - 1
    rows = np.add.reduceat(distinct.rows, first)
    weights = np.add.reduceat(distinct.weights, first, axis=0)
    counts = CellCounts(entries, rows, distinct.values[first], distinct.values[last], weights.sum(axis=1))
    return CellSums(counts, weights, distinct_sample(distinct.values, MOST_SAMPLED))


def _united(left: DistinctSample, right: DistinctSample) -> DistinctSample:
    """The sample of the distinct numbers of both."""
    together = np.concatenate([left.values, right.values])
    return distinct_sample(together, MOST_SAMPLED, max(left.zeros, right.zeros))
