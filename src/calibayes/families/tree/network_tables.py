"""Conditional probability tables of a Bayesian network in which each column has several parents, and their search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import TypeAlias

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_length
from calibayes.families.tree.tables import ConditionalTables, shares

ParentSets: TypeAlias = tuple[tuple[int, ...], ...]
"""The parents of each column, the most informative first."""


@dataclass(frozen=True)
class NetworkTables(ConditionalTables):
    """The tables of a network: level c given levels a and b of the parents is cell (a * levels of b + b) * levels + c."""

    parents: ParentSets
    levels: tuple[int, ...]

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The columns, parents before children."""
        return ancestral_order(self.parents)

    @cached_property
    def parent_levels(self) -> tuple[int, ...]:
        return tuple(prod(self.levels[parent] for parent in parents) for parents in self.parents)

    def cell_codes(self, columns: Array) -> Array:
        """The cell of each column within its table, (n, d); -1 where the column or one of its parents is missing."""
        cells = np.empty(columns.shape, dtype=np.int32)
        for j, parents in enumerate(self.parents):
            codes = [columns[:, i].astype(np.int32) for i in (*parents, j)]
            cell, is_missing = codes[0], codes[0] < 0
            for i, code in zip((*parents, j)[1:], codes[1:], strict=True):
                cell, is_missing = cell * self.levels[i] + code, is_missing | (code < 0)
            cells[:, j] = np.where(is_missing, -1, cell)
        return cells

    def arrays(self, table: Array) -> list[Array]:
        """The table of each column with an axis for each parent, (k, levels of each parent, levels)."""
        return [
            part.reshape(len(part), *(self.levels[i] for i in parents), self.levels[j])
            for j, (parents, part) in enumerate(zip(self.parents, self.split(table), strict=True))
        ]


def network_pseudo_counts(
    tables: NetworkTables,
    per_level: Array,
    count_of: Callable[[tuple[int, ...]], Array],
    back_off: float,
) -> Array:
    """Pseudo-counts of the cells of a network, (k, cells).

    The pseudo-count ``per_level`` (d,) of a level is divided evenly among the combinations of levels of the parents. In
    addition each conditional distribution gets ``back_off`` pseudo-rows, distributed as the column is given the parents
    without the last one, which is smoothed in the same way. ``count_of`` gives the counts of some columns, (k, levels of
    each).
    """

    def pseudo_counts(j: int, parents: tuple[int, ...]) -> Array:
        shape = (1, *(tables.levels[i] for i in (*parents, j)))
        even = np.full(shape, per_level[j] / prod(shape[1:-1]))
        if not parents:
            return even
        fewer = parents[:-1]
        distribution = shares(count_of((*fewer, j)) + pseudo_counts(j, fewer))
        return even + back_off * distribution[..., None, :]

    k = len(count_of((0,)))
    parts = [pseudo_counts(j, parents) for j, parents in enumerate(tables.parents)]
    return tables.join([np.broadcast_to(part, (k, *part.shape[1:])) for part in parts])


def ancestral_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The columns, parents before their children. Raises ValueError if the parents contain a cycle."""
    sorter = TopologicalSorter({j: sorted(of_column) for j, of_column in enumerate(parents)})
    try:
        return tuple(sorter.static_order())
    except CycleError:
        raise ValueError("parents contains a cycle") from None


def verify_parent_sets(parents: ParentSets, levels: Sequence[int], most: int, max_cells: int) -> None:
    """Raises ValueError unless these are at most ``most`` parents of each column, without cycles."""
    d = len(levels)
    require_length("parents", parents, d)
    for j, of_column in enumerate(parents):
        require(len(set(of_column)) == len(of_column) <= most, f"parents of a column are not at most {most}")
        require(
            all(0 <= parent < d for parent in of_column), f"parents contains a column outside of {d} columns"
        )
        cells = prod(levels[i] for i in (*of_column, j))
        require(not of_column or cells <= max_cells, f"a table has more than {max_cells} cells")
    ancestral_order(parents)
