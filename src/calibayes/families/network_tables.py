"""Conditional probability tables of a Bayesian network in which each column has several parents, and their search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from math import prod
from typing import Any, Self, TypeAlias

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.families import pair_tables
from calibayes.families.counts import LogProbabilities, SkipsMissing
from calibayes.families.kernel_bandwidths import Bandwidth, InCells, bandwidths_in_cells, check_bandwidth
from calibayes.families.tree_structures import PairCounts

ParentSets: TypeAlias = tuple[tuple[int, ...], ...]
"""The parents of each column, the most informative first."""


@dataclass(frozen=True)
class NetworkTables(pair_tables.ConditionalTables):
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
    tables: NetworkTables, per_level: Array, count_of: Callable[[tuple[int, ...]], Array], back_off: float
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
        distribution = pair_tables.shares(count_of((*fewer, j)) + pseudo_counts(j, fewer))
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
    verify.require_length("parents", parents, d)
    for j, of_column in enumerate(parents):
        is_few = len(set(of_column)) == len(of_column) <= most
        verify.require(is_few, f"parents of a column are not at most {most}")
        is_inside = all(0 <= parent < d for parent in of_column)
        verify.require(is_inside, f"parents contains a column outside of {d} columns")
        cells = prod(levels[i] for i in (*of_column, j))
        verify.require(not of_column or cells <= max_cells, f"a table has more than {max_cells} cells")
    ancestral_order(parents)


# -- Base of families whose columns depend on other columns: probabilities from counts, pseudo-counts and smoothing


@dataclass(frozen=True)
class ConditionalProbabilities(SkipsMissing, LogProbabilities, PairCounts, ABC):
    """The probability of each level of a column given the class and the levels of the columns that it depends on.

    A subclass has a structure, which `prepare` learns from counts of pairs of columns, and its tables.

    Parameters
    ----------
    back_off : float, default=0
        Pseudo-rows added to each conditional distribution of a column.
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns with ordered cells.
    """

    back_off: float = 0.0
    bandwidth: Bandwidth = field(default_factory=lambda: InCells(0.0))
    prepared_pseudo_counts: Array | None = field(default=None, repr=False, compare=False)
    """Pseudo-counts of all cells (k, cells), set by `prepare`."""
    widths: Array | None = field(default=None, repr=False, compare=False)
    """Bandwidths in cells (k, d), set by `prepare`."""

    reads = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.back_off < np.inf:
            raise ValueError(f"back_off must be finite and must not be negative, got {self.back_off}")
        check_bandwidth(self.bandwidth)

    def conjugate(self) -> Self:
        return self if self.back_off else super().conjugate()

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def structure(self) -> Any:
        """Which columns depend on which; None before `prepare`."""

    @property
    @abstractmethod
    def tables(self) -> pair_tables.ConditionalTables | pair_tables.JoinedTables:
        """The tables of this structure."""

    @property
    def table_columns(self) -> int:
        """Number of columns of the largest table."""
        return 2

    @abstractmethod
    def with_structure(self, structure_statistics: Arrays) -> Self:
        """This family with the structure that these counts show."""

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, prepared_pseudo_counts=None, widths=None)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the structure, pseudo-counts and bandwidths learned from structure statistics."""
        structured, rule = self.with_structure(start), self.bandwidth
        column_counts = self.column_counts(start)
        widths = bandwidths_in_cells(rule, self.layout, column_counts, self.table_columns)
        return replace(structured, prepared_pseudo_counts=structured.count_prior(start), widths=widths)

    # -- verification --------------------------------------------------------------------------------------------

    def verify(self) -> None:
        super().verify()
        layout, k = self.layout, len(self.layout.classes)
        verify.require_length("levels", layout.levels, len(layout.columns))
        prepared = (self.structure, self.prepared_pseudo_counts, self.widths)
        if not k or all(part is None for part in prepared):
            return
        self.verify_structure()
        shape = k, self.tables.cell_count
        verify.require_finite("prepared_pseudo_counts", self.prepared_pseudo_counts, shape, 0.0)
        pair_tables.verify_widths(self.widths, layout)

    @abstractmethod
    def verify_structure(self) -> None:
        """Raises ValueError unless the structure is one of these columns and classes."""

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self.tables.cell_count
        verify.require_arrays("parameters", parameters, {"log_probability": shape})
        probability = verify.probabilities_of("log_probability", parameters["log_probability"])
        verify.require_sums_of_one("log_probability", self.tables.distribution_sums(probability))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self.tables.cell_count
        verify.require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    # -- statistics and parameters -------------------------------------------------------------------------------

    def parameters(self, statistics: Arrays) -> Arrays:
        count = statistics["count"]
        if self.widths is not None and self.widths.any():
            count = self.smoothed(count)
        return {"log_probability": self.tables.log_probabilities(count, self._pseudo)}

    @abstractmethod
    def smoothed(self, count: Array) -> Array:
        """Counts (k, cells), smoothed along the columns with ordered cells."""

    @cached_property
    def smoothing(self) -> list[Array | None]:
        """The smoothing matrix of each column, (k, levels, levels); None without smoothing."""
        widths = np.zeros((len(self.layout.classes), len(self.layout.columns)))
        given = widths if self.widths is None else self.widths
        return pair_tables.smoothing_matrices(self.layout.levels, given, self.layout.ordered)

    @abstractmethod
    def count_prior(self, structure_statistics: Arrays | None) -> Array:
        """Pseudo-counts of all cells; back-off is to equal shares where no structure statistics are given."""

    @cached_property
    def _pseudo(self) -> Array:
        prepared = self.prepared_pseudo_counts
        return self.count_prior(None) if prepared is None else prepared

    def given_or_equal(self, structure_statistics: Arrays | None) -> list[Array]:
        """The counts of each column, (k, levels), all 1 where no structure statistics are given."""
        if structure_statistics is None:
            return [np.ones((len(self.layout.classes), size)) for size in self.layout.levels]
        return self.column_counts(structure_statistics)

    def _projected(self, log_probability: Array) -> Array:
        return self.tables.projected(log_probability)
