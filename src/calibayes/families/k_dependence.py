"""k-dependence Bayes over columns of levels: each column may depend on one or two other columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Self

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.core.verify import require, require_arrays
from calibayes.families import network_tables, tree_structures
from calibayes.families.pair_tables import log_volume, smooth_axes
from calibayes.kernels import level_counts, level_pairs, networks
from calibayes.kernels.level_pairs import PairInformation, table_information

# -- Search for the parents of k-dependence Bayes (Sahami 1996) ----------------------------------------------


def class_information(count: Array) -> float:
    """Mutual information of a column and the class in nats, from counts (k, levels)."""
    total = count.sum()
    margins = sum(xlogy(margin, margin).sum() for margin in (count.sum(axis=0), count.sum(axis=1)))
    gain = xlogy(count, count).sum() - margins + xlogy(total, total)
    return float(gain / total) if total > 0 else 0.0


def relevance_order(column_counts: Sequence[Array], keys: Array) -> tuple[int, ...]:
    """The columns by decreasing mutual information with the class; of equal ones, those of smaller keys first."""
    information = np.array([class_information(np.maximum(count, 0.0)) for count in column_counts])
    return tuple(tree_structures.descending(information, keys).tolist())


def ordered_parents(
    order: Sequence[int],
    candidates: tree_structures.Candidates,
    edges: tree_structures.Edges,
    further: Callable[[int, int, Sequence[int]], PairInformation] | None,
) -> network_tables.ParentSets:
    """One or two parents of each column among those before it in an order.

    The first parent has the largest mutual information with the column given the class. ``further`` gives the dependence
    of a column on others given the class and its first parent: the second parent has the largest, among the columns that
    are joined to the first one by an edge, so that missing values are summed out in tables of at most three columns.
    Without ``further`` there is no second parent. Both must be allowed by ``edges``.
    """
    gains = gain_matrix(candidates, edges)
    parents: dict[int, tuple[int, ...]] = {}
    for place, j in enumerate(order):
        earlier = np.array(order[:place], dtype=np.intp)
        best = _best(gains[j, earlier])
        parents[j] = () if best < 0 else (int(earlier[best]),)
        if best >= 0 and further is not None:
            first = int(earlier[best])
            joined = [i for i in order[:place] if i in parents[first] or first in parents[i]]
            information = further(j, first, joined)
            second = _best(allowed_gains(information, edges))
            parents[j] += () if second < 0 else (joined[second],)
    return tuple(parents[j] for j in range(candidates.d))


def conditional_information(tables: Sequence[Array]) -> PairInformation:
    """Dependence of two columns given the class and a third one, from tables (k, third's levels, levels, levels)."""
    parts = [
        [part.sum() for part in table_information(np.maximum(table, 0.0).reshape(-1, 1, *table.shape[2:]))]
        for table in tables
    ]
    return PairInformation(*np.array(parts, dtype=np.float64).reshape(-1, 3).T)


def gain_matrix(candidates: tree_structures.Candidates, edges: tree_structures.Edges) -> Array:
    """Gain of each pair of columns, (d, d); -inf where no edge is allowed."""
    gains = np.full((candidates.d, candidates.d), -np.inf)
    gains[candidates.left, candidates.right] = allowed_gains(candidates.pooled(), edges)
    return np.maximum(gains, gains.T)


def allowed_gains(dependence: PairInformation, edges: tree_structures.Edges) -> Array:
    """Gain of each pair, -inf where no edge is allowed."""
    is_allowed = edges.allowed(dependence) & (
        dependence.gain > tree_structures.LEAST_INFORMATION * dependence.weight
    )
    return np.where(is_allowed, dependence.gain, -np.inf)


def _best(gains: Array) -> int:
    """Position of the largest gain, the first of equal ones; -1 if none is finite."""
    finite = np.flatnonzero(np.isfinite(gains))
    return int(finite[np.argmin(tree_structures.tied_places(gains[finite]))]) if len(finite) else -1


# -- Counts of all columns, pairs and triples of columns: the sums from which parents of columns are learned

LARGEST_TRIPLES = 2**24
"""Most cells in the tables of all triples and classes: 128 megabytes."""


@dataclass(frozen=True)
class TripleCounts(tree_structures.PairCounts):
    """Counts of all columns and of all pairs and, if ``counts_triples``, triples of columns.

    Triples with more than ``max_cells`` combinations of levels are not counted; nor are the largest, where the tables of
    all would need too much memory.
    """

    @property
    def counts_triples(self) -> bool:
        """Whether triples are counted at all."""
        return True

    @cached_property
    def triples(self) -> level_pairs.Triples:
        """The triples of columns that are counted."""
        levels = self.layout.levels
        return level_pairs.column_triples(
            levels, largest_table(levels, len(self.layout.classes), self.max_cells)
        )

    def structure_statistics(self, columns: Array, weights: Array) -> Arrays:
        """Counts of levels of each column and of all pairs and triples of columns, (k, cells) each."""
        sums = super().structure_statistics(columns, weights)
        if not self.counts_triples:
            return sums
        return {
            **sums,
            "triple": level_pairs.weighted_triples(columns, weights, self.layout.levels, self.triples),
        }

    def count_of(self, structure_statistics: Arrays, columns: tuple[int, ...]) -> Array:
        """The counts of one, two or three columns, (k, levels of each); of a triple that is not counted, one cell of 0."""
        levels = self.layout.levels
        if len(columns) == 1:
            first = level_counts.offsets(levels)[columns[0]]
            return np.asarray(structure_statistics["single"][:, first : first + levels[columns[0]]])
        if len(columns) == 2:
            return level_pairs.pair_table(structure_statistics["pair"], self.pairs, levels, *columns)
        if self.triples.position(columns) < 0:
            return np.zeros((len(self.layout.classes), 1, 1, 1))
        return level_pairs.triple_table(structure_statistics["triple"], self.triples, levels, columns)

    def recode(self, structure_statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """A pair or triple that now has too many cells is dropped; one that was not counted before has counts of 0."""
        recoded = super().recode(structure_statistics, codes, levels)
        if not self.counts_triples:
            return recoded
        new = replace(self, layout=replace(self.layout, levels=tuple(levels))).triples
        moved = np.zeros((len(recoded["pair"]), int(new.first[-1])))
        for number, columns in enumerate(map(tuple, new.columns.tolist())):
            if self.triples.position(columns) >= 0:
                table = self.count_of(structure_statistics, columns)
                sizes = [levels[j] for j in columns]
                cells = level_counts.recode_table(table, [codes[j] for j in columns], sizes)
                moved[:, new.first[number] : new.first[number + 1]] = cells.reshape(len(moved), -1)
        return {**recoded, "triple": moved}

    def verify_structure_statistics(self, structure_statistics: Arrays) -> None:
        if not self.counts_triples:
            return super().verify_structure_statistics(structure_statistics)
        k, levels = len(self.layout.classes), self.layout.levels
        shape = k, cells_of_triples(levels, largest_table(levels, k, self.max_cells))
        triple = {name: value for name, value in structure_statistics.items() if name == "triple"}
        require_arrays("structure statistics", triple, {"triple": shape}, least=0.0)
        others = {name: value for name, value in structure_statistics.items() if name != "triple"}
        return super().verify_structure_statistics(others)


def triple_sizes(levels: Sequence[int]) -> dict[int, int]:
    """Number of cells of a triple of columns -> number of triples with so many, without listing the triples."""
    number = Counter(levels)
    triples_of_size: Counter[int] = Counter()
    for shape in combinations_with_replacement(sorted(number), 3):
        triples_of_size[prod(shape)] += prod(comb(number[size], shape.count(size)) for size in set(shape))
    return triples_of_size


def cells_of_triples(levels: Sequence[int], most: int) -> int:
    """Number of cells of all triples of columns with at most ``most`` each."""
    return sum(size * number for size, number in triple_sizes(levels).items() if size <= most)


def largest_table(levels: Sequence[int], k: int, most: int) -> int:
    """Cells of the largest triples that are counted: at most ``most``, and few enough for all tables to fit into memory."""
    total, largest = 0, 0
    for size, number in sorted(triple_sizes(levels).items()):
        total += k * size * number
        if size > most or total > LARGEST_TRIPLES:
            break
        largest = size
    return largest


# -- k-dependence Bayes over columns of levels: each column may depend on one or two other columns -----------


@dataclass(frozen=True)
class KDependence(network_tables.ConditionalProbabilities, TripleCounts):
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
    given : tuple of tuples, optional
        The parents of each column, the more informative first, if they are not to be learned from counts.
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
    edges: tree_structures.Edges = field(default_factory=tree_structures.AllEdges)
    given: network_tables.ParentSets | None = None
    parents: network_tables.ParentSets | None = field(default=None, repr=False, compare=False)
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
    def structure(self) -> network_tables.ParentSets | None:
        """The parents of each column."""
        return self.parents

    @property
    def counts_triples(self) -> bool:
        return self.max_parents == 2

    @cached_property
    def tables(self) -> network_tables.NetworkTables:
        """The tables of the network; one without edges before `prepare`."""
        return network_tables.NetworkTables(
            self.parents or ((),) * len(self.layout.columns), self.layout.levels
        )

    @property
    def table_columns(self) -> int:
        return 1 + self.max_parents

    def with_structure(self, structure_statistics: Arrays) -> Self:
        given = self.given
        return replace(self, parents=self._learned(structure_statistics) if given is None else given)

    def _learned(self, structure_statistics: Arrays) -> network_tables.ParentSets:
        """The parents of each column that these counts show."""

        def further(column: int, first: int, others: Sequence[int]) -> PairInformation:
            tables = [self.count_of(structure_statistics, (first, other, column)) for other in others]
            return conditional_information(tables)

        candidates = self.candidates(structure_statistics)
        order = relevance_order(self.column_counts(structure_statistics), candidates.keys)
        return ordered_parents(order, candidates, self.edges, further if self.counts_triples else None)

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
            conditional_information([table.reshape(-1, 1, *table.shape[-2:])]) for _, _, table in tables
        ]
        return [
            (parent, child, float(gain[0] / weight[0]))
            for (parent, child, _), (gain, weight, _) in zip(tables, by_edge, strict=True)
        ]

    # -- verification --------------------------------------------------------------------------------------------

    def verify_structure(self) -> None:
        require(self.parents is not None, "parents is missing")
        require(self.given in (None, self.parents), "parents are not those that were given")
        network_tables.verify_parent_sets(
            self.parents or (), self.layout.levels, self.max_parents, self.max_cells
        )

    # -- statistics and parameters -------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        codes = self.tables.cell_codes(columns)
        return {"count": level_counts.weighted_counts(codes, weights, self.tables.first)}

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
        return network_tables.network_pseudo_counts(self.tables, per_level, count_of, self.back_off)

    # -- rows ----------------------------------------------------------------------------------------------------

    def _network(self, parameters: Arrays) -> networks.Network:
        """The network with its log probabilities, as the kernels read it."""
        tables = self.tables.arrays(parameters["log_probability"])
        return networks.Network(self.tables.parents, self.tables.order, tables)

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        codes, table = self.tables.cell_codes(columns), parameters["log_probability"]
        log_probability = level_counts.look_up(codes, table, self.tables.first)
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
