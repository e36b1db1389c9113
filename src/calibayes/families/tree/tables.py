"""Conditional probability tables of a tree: their cells in one array, their pseudo-counts, their smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.families.kernel.bandwidths import FEWEST_CELLS, Bandwidth
from calibayes.families.tree.structures import Parents, topological_order
from calibayes.kernels.levels import counts, smoothing, trees


@dataclass(frozen=True)
class TreeTables:
    """Positions of the cells of all tables of a tree, side by side in one array.

    The table of a column has one row for each level of its parent (one row for a root) and one column for each of its
    levels: level b given level a of the parent is cell a * levels + b.
    """

    parents: Parents
    levels: tuple[int, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The columns, parents before children."""
        return topological_order(self.parents)

    @cached_property
    def parent_levels(self) -> tuple[int, ...]:
        """Number of levels of each column's parent, 1 for a root."""
        return tuple(1 if parent < 0 else self.levels[parent] for parent in self.parents)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each column's table."""
        return tuple(a * b for a, b in zip(self.parent_levels, self.levels, strict=True))

    @cached_property
    def first(self) -> Array:
        """Position of the first cell of each table, and the number of all cells, (d + 1,)."""
        return counts.offsets(self.sizes)

    @cached_property
    def _distributions(self) -> Array:
        """Number of cells of each conditional distribution: a column's levels given one level of its parent."""
        return np.repeat(self.levels, self.parent_levels)

    def distribution_sums(self, table: Array) -> Array:
        """The sum over each conditional distribution, repeated for each of its cells, (k, cells)."""
        starts = np.concatenate([[0], np.cumsum(self._distributions)[:-1]])
        return np.repeat(np.add.reduceat(table, starts, axis=1), self._distributions, axis=1)

    @cached_property
    def _parents_and_strides(self) -> tuple[Array, Array]:
        """Each column's parent and the number of cells per level of the parent; 0 and 0 for a root."""
        parents = np.array(self.parents, dtype=np.intp)
        return np.maximum(parents, 0), np.where(parents < 0, 0, np.array(self.levels, dtype=np.int32))

    def cell_codes(self, columns: Array) -> Array:
        """The cell of each column within its table, (n, d); -1 where the column or its parent is missing."""
        parents, strides = self._parents_and_strides
        parent_codes = columns.take(parents, axis=1)
        cells = parent_codes * strides
        cells += columns
        if np.min(columns, initial=0) < 0:
            cells[((parent_codes < 0) & (strides > 0)) | (columns < 0)] = -1
        return cells

    def split(self, table: Array) -> list[Array]:
        """The table of each column, (k, levels of the parent, levels), from all cells (k, cells)."""
        parts = np.split(table, self.first[1:-1], axis=1)
        return [
            part.reshape(len(table), *shape)
            for part, shape in zip(parts, zip(self.parent_levels, self.levels, strict=True), strict=True)
        ]

    def join(self, tables: Sequence[Array]) -> Array:
        """All cells side by side, (k, cells), from the table of each column."""
        return np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)


class ClassTree(NamedTuple):
    """A tree and the classes that share it."""

    classes: Array
    tables: TreeTables

    def select(self, cells: Array) -> Array:
        """The cells of these classes, from those of all classes (k, cells), which may be padded on the right."""
        return cells[self.classes, : self.tables.first[-1]]

    def with_probabilities(self, parameters: Arrays) -> trees.TreeTables:
        """The tree with its log probabilities, as the kernels read it."""
        log_probabilities = self.tables.split(self.select(parameters["log_probability"]))
        return trees.TreeTables(self.tables.parents, self.tables.order, log_probabilities)


def pseudo_counts(
    tables: TreeTables, per_level: Array, column_counts: Sequence[Array], back_off: float
) -> Array:
    """Pseudo-counts of the cells of a tree, (k, cells).

    The pseudo-count ``per_level`` (d,) of a level is divided evenly among the levels of the parent. In addition, each
    conditional distribution gets ``back_off`` pseudo-rows, distributed as the column is in the class: as its counts
    (k, levels) plus ``per_level`` (Friedman, Geiger and Goldszmidt 1997).
    """
    parts = []
    for parent, parent_levels, alpha, count in zip(
        tables.parents, tables.parent_levels, per_level, column_counts, strict=True
    ):
        rows = back_off * _shares(count + alpha) if parent >= 0 else np.zeros(count.shape)
        parts.append(np.repeat(alpha / parent_levels + rows[:, None, :], parent_levels, axis=1))
    return tables.join(parts)


def _shares(count: Array) -> Array:
    """Each row divided by its sum; equal shares where the sum is 0."""
    total = count.sum(axis=1, keepdims=True)
    return np.where(total > 0, count / np.where(total > 0, total, 1.0), 1.0 / count.shape[1])


def bandwidths_in_cells(rule: Bandwidth, layout: Layout, column_counts: Sequence[Array]) -> Array:
    """The bandwidth of each class and column in cells, (k, d); 0 for columns without ordered cells."""
    widths = np.zeros((len(layout.classes), len(layout.columns)))
    first = counts.offsets(layout.levels)
    for j, cells in enumerate(layout.ordered):
        if cells >= FEWEST_CELLS:
            log_volume = layout.log_volume[first[j] : first[j] + cells]
            count = np.maximum(column_counts[j][:, :cells], 0.0)
            widths[:, j] = rule.width_in_cells(count, log_volume, 2)
    return widths


def smoothing_matrices(tables: TreeTables, bandwidths: Array, ordered: Sequence[int]) -> list[Array | None]:
    """For each column, the share of each level's count that every level receives, (k, levels, levels).

    Unordered levels keep their counts. None for a column whose bandwidths, a column of (k, d), are all 0.
    """
    return [
        _smoothing_matrix(widths, cells, levels) if widths.any() else None
        for widths, cells, levels in zip(bandwidths.T, ordered, tables.levels, strict=True)
    ]


def _smoothing_matrix(widths: Array, cells: int, levels: int) -> Array:
    matrix = np.repeat(np.eye(levels)[None], len(widths), axis=0)
    matrix[:, :cells, :cells] = smoothing.smoothing_matrices(widths, np.full(len(widths), cells))
    return matrix


def smooth(count: Array, tables: TreeTables, smoothing: Sequence[Array | None]) -> Array:
    """Counts (k, cells), smoothed in each table along the levels of the column and along those of its parent."""
    parts = []
    for parent, table, matrix in zip(tables.parents, tables.split(count), smoothing, strict=True):
        along_levels = table if matrix is None else np.matmul(table, matrix)
        parent_matrix = None if parent < 0 else smoothing[parent]
        if parent_matrix is None:
            parts.append(along_levels)
        else:
            parts.append(np.matmul(np.swapaxes(parent_matrix, 1, 2), along_levels))
    return tables.join(parts)
