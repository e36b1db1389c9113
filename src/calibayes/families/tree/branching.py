"""One table of cells a column: its levels, or pairs of its parent's level and its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.tree.structures import Parents, from_parents_on
from calibayes.kernels.levels import counts, trees


@dataclass(frozen=True)
class Branching:
    """Where the cells of a tree's tables lie: level b of a column whose parent has level a is cell a * levels + b of its table."""

    parents: Parents
    levels: tuple[int, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        return from_parents_on(self.parents)

    @cached_property
    def above(self) -> tuple[int, ...]:
        """Levels of each column's parent, 1 for a root."""
        return tuple(1 if parent < 0 else self.levels[parent] for parent in self.parents)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Cells of each column's table."""
        return tuple(a * b for a, b in zip(self.above, self.levels, strict=True))

    @cached_property
    def first(self) -> Array:
        return counts.offsets(self.sizes)

    @cached_property
    def _distributions(self) -> Array:
        """Number of cells of each distribution: a column's levels under one level of its parent."""
        return np.repeat(self.levels, self.above)

    def sums(self, table: Array) -> Array:
        """The sum of each distribution, repeated for each of its cells."""
        starts = np.concatenate([[0], np.cumsum(self._distributions)[:-1]])
        return np.repeat(np.add.reduceat(table, starts, axis=1), self._distributions, axis=1)

    @cached_property
    def _hanging(self) -> tuple[Array, Array]:
        """Each column's parent, any for a root, and how many cells a level of it stands for, 0 for a root."""
        parents = np.array(self.parents, dtype=np.intp)
        return np.maximum(parents, 0), np.where(parents < 0, 0, np.array(self.levels, dtype=np.int32))

    def codes(self, columns: Array) -> Array:
        """The cell of each column within its table, (n, d); -1 where it or its parent is missing."""
        parents, factors = self._hanging
        above = columns.take(parents, axis=1)
        cells = above * factors
        cells += columns
        if np.min(columns, initial=0) < 0:
            cells[((above < 0) & (factors > 0)) | (columns < 0)] = -1
        return cells

    def split(self, table: Array) -> list[Array]:
        """The tables of the columns, (k, levels of the parent, levels) each."""
        parts = np.split(table, self.first[1:-1], axis=1)
        return [
            part.reshape(len(table), *shape)
            for part, shape in zip(parts, zip(self.above, self.levels, strict=True), strict=True)
        ]

    def joined(self, tables: Sequence[Array]) -> Array:
        """The tables side by side, (k, cells)."""
        return np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)


class Branch(NamedTuple):
    """Classes that share a tree."""

    classes: Array
    tree: Branching

    def own(self, whole: Array) -> Array:
        """Its part of tables of all classes, (k, cells), which may have more cells."""
        return whole[self.classes, : self.tree.first[-1]]

    def filled(self, parameters: Arrays) -> trees.TreeTables:
        """The tree as the kernels know it, with its log probabilities."""
        tables = self.tree.split(self.own(parameters["log_probability"]))
        return trees.TreeTables(self.tree.parents, self.tree.order, tables)
