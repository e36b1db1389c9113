"""Conditional probability tables of a tree over columns of levels.

Their cells in one array (`TreeTables`), their pseudo-counts and smoothing, and exact inference with them: log density,
samples, missing values (`TreeInference`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays, Generator, Layout
from calibayes.core.verify import require, require_finite
from calibayes.families.counts import floored
from calibayes.families.tree_structures import Parents, topological_order
from calibayes.kernels import level_counts, networks
from calibayes.kernels import posterior as simplex
from calibayes.kernels.networks import draw_missing_in_tree, tree_beliefs, upward_pass


class ConditionalTables(ABC):
    """Positions of the cells of the tables of all columns, side by side in one array.

    The table of a column has one row for each combination of levels of its parents (one row without parents) and one
    column for each of its levels.
    """

    levels: tuple[int, ...]

    @property
    @abstractmethod
    def parent_levels(self) -> tuple[int, ...]:
        """Number of combinations of levels of each column's parents, 1 without parents."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each column's table."""
        return tuple(a * b for a, b in zip(self.parent_levels, self.levels, strict=True))

    @cached_property
    def first(self) -> Array:
        """Position of the first cell of each table, and the number of all cells, (d + 1,)."""
        return level_counts.offsets(self.sizes)

    @property
    def cell_count(self) -> int:
        """Number of all cells."""
        return int(self.first[-1])

    @cached_property
    def _distributions(self) -> Array:
        """Number of cells of each conditional distribution: a column's levels given one row of its table."""
        return np.repeat(self.levels, self.parent_levels)

    def distribution_sums(self, table: Array) -> Array:
        """The sum over each conditional distribution, repeated for each of its cells, (k, cells)."""
        starts = np.concatenate([[0], np.cumsum(self._distributions)[:-1]])
        return np.repeat(np.add.reduceat(table, starts, axis=1), self._distributions, axis=1)

    def split(self, table: Array) -> list[Array]:
        """The table of each column, (k, levels of the parents, levels), from all cells (k, cells)."""
        parts = np.split(table, self.first[1:-1], axis=1)
        tables = zip(parts, self.parent_levels, self.levels, strict=True)
        return [part.reshape(len(table), rows, levels) for part, rows, levels in tables]

    def join(self, tables: Sequence[Array]) -> Array:
        """All cells side by side, (k, cells), from the table of each column."""
        return np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)

    def log_probabilities(self, count: Array, pseudo_count: Array) -> Array:
        """Log of each conditional distribution: counts plus pseudo-counts, divided by their sum, (k, cells)."""
        total = count + pseudo_count
        total = floored(total, self.distribution_sums(total), pseudo_count)
        return np.log(total) - np.log(self.distribution_sums(total))

    def projected(self, log_probability: Array) -> Array:
        """Log probabilities (k, cells) of which each conditional distribution is projected to a sum of 1."""
        tables = self.split(log_probability)
        flat = [simplex.log_project(table.reshape(-1, table.shape[2])) for table in tables]
        return self.join([part.reshape(table.shape) for part, table in zip(flat, tables, strict=True)])


@dataclass(frozen=True)
class TreeTables(ConditionalTables):
    """The tables of a tree: level b given level a of the parent is cell a * levels + b."""

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

    def with_probabilities(self, log_probability: Array) -> networks.TreeProbabilities:
        """The tree with its log probabilities (k, cells), as the kernels read it."""
        return networks.TreeProbabilities(self.parents, self.order, self.split(log_probability))


class ClassTree(NamedTuple):
    """A tree and the classes that share it."""

    classes: Array
    tables: TreeTables

    def select(self, cells: Array) -> Array:
        """The cells of these classes, from those of all classes (k, cells), which may be padded on the right."""
        return cells[self.classes, : self.tables.first[-1]]

    def with_probabilities(self, parameters: Arrays) -> networks.TreeProbabilities:
        """The tree with its log probabilities, as the kernels read it."""
        return self.tables.with_probabilities(self.select(parameters["log_probability"]))


class JoinedTables(ABC):
    """Cells of the tables of several trees in one array, (k, cells)."""

    @property
    @abstractmethod
    def cell_count(self) -> int:
        """Number of cells of a class."""

    @abstractmethod
    def of_each(self, function: Callable[..., Array], *tables: Array, padding: float = 0.0) -> Array:
        """Cells of all trees, (k, cells), from those that a function of each tree's tables and cells returns."""

    def distribution_sums(self, table: Array) -> Array:
        """The sum over each conditional distribution, repeated for each of its cells, (k, cells); 1 as padding."""
        return self.of_each(TreeTables.distribution_sums, table, padding=1.0)

    def log_probabilities(self, count: Array, pseudo_count: Array) -> Array:
        """Log of each conditional distribution: counts plus pseudo-counts, divided by their sum, (k, cells)."""
        return self.of_each(TreeTables.log_probabilities, count, pseudo_count)

    def projected(self, log_probability: Array) -> Array:
        """Log probabilities (k, cells) of which each conditional distribution is projected to a sum of 1."""
        return self.of_each(TreeTables.projected, log_probability)


@dataclass(frozen=True)
class ClassTrees(JoinedTables):
    """The distinct trees of all classes. A class whose tree has fewer cells than others is padded on the right."""

    trees: tuple[ClassTree, ...]

    @cached_property
    def cell_count(self) -> int:
        """Number of cells of the largest tree."""
        return max(tree.tables.cell_count for tree in self.trees)

    def join(self, of_tree: Callable[[ClassTree], Array], padding: float = 0.0) -> Array:
        """Cells of all classes, (k, cells), from those of each tree."""
        k = sum(len(tree.classes) for tree in self.trees)
        result = np.full((k, self.cell_count), padding)
        for tree in self.trees:
            result[tree.classes, : tree.tables.cell_count] = of_tree(tree)
        return result

    def of_each(self, function: Callable[..., Array], *tables: Array, padding: float = 0.0) -> Array:
        return self.join(lambda tree: function(tree.tables, *map(tree.select, tables)), padding)


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
        rows = back_off * shares(count + alpha) if parent >= 0 else np.zeros(count.shape)
        parts.append(np.repeat(alpha / parent_levels + rows[:, None, :], parent_levels, axis=1))
    return tables.join(parts)


def shares(count: Array) -> Array:
    """Each distribution, along the last axis, divided by its sum; equal shares where the sum is 0."""
    total = count.sum(axis=-1, keepdims=True)
    return np.where(total > 0, count / np.where(total > 0, total, 1.0), 1.0 / count.shape[-1])


def smoothing_matrices(
    levels: Sequence[int], bandwidths: Array, ordered: Sequence[int]
) -> list[Array | None]:
    """For each column, the share of each level's count that every level receives, (k, levels, levels).

    Unordered levels keep their counts. None for a column whose bandwidths, a column of (k, d), are all 0.
    """
    return [
        _smoothing_matrix(widths, cells, levels) if widths.any() else None
        for widths, cells, levels in zip(bandwidths.T, ordered, levels, strict=True)
    ]


def _smoothing_matrix(widths: Array, cells: int, levels: int) -> Array:
    matrix = np.repeat(np.eye(levels)[None], len(widths), axis=0)
    matrix[:, :cells, :cells] = level_counts.smoothing_matrices(widths, np.full(len(widths), cells))
    return matrix


def smooth_axes(table: Array, matrices: Sequence[Array | None]) -> Array:
    """Counts (k, levels of each column), smoothed along each column by its matrix (k, levels, levels), if it has one."""
    for axis, matrix in enumerate(matrices, start=1):
        if matrix is not None:
            last = np.moveaxis(table, axis, -1)
            smoothed = np.matmul(last.reshape(len(table), -1, last.shape[-1]), matrix)
            table = np.moveaxis(smoothed.reshape(last.shape), -1, axis)
    return table


def verify_widths(widths: Array | None, layout: Layout) -> None:
    """Raises ValueError unless these are bandwidths (k, d) of columns with ordered cells."""
    d = len(layout.columns)
    array = require_finite("widths", widths, (len(layout.classes), d), 0.0)
    is_ordered = np.array(layout.ordered or (0,) * d) > 0
    require(not array[:, ~is_ordered].any(), "widths contains a width of unordered levels")


def smooth(count: Array, tables: TreeTables, smoothing: Sequence[Array | None]) -> Array:
    """Counts (k, cells), smoothed in each table along the levels of the column and along those of its parent."""
    parts = []
    for parent, table, matrix in zip(tables.parents, tables.split(count), smoothing, strict=True):
        along_levels = table if matrix is None else np.matmul(table, matrix)
        of_parent = None if parent < 0 else smoothing[parent]
        both = along_levels if of_parent is None else np.matmul(np.swapaxes(of_parent, 1, 2), along_levels)
        parts.append(both)
    return tables.join(parts)


def log_volume(columns: Array, layout: Layout) -> Array:
    """Log of the volume of the known cells of each row, (n, 1)."""
    if not np.any(layout.log_volume):
        return np.zeros((len(columns), 1))
    return level_counts.look_up(columns, layout.log_volume[None], level_counts.offsets(layout.levels))


class TreeInference(ABC):
    """Rows of codes, negative where missing, under one tree for all classes or one for each class."""

    layout: Layout

    @property
    @abstractmethod
    def class_trees(self) -> tuple[ClassTree, ...]:
        """The distinct trees and the classes of each."""

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        if np.min(columns, initial=0) < 0:
            return self._of_any_rows(columns, parameters) - log_volume(columns, self.layout)
        return self._of_complete_rows(columns, parameters) - log_volume(columns, self.layout)

    def _of_complete_rows(self, columns: Array, parameters: Arrays) -> Array:
        """Log probability of the cells of rows without missing values, (n, k)."""
        log_probability = np.empty((len(columns), len(self.layout.classes)))
        for tree in self.class_trees:
            table, codes = tree.select(parameters["log_probability"]), tree.tables.cell_codes(columns)
            log_probability[:, tree.classes] = level_counts.look_up(codes, table, tree.tables.first)
        return log_probability

    def _of_any_rows(self, columns: Array, parameters: Arrays) -> Array:
        """Log probability of the known cells of each row, (n, k): missing values are summed out."""
        log_probability = np.empty((len(columns), len(self.layout.classes)))
        complete = (columns >= 0).all(axis=1)
        log_probability[complete] = self._of_complete_rows(columns[complete], parameters)
        for tree in self.class_trees:
            marginal = upward_pass(columns[~complete], tree.with_probabilities(parameters)).total.T
            log_probability[np.ix_(~complete, tree.classes)] = marginal
        return log_probability

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given.copy()
        for tree in self.class_trees:
            in_tree = np.isin(classes, tree.classes)
            positions = np.searchsorted(tree.classes, classes[in_tree])
            probabilities = tree.with_probabilities(parameters)
            rows[in_tree] = draw_missing_in_tree(rows[in_tree], positions, probabilities, rng)
        return rows

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the most probable level given the known cells, averaged over the posterior."""
        filled, incomplete = columns.copy(), np.flatnonzero((columns < 0).any(axis=1))
        rows, probabilities = columns[incomplete], [np.zeros((1, 1))] * columns.shape[1]
        for tree in self.class_trees:
            missing, belief = tree_beliefs(rows, tree.with_probabilities(parameters))
            for j, (missing_rows, levels) in enumerate(zip(missing, belief, strict=True)):
                weight = posterior[np.ix_(incomplete[missing_rows], tree.classes)].T[:, :, None]
                probabilities[j] = probabilities[j] + (weight * levels).sum(axis=0)
        for j, levels in enumerate(probabilities):
            filled[columns[:, j] < 0, j] = np.argmax(levels, axis=1)
        return filled
