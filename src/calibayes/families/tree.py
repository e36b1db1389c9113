"""Tree-augmented naive Bayes over columns of levels: each column may depend on one other column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.core.verify import require
from calibayes.families import pair_tables, tree_structures
from calibayes.families.covariance_shapes import Full
from calibayes.families.network_tables import ConditionalProbabilities
from calibayes.kernels import level_counts
from calibayes.kernels.level_pairs import PairInformation, pair_table


@dataclass(frozen=True)
class Tree(pair_tables.TreeInference, ConditionalProbabilities):
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

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> X, y = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5, [0, 0, 1, 1] * 5
    >>> TreeAugmentedNB().fit(X, y).score(X, y)  # its family is Tree
    1.0
    """

    search: tree_structures.Search = field(default_factory=tree_structures.OneTree)
    parents: tuple[tree_structures.Parents, ...] | None = field(default=None, repr=False, compare=False)
    """The structure, set by `prepare`: the parent of each column, class by class."""

    def bind(self, layout: Layout) -> Self:
        return replace(super().bind(layout), parents=None)

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def structure(self) -> tuple[tree_structures.Parents, ...] | None:
        """The parent of each column, class by class."""
        return self.parents

    @cached_property
    def class_trees(self) -> tuple[pair_tables.ClassTree, ...]:
        """The distinct trees and the classes of each; a tree without edges before `prepare`."""
        k, d = len(self.layout.classes), len(self.layout.columns)
        parents = self.parents or ((-1,) * d,) * k
        return tuple(
            pair_tables.ClassTree(
                np.array([c for c in range(k) if parents[c] == tree]),
                pair_tables.TreeTables(tree, self.layout.levels),
            )
            for tree in dict.fromkeys(parents)
        )

    @cached_property
    def tables(self) -> pair_tables.ClassTrees:
        return pair_tables.ClassTrees(self.class_trees)

    def with_structure(self, structure_statistics: Arrays) -> Self:
        return replace(self, parents=self.search.parents(self.candidates(structure_statistics)))

    def statistics_of(self, structure_statistics: Arrays) -> Arrays:
        singles, levels = self.column_counts(structure_statistics), self.layout.levels

        def of_tree(tree: pair_tables.ClassTree) -> Array:
            classes, joint = tree.classes, structure_statistics["pair"][tree.classes]
            return tree.tables.join(
                [
                    singles[j][classes] if p < 0 else pair_table(joint, self.pairs, levels, p, j)
                    for j, p in enumerate(tree.tables.parents)
                ]
            )

        return {"count": self.tables.join(of_tree)}

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

    # -- verification --------------------------------------------------------------------------------------------

    def verify_structure(self) -> None:
        require(self.parents is not None, "parents is missing")
        tree_structures.verify_parents(self.parents or (), len(self.layout.classes), len(self.layout.columns))
        self._verify_edges()

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

    # -- statistics and parameters -------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        def of_tree(tree: pair_tables.ClassTree) -> Array:
            codes = tree.tables.cell_codes(columns)
            return level_counts.weighted_counts(codes, weights[:, tree.classes], tree.tables.first)

        return {"count": self.tables.join(of_tree)}

    def count_prior(self, structure_statistics: Arrays | None) -> Array:
        column_counts = self.given_or_equal(structure_statistics)
        per_level = self.pseudo_counts(self.layout.levels)

        def of_tree(tree: pair_tables.ClassTree) -> Array:
            class_counts = [count[tree.classes] for count in column_counts]
            return pair_tables.pseudo_counts(tree.tables, per_level, class_counts, self.back_off)

        return self.tables.join(of_tree)

    def smoothed(self, count: Array) -> Array:
        def of_tree(tree: pair_tables.ClassTree) -> Array:
            return pair_tables.smooth(
                tree.select(count), tree.tables, self._tree_smoothing[int(tree.classes[0])]
            )

        return self.tables.join(of_tree)

    @cached_property
    def _tree_smoothing(self) -> dict[int, list[Array | None]]:
        """Smoothing matrices of each tree, by its first class."""
        widths, ordered = np.zeros((0, 0)) if self.widths is None else self.widths, self.layout.ordered
        return {
            int(tree.classes[0]): pair_tables.smoothing_matrices(
                self.layout.levels, widths[tree.classes], ordered
            )
            for tree in self.class_trees
        }


# -- Tree-structured covariance: each column depends linearly on one other column ----------------------------

LEAST_UNEXPLAINED = 1e-15
"""Smallest value of 1 - correlation^2, so that its logarithm is finite."""


@dataclass(frozen=True)
class TreeCovariance(Full):
    """One covariance per class, of a Gaussian Markov tree: each column is linear in its parent, plus independent noise.

    `prepare` learns the tree of maximum likelihood from the correlations of the data (Chow and Liu 1968); training does
    not change it. The covariance has the sample variances and the sample covariances along edges; all other entries
    follow from these (covariance selection on a tree has a closed form). A regularizer is applied afterwards.

    Parameters
    ----------
    search : Search
        `OneTree` or `PerClass`, with a criterion for edges.

    Examples
    --------
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureDiscriminantAnalysis(n_components=1, covariance="tree", rule="ml")  # its shape is TreeCovariance
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    """

    search: tree_structures.Search = field(default_factory=tree_structures.OneTree)
    parents: tuple[tree_structures.Parents, ...] = field(default=(), repr=False, compare=False)
    """The parent of each column, class by class, set by `prepare`."""

    def freedom(self, d: int) -> int:
        """A variance for each column and a covariance for each of at most d - 1 edges."""
        return 2 * d - 1

    def prepare(self, start: Arrays) -> TreeCovariance:
        """This shape with the tree of maximal mutual information, -1/2 log(1 - correlation^2) for two columns."""
        count = np.where(start["count"] > 0, start["count"], 1.0)[:, None]
        mean = start["first"] / count
        covariance = self._scaled(start["second"] / count[:, :, None] - self.square(mean))
        left, right = np.triu_indices(mean.shape[1], 1)
        variances = np.maximum(self.variances(covariance), 0.0)
        product = variances[:, left] * variances[:, right]
        squares = covariance[:, left, right] ** 2
        squared_correlation = np.where(product > 0, squares / np.where(product > 0, product, 1.0), 0.0)
        gain = -0.5 * count * np.log(np.maximum(1.0 - squared_correlation, LEAST_UNEXPLAINED))
        information = PairInformation(gain, np.broadcast_to(count, gain.shape), np.ones(gain.shape))
        no_hashes = np.zeros(mean.shape[1], dtype=np.uint64)
        keys = tree_structures.told_apart(no_hashes, left, right, gain.sum(axis=0))
        candidates = tree_structures.Candidates(mean.shape[1], left, right, information, keys)
        return replace(self, parents=self.search.parents(candidates))

    def verify_size(self, k: int, d: int) -> None:
        tree_structures.verify_parents(self.parents, k if self.parents else 0, d)

    def _scaled(self, covariance: Array) -> Array:
        """The covariance in units, powers of 2, in which variances are near 1: products of variances do not overflow."""
        exponent = np.frexp(np.sqrt(np.maximum(self.variances(covariance), 0.0)))[1]
        return np.ldexp(covariance, -(exponent[:, :, None] + exponent[:, None, :]))

    def constrain(self, covariance: Array, size: Array) -> Array:
        # Unchanged before the trees are learned, and for a prior covariance that all classes share.
        if len(self.parents) != len(covariance):
            return covariance
        return np.stack([tree_covariance(*pair) for pair in zip(covariance, self.parents, strict=True)])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """Only entries of the precision on the diagonal and on edges are free."""
        free = np.stack([_free_entries(parents) for parents in self.parents])
        moved = super().gradient_step(covariance, gradient * free, floor)
        return self.constrain(moved, np.ones((len(free), 1)))


def tree_covariance(covariance: Array, parents: tree_structures.Parents) -> Array:
    """The covariance (d, d) of a tree with given variances and edge covariances: products of slopes along paths."""
    result = np.zeros_like(covariance)
    for column in tree_structures.topological_order(parents):
        parent = parents[column]
        if parent >= 0 and covariance[parent, parent] > 0:
            slope = covariance[column, parent] / covariance[parent, parent]
            result[column] = result[:, column] = slope * result[parent]
        result[column, column] = covariance[column, column]
    return result


def _free_entries(parents: tree_structures.Parents) -> Array:
    """1 on the diagonal and on edges, else 0, (d, d)."""
    mask = np.eye(len(parents))
    children = np.flatnonzero(np.array(parents) >= 0)
    child_parents = np.array(parents)[children]
    mask[children, child_parents] = mask[child_parents, children] = 1.0
    return mask
