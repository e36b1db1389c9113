"""Conditional probability tables of stars: trees in which all columns depend on one of them, the super-parent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from calibayes.core.protocols import Array, Arrays
from calibayes.families.tree.tables import TreeTables
from calibayes.kernels.levels import counts, trees
from calibayes.kernels.levels.pairs import Pairs

CELLS_AT_A_TIME = 2**22
"""Log probabilities by rows, classes and levels that are in memory at a time."""


@dataclass(frozen=True)
class Stars:
    """Positions of the cells of the tables of several stars, side by side in one array.

    A column whose pair with the super-parent is not counted does not depend on it.
    """

    super_parents: tuple[int, ...]
    levels: tuple[int, ...]
    max_cells: int

    @cached_property
    def tables(self) -> tuple[TreeTables, ...]:
        """The tables of each star."""
        sizes = self.levels
        return tuple(
            TreeTables(
                tuple(
                    center if j != center and sizes[j] * sizes[center] <= self.max_cells else -1
                    for j in range(len(sizes))
                ),
                sizes,
            )
            for center in self.super_parents
        )

    @cached_property
    def first(self) -> Array:
        """Position of the first cell of each star, and the number of all cells."""
        return counts.offsets(tuple(sum(tables.sizes) for tables in self.tables))

    def split(self, table: Array) -> list[Array]:
        """The cells of each star, (k, cells), from those of all stars."""
        return np.split(table, self.first[1:-1], axis=1)

    def join(self, of_star: Callable[..., Array], *tables: Array) -> Array:
        """Cells of all stars, (k, cells), from those that a function of each star's tables and cells returns."""
        parts = zip(self.tables, *(self.split(table) for table in tables), strict=True)
        return np.concatenate([of_star(*part) for part in parts], axis=1)

    @property
    def cell_count(self) -> int:
        """Number of all cells."""
        return int(self.first[-1])

    def distribution_sums(self, table: Array) -> Array:
        """The sum over each conditional distribution, repeated for each of its cells, (k, cells)."""
        return self.join(TreeTables.distribution_sums, table)

    def log_probabilities(self, count: Array, pseudo_count: Array) -> Array:
        """Log of each conditional distribution: counts plus pseudo-counts, divided by their sum, (k, cells)."""
        return self.join(TreeTables.log_probabilities, count, pseudo_count)

    def projected(self, log_probability: Array) -> Array:
        """Log probabilities (k, cells) of which each conditional distribution is projected to a sum of 1."""
        return self.join(TreeTables.projected, log_probability)

    def sources(self, pairs: Pairs) -> Array:
        """For each cell its position among the counts of all columns, followed by those of all pairs of columns."""
        singles, levels = counts.offsets(self.levels), self.levels
        first = {
            (i, j): singles[-1] + start
            for i, j, start in zip(
                pairs.left.tolist(), pairs.right.tolist(), pairs.first[:-1].tolist(), strict=True
            )
        }

        def of_table(parent: int, j: int) -> Array:
            if parent < 0:
                return singles[j] + np.arange(levels[j])
            left, right = min(parent, j), max(parent, j)
            cells = first[left, right] + np.arange(levels[left] * levels[right])
            table = cells.reshape(levels[left], levels[right])
            return (table if parent == left else table.T).ravel()

        return np.concatenate([of_table(p, j) for star in self.tables for j, p in enumerate(star.parents)])

    def with_probabilities(self, parameters: Arrays) -> list[trees.TreeTables]:
        """The stars with their log probabilities, as the kernels read them."""
        parts = self.split(parameters["log_probability"])
        return [
            trees.TreeTables(star.parents, star.order, star.split(part))
            for star, part in zip(self.tables, parts, strict=True)
        ]


def log_sum_over_center(columns: Array, star: TreeTables, center: int, table: Array) -> Array:
    """Log probability (n, k) of the known cells of rows whose super-parent is missing, from the cells (k, cells) of its star.

    The other columns are independent given each level of the super-parent, over which the sum is.
    """
    tables, k, levels = star.split(table), len(table), star.levels[center]
    log_center, tables[center] = tables[center].reshape(k, levels), np.zeros((1, 1, levels))
    given_level = [np.broadcast_to(part, (k, levels, part.shape[2])) for part in tables]
    by_level = np.concatenate(given_level, axis=2).reshape(k * levels, -1)
    first, rows = counts.offsets(star.levels), max(CELLS_AT_A_TIME // (k * levels), 1)
    sums = [
        logsumexp(
            counts.look_up(columns[start : start + rows], by_level, first).reshape(-1, k, levels)
            + log_center,
            axis=2,
        )
        for start in range(0, len(columns), rows)
    ]
    return np.concatenate(sums)
