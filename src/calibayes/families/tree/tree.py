"""Tree-augmented naive Bayes over columns of levels: each column may depend on one other column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import (
    probabilities_of,
    require,
    require_arrays,
    require_finite,
    require_length,
    require_sums_of_one,
)
from calibayes.families.counts.pseudo_counts import floored, keep_nonnegative
from calibayes.families.kernel.bandwidths import Bandwidth, InCells, check_bandwidth
from calibayes.families.priors import Dirichlet
from calibayes.families.tree.structures import OneTree, PairCounts, Parents, Search, verify_parents
from calibayes.families.tree.tables import (
    ClassTree,
    TreeInference,
    TreeTables,
    bandwidths_in_cells,
    pseudo_counts,
    smooth,
    smoothing_matrices,
    verify_widths,
)
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.pairs import pair_table


@dataclass(frozen=True)
class Tree(TreeInference, PairCounts):
    """The probability of each level of a column given the class and the level of the column's parent.

    `prepare` learns the structure from the counts of all pairs of columns; training does not change it. A pair of cells
    is counted where both are known; the density of a row with missing values sums over them exactly. A level that did
    not occur in training is a missing value. Where cells have widths, the density is in the columns' units.

    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, divided evenly among the levels of the column's parent; 0 is maximum likelihood.
    prior : Dirichlet, optional
        Prior by equivalent sample size, the same for each column's table, instead of ``alpha``.
    max_cells : int, default=10000
        Pairs of columns with more combinations of levels are not counted, and so cannot be edges.
    search : Search
        `OneTree` or `PerClass`, with a criterion for edges.
    back_off : float, default=0
        Pseudo-rows added to each conditional distribution of a column, distributed as the column is in the class
        (Friedman, Geiger and Goldszmidt 1997).
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns with ordered cells.
    """

    search: Search = field(default_factory=OneTree)
    back_off: float = 0.0
    bandwidth: Bandwidth = field(default_factory=lambda: InCells(0.0))
    parents: tuple[Parents, ...] | None = field(default=None, repr=False, compare=False)
    """The structure, set by `prepare`: the parent of each column, class by class."""
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

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, parents=None, prepared_pseudo_counts=None, widths=None)

    def conjugate(self) -> Self:
        has_prior = np.any(self.alpha) or self.prior or self.back_off
        return self if has_prior else replace(self, prior=Dirichlet())

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def structure(self) -> tuple[Parents, ...] | None:
        """The parent of each column, class by class."""
        return self.parents

    @cached_property
    def class_trees(self) -> tuple[ClassTree, ...]:
        """The distinct trees and the classes of each; a tree without edges before `prepare`."""
        k, d = len(self.layout.classes), len(self.layout.columns)
        parents = self.parents or ((-1,) * d,) * k
        return tuple(
            ClassTree(
                np.array([c for c in range(k) if parents[c] == tree]), TreeTables(tree, self.layout.levels)
            )
            for tree in dict.fromkeys(parents)
        )

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the structure, pseudo-counts and bandwidths learned from structure statistics."""
        structured = replace(self, parents=self.search.parents(self.candidates(start)))
        column_counts = self.column_counts(start)
        return replace(
            structured,
            prepared_pseudo_counts=structured._count_prior(column_counts),
            widths=bandwidths_in_cells(self.bandwidth, self.layout, column_counts),
        )

    def statistics_of(self, structure_statistics: Arrays) -> Arrays:
        singles, levels = self.column_counts(structure_statistics), self.layout.levels

        def of_tree(tree: ClassTree) -> Array:
            classes, joint = tree.classes, structure_statistics["pair"][tree.classes]
            return tree.tables.join(
                [
                    singles[j][classes] if p < 0 else pair_table(joint, self.pairs, levels, p, j)
                    for j, p in enumerate(tree.tables.parents)
                ]
            )

        return {"count": self._over_trees(of_tree)}

    def edges(self, structure_statistics: Arrays) -> list[tuple[int, int, float, int]]:
        """Parent, child, mutual information in nats and class of each edge; class -1 if all share one tree."""
        candidates, shared = self.candidates(structure_statistics), len(self.class_trees) == 1
        information = {-1: candidates.pooled()} if shared else dict(enumerate(candidates.by_class()))
        return [
            (parent, child, float(gain[pair] / weight[pair]), c)
            for c, (gain, weight, _) in information.items()
            for child, parent in enumerate((self.parents or ())[max(c, 0)])
            if parent >= 0
            for pair in [candidates.position(parent, child)]
        ]

    def _over_trees(self, of_tree: Callable[[ClassTree], Array]) -> Array:
        """Cells of all classes, (k, cells), tree by tree; a class whose tree has fewer cells is padded with zeros."""
        cells = max(int(tree.tables.first[-1]) for tree in self.class_trees)
        result = np.zeros((len(self.layout.classes), cells))
        for tree in self.class_trees:
            result[tree.classes, : tree.tables.first[-1]] = of_tree(tree)
        return result

    # -- verification --------------------------------------------------------------------------------------------

    def verify(self) -> None:
        super().verify()
        layout, k, d = self.layout, len(self.layout.classes), len(self.layout.columns)
        require_length("levels", layout.levels, d)
        prepared = (self.parents, self.prepared_pseudo_counts, self.widths)
        if not k or all(part is None for part in prepared):
            return
        require(self.parents is not None, "parents is missing")
        verify_parents(self.parents or (), k, d)
        self._verify_edges()
        require_finite("prepared_pseudo_counts", self.prepared_pseudo_counts, (k, self._cell_count), 0.0)
        verify_widths(self.widths, layout)

    def _verify_edges(self) -> None:
        """Raises ValueError if an edge joins columns whose pair is not counted."""
        levels = self.layout.levels
        sizes = [
            levels[parent] * levels[column]
            for tree in dict.fromkeys(self.parents or ())
            for column, parent in enumerate(tree)
            if parent >= 0
        ]
        require(max(sizes, default=0) <= self.max_cells, f"a table has more than {self.max_cells} cells")

    @property
    def _cell_count(self) -> int:
        """Number of cells of the largest tree."""
        return max(sum(tree.tables.sizes) for tree in self.class_trees)

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self._cell_count
        require_arrays("parameters", parameters, {"log_probability": shape})
        probability = probabilities_of("log_probability", parameters["log_probability"])
        for tree in self.class_trees:
            sums = tree.tables.distribution_sums(tree.select(probability))
            require_sums_of_one("log_probability", sums)

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self._cell_count
        require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    # -- statistics and parameters -------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        def of_tree(tree: ClassTree) -> Array:
            codes = tree.tables.cell_codes(columns)
            return counts.weighted_counts(codes, weights[:, tree.classes], tree.tables.first)

        return {"count": self._over_trees(of_tree)}

    def parameters(self, statistics: Arrays) -> Arrays:
        def of_tree(tree: ClassTree) -> Array:
            smoothed = self._smoothed(tree, tree.select(statistics["count"]))
            pseudo = tree.select(self._pseudo_counts)
            count = smoothed + pseudo
            count = floored(count, tree.tables.distribution_sums(count), pseudo)
            return np.log(count) - np.log(tree.tables.distribution_sums(count))

        return {"log_probability": self._over_trees(of_tree)}

    def _count_prior(self, column_counts: list[Array] | None) -> Array:
        """Pseudo-counts of all cells; back-off is to equal shares where no counts of columns are given."""
        equal = [np.ones((len(self.layout.classes), size)) for size in self.layout.levels]

        def of_tree(tree: ClassTree) -> Array:
            class_counts = [count[tree.classes] for count in column_counts or equal]
            per_level = self.pseudo_counts(self.layout.levels)
            return pseudo_counts(tree.tables, per_level, class_counts, self.back_off)

        return self._over_trees(of_tree)

    @cached_property
    def _pseudo_counts(self) -> Array:
        prepared = self.prepared_pseudo_counts
        return self._count_prior(None) if prepared is None else prepared

    def _smoothed(self, tree: ClassTree, count: Array) -> Array:
        if self.widths is None or not self.widths.any():
            return count
        return smooth(count, tree.tables, self._smoothing[int(tree.classes[0])])

    @cached_property
    def _smoothing(self) -> dict[int, list[Array | None]]:
        """Smoothing matrices of each tree, by its first class."""
        widths, ordered = np.zeros((0, 0)) if self.widths is None else self.widths, self.layout.ordered
        return {
            int(tree.classes[0]): smoothing_matrices(self.layout.levels, widths[tree.classes], ordered)
            for tree in self.class_trees
        }

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log probabilities; of a row with missing values, pairs that are known contribute."""

        def of_tree(tree: ClassTree) -> Array:
            moved = parameters["log_probability"] + rate * direction["count"]
            return tree.tables.projected(tree.select(moved))

        return GradientStep({"log_probability": self._over_trees(of_tree)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo_counts * parameters["log_probability"]))
