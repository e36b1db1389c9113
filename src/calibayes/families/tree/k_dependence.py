"""k-dependence Bayes over columns of levels: each column may depend on one or two other columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.core.verify import require
from calibayes.families.tree import parent_search
from calibayes.families.tree.conditional_probabilities import ConditionalProbabilities
from calibayes.families.tree.network_tables import (
    NetworkTables,
    ParentSets,
    network_pseudo_counts,
    verify_parent_sets,
)
from calibayes.families.tree.structures import AllEdges, Edges
from calibayes.families.tree.tables import log_volume, smooth_axes
from calibayes.families.tree.triple_counts import TripleCounts
from calibayes.kernels.levels import counts, networks
from calibayes.kernels.levels.pairs import PairInformation


@dataclass(frozen=True)
class KDependence(ConditionalProbabilities, TripleCounts):
    """The probability of each level of a column given the class and the levels of the column's parents (Sahami 1996).

    `prepare` learns the structure, the same for all classes, from the counts of all pairs (and triples) of columns;
    training does not change it. The columns are taken by decreasing mutual information with the class, and the parents of
    each are among those before it. Combinations of levels are counted where all are known; the density of a row with
    missing values sums over them exactly. A level that did not occur in training is a missing value.

    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, divided evenly among the combinations of levels of the column's parents.
    prior : Dirichlet, optional
        Prior by equivalent sample size, the same for each column's table, instead of ``alpha``.
    max_cells : int, default=10000
        Pairs and triples of columns with more combinations of levels are not counted, and so cannot be in one table. The
        largest triples are left out, too, where the tables of all would need more than 128 megabytes.
    max_parents : {1, 2}, default=2
        Largest number of parents of a column beside the class. The second parent of a column is joined to its first one
        by an edge, which bounds the tables of three columns that missing values are summed out in.
    edges : Edges
        Which pairs may become edges: `AllEdges`, `InformativeEdges` or `SignificantEdges`; for a second parent, given
        the first.
    back_off : float, default=0
        Pseudo-rows added to each conditional distribution of a column, distributed as the column is given the class and
        one parent fewer.
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns with ordered cells.

    Examples
    --------
    >>> from calibayes import KDependenceBayes
    >>> X, y = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5, [0, 0, 1, 1] * 5
    >>> KDependenceBayes().fit(X, y).score(X, y)  # its family is KDependence
    1.0
    """

    max_parents: int = 2
    edges: Edges = field(default_factory=AllEdges)
    parents: ParentSets | None = field(default=None, repr=False, compare=False)
    """The structure, set by `prepare`: the parents of each column."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_parents not in (1, 2):
            raise ValueError(
                f"max_parents must be 1 or 2, got {self.max_parents}: tables of four columns are not counted"
            )

    def bind(self, layout: Layout) -> Self:
        return replace(super().bind(layout), parents=None)

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def structure(self) -> ParentSets | None:
        """The parents of each column."""
        return self.parents

    @property
    def counts_triples(self) -> bool:
        return self.max_parents == 2

    @cached_property
    def tables(self) -> NetworkTables:
        """The tables of the network; one without edges before `prepare`."""
        return NetworkTables(self.parents or ((),) * len(self.layout.columns), self.layout.levels)

    @property
    def table_columns(self) -> int:
        return 1 + self.max_parents

    def with_structure(self, structure_statistics: Arrays) -> Self:
        order = parent_search.relevance_order(self.column_counts(structure_statistics))

        def further(column: int, first: int, others: Sequence[int]) -> PairInformation:
            tables = [self.count_of(structure_statistics, (first, other, column)) for other in others]
            return parent_search.conditional_information(tables)

        candidates = self.candidates(structure_statistics)
        parents = parent_search.ordered_parents(
            order, candidates, self.edges, further if self.counts_triples else None
        )
        return replace(self, parents=parents)

    def statistics_of(self, structure_statistics: Arrays) -> Arrays:
        parts = [
            self.count_of(structure_statistics, (*parents, j))
            for j, parents in enumerate(self.tables.parents)
        ]
        return {"count": self.tables.join(parts)}

    def edges_with_information(self, structure_statistics: Arrays) -> list[tuple[int, int, float]]:
        """Parent, child and mutual information in nats given the class (for a second parent, and the first) of each edge."""
        tables = [
            (parent, child, self.count_of(structure_statistics, (*parents[:place], parent, child)))
            for child, parents in enumerate(self.tables.parents)
            for place, parent in enumerate(parents)
        ]
        by_edge = [
            parent_search.conditional_information([table.reshape(-1, 1, *table.shape[-2:])])
            for _, _, table in tables
        ]
        return [
            (parent, child, float(gain[0] / weight[0]))
            for (parent, child, _), (gain, weight, _) in zip(tables, by_edge, strict=True)
        ]

    # -- verification --------------------------------------------------------------------------------------------

    def verify_structure(self) -> None:
        require(self.parents is not None, "parents is missing")
        verify_parent_sets(self.parents or (), self.layout.levels, self.max_parents, self.max_cells)

    # -- statistics and parameters -------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        codes = self.tables.cell_codes(columns)
        return {"count": counts.weighted_counts(codes, weights, self.tables.first)}

    def smoothed(self, count: Array) -> Array:
        tables = zip(self.tables.parents, self.tables.arrays(count), strict=True)
        parts = [
            smooth_axes(table, [self.smoothing[i] for i in (*parents, j)])
            for j, (parents, table) in enumerate(tables)
        ]
        return self.tables.join(parts)

    def count_prior(self, structure_statistics: Arrays | None) -> Array:
        levels, k = self.layout.levels, len(self.layout.classes)

        def count_of(columns: tuple[int, ...]) -> Array:
            if structure_statistics is None:
                return np.ones((k, *(levels[j] for j in columns)))
            return np.maximum(self.count_of(structure_statistics, columns), 0.0)

        per_level = self.pseudo_counts(levels)
        return network_pseudo_counts(self.tables, per_level, count_of, self.back_off)

    # -- rows ----------------------------------------------------------------------------------------------------

    def _network(self, parameters: Arrays) -> networks.Network:
        """The network with its log probabilities, as the kernels read it."""
        tables = self.tables.arrays(parameters["log_probability"])
        return networks.Network(self.tables.parents, self.tables.order, tables)

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        codes, table = self.tables.cell_codes(columns), parameters["log_probability"]
        log_probability = counts.look_up(codes, table, self.tables.first)
        incomplete = np.flatnonzero((columns < 0).any(axis=1))
        if len(incomplete):
            log_probability[incomplete] += networks.log_sums(columns[incomplete], self._network(parameters))
        return log_probability - log_volume(columns, self.layout)

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given
        return networks.draw_missing(rows, classes, self._network(parameters), rng)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the most probable level given the known cells, averaged over the posterior."""
        filled = columns.copy()
        for j, (rows, belief) in enumerate(
            zip(*networks.beliefs(columns, self._network(parameters)), strict=True)
        ):
            filled[rows, j] = np.argmax(np.einsum("nk,nkl->nl", posterior[rows], belief), axis=1)
        return filled
