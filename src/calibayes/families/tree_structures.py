"""Structure learning: counts of pairs of columns, and trees and forests of maximal mutual information.

A tree is given by the parent of each column, -1 for a root. Chow and Liu (1968): the tree of maximum likelihood is the
spanning tree of maximal mutual information; with the information of all classes added up it is the tree-augmented naive
Bayes classifier (TAN) of Friedman, Geiger and Goldszmidt (1997). Edges without information are left out. The root of
each tree is the column with the most information in all. Of equal gains, those come first whose columns have the smaller
hash of their content, whatever the order of the columns is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import chdtrc

from calibayes.core.protocols import AnyArray, Array, Arrays, resolve
from calibayes.core.verify import require, require_arrays, require_length
from calibayes.families.counts import PseudoCounts
from calibayes.kernels import level_counts, level_pairs
from calibayes.kernels.cut_points import mixed
from calibayes.kernels.level_pairs import PairInformation

Parents: TypeAlias = tuple[int, ...]
"""The parent of each column, -1 for a root."""
LEAST_INFORMATION = 1e-9
"""Mutual information in nats below which an edge is rounding error."""
SAME_GAIN = 1e-10
"""Gains that differ by less, as a share of the largest, are equal: a tree must not depend on the order of summation."""
ROUNDS = 2
"""How often columns are told apart by the columns that they share information with."""
LARGEST_TABLES = 2**27
"""Most cells in the tables of all pairs and classes: one gigabyte."""


class Candidates(NamedTuple):
    """Pairs of columns that may become edges."""

    d: int
    left: Array
    right: Array
    dependence: PairInformation
    """Information of each pair in each class, (k, pairs)."""
    keys: Array
    """A hash of the content of each column, (d,)."""

    def pooled(self) -> PairInformation:
        """Sums over the classes, (pairs,): the conditional mutual information given the class."""
        return PairInformation(*(part.sum(axis=0) for part in self.dependence))

    def by_class(self) -> list[PairInformation]:
        """The information within each class, (pairs,)."""
        return [PairInformation(*parts) for parts in zip(*self.dependence, strict=True)]

    def position(self, column: int, other: int) -> int:
        """The position of a pair of columns among the candidates."""
        is_pair = (self.left == min(column, other)) & (self.right == max(column, other))
        return int(np.flatnonzero(is_pair)[0])


@dataclass(frozen=True)
class PairCounts(PseudoCounts):
    """Counts of all columns and of all pairs of columns: the sums from which a tree structure is learned.

    Parameters
    ----------
    max_cells : int, default=10000
        Pairs of columns with more combinations of levels are not counted, and so cannot be edges.
    """

    max_cells: int = 10_000

    @property
    def pairs(self) -> level_pairs.Pairs:
        """The pairs of columns that are counted. Raises ValueError if their tables do not fit into memory."""
        counted = level_pairs.column_pairs(self.layout.levels, self.max_cells)
        cells = len(self.layout.classes) * int(counted.first[-1])
        if cells > LARGEST_TABLES:
            raise ValueError(
                f"the tables of {len(counted.left)} pairs of columns have {cells:.3g} cells over all classes, "
                f"more than {LARGEST_TABLES:.3g}: fewer bins, pooled levels or a smaller max_cells help"
            )
        return counted

    def structure_statistics(self, columns: Array, weights: Array) -> Arrays:
        """Counts of levels of each column, (k, cells), and of pairs of levels of each pair, (k, cells of pairs)."""
        levels = self.layout.levels
        return {
            "single": level_counts.weighted_counts(columns, weights, level_counts.offsets(levels)),
            "pair": level_pairs.weighted_pairs(columns, weights, levels, self.pairs),
        }

    def verify_structure_statistics(self, structure_statistics: Arrays) -> None:
        k, levels = len(self.layout.classes), self.layout.levels
        shapes = {"single": (k, self.layout.cells), "pair": (k, cells_of_pairs(levels, self.max_cells))}
        require_arrays("structure statistics", structure_statistics, shapes, least=0.0)

    def candidates(self, structure_statistics: Arrays) -> Candidates:
        """The counted pairs of columns and the mutual information of each."""
        counted = self.pairs
        information = level_pairs.pair_information(structure_statistics["pair"], counted, self.layout.levels)
        hashes = content_keys(self.column_counts(structure_statistics))
        keys = told_apart(hashes, counted.left, counted.right, information.gain.sum(axis=0))
        return Candidates(len(self.layout.columns), counted.left, counted.right, information, keys)

    def column_counts(self, structure_statistics: Arrays) -> list[Array]:
        """The counts of each column, (k, levels)."""
        return np.split(
            structure_statistics["single"], level_counts.offsets(self.layout.levels)[1:-1], axis=1
        )

    def occurrences(self, structure_statistics: Arrays) -> Array:
        return np.asarray(structure_statistics["single"].sum(axis=0))

    def recode(self, structure_statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """A pair that now has too many cells is dropped; one that was not counted before has counts of 0."""
        single, pair = structure_statistics["single"], structure_statistics["pair"]
        old, new = self.pairs, level_pairs.column_pairs(tuple(levels), self.max_cells)
        counted = {(i, j) for i, j in zip(old.left.tolist(), old.right.tolist(), strict=True)}
        recoded = np.zeros((len(pair), int(new.first[-1])))
        for number, (i, j) in enumerate(zip(new.left.tolist(), new.right.tolist(), strict=True)):
            if (i, j) in counted:
                table = level_pairs.pair_table(pair, old, self.layout.levels, i, j)
                moved = level_counts.recode_table(table, (codes[i], codes[j]), (levels[i], levels[j]))
                recoded[:, new.first[number] : new.first[number + 1]] = moved.reshape(len(recoded), -1)
        return {"single": level_counts.recode_counts(single, codes, levels), "pair": recoded}


# -- Equal gains: the order of the columns must not decide ----------------------------------------------------


def tied_places(gains: Array) -> Array:
    """The place of each gain in descending order, (n,); equal gains share one."""
    order = np.argsort(-gains, kind="stable")
    descents = -np.diff(gains[order])
    places = np.zeros(len(gains), dtype=np.int64)
    places[order[1:]] = np.cumsum(descents > SAME_GAIN * gains.max(initial=0.0))
    return places


def descending(gains: Array, keys: Array) -> Array:
    """Positions of the gains, the largest first; of equal ones that of the smallest key."""
    return np.lexsort([keys, tied_places(gains)])


def content_keys(column_counts: Sequence[Array]) -> Array:
    """A hash of the counts (k, levels) of each column, (d,), that does not depend on the order of the classes.

    That of a column does not depend on columns that have one level alone, either.
    """
    by_class = np.stack([_row_hashes(count) for count in column_counts])
    varies = [np.count_nonzero(count.any(axis=0)) > 1 for count in column_counts]
    class_keys = mixed(by_class[varies].sum(axis=0))
    return np.asarray(mixed(by_class ^ class_keys).sum(axis=1))


def _row_hashes(count: Array) -> Array:
    """A hash of each row of counts, (k,). In 32 bits they are equal whatever the order of summation was."""
    exponent = np.frexp(count.max(initial=0.0))[1]
    shares = np.ldexp(count, -exponent)  # below 1, so that none is too large for 32 bits
    words = (shares.astype(np.float32) + np.float32(0.0)).view(np.uint32).astype(np.uint64)
    places = np.arange(1, count.shape[1] + 1, dtype=np.uint64)
    return np.asarray(mixed(mixed(words) ^ mixed(places)).sum(axis=1))


def told_apart(keys: Array, left: Array, right: Array, gain: Array) -> Array:
    """Keys of columns (d,) that differ, too, where only the gains of their pairs with other columns differ."""
    some = gain > SAME_GAIN * gain.max(initial=0.0)
    left, right = left[some], right[some]
    places = mixed(tied_places(gain[some]).astype(np.uint64) + np.uint64(1))
    for _ in range(ROUNDS):
        sums = np.zeros_like(keys)
        for column, other in ((left, right), (right, left)):
            np.add.at(sums, column, mixed(keys[other] ^ places))
        keys = mixed(keys + sums)
    return keys


# -- Which pairs may become edges -----------------------------------------------------------------------------


class Edges(Protocol):
    """A criterion that selects the pairs of columns that may become edges."""

    def allowed(self, dependence: PairInformation) -> Array:
        """Whether each pair may become an edge, (pairs,) booleans."""


@dataclass(frozen=True)
class AllEdges:
    """Allow all pairs: one tree over all columns.

    Examples
    --------
    >>> from calibayes.families import OneTree, Tree
    >>> Tree(alpha=1.0, search=OneTree(AllEdges())).search
    OneTree(edges=AllEdges())
    """

    def allowed(self, dependence: PairInformation) -> Array:
        return np.ones(dependence.gain.shape, dtype=bool)


@dataclass(frozen=True)
class InformativeEdges:
    """Allow pairs with a least mutual information.

    Parameters
    ----------
    nats : float
        Least mutual information, in nats.

    Examples
    --------
    >>> from calibayes.families import OneTree
    >>> OneTree(InformativeEdges(nats=0.05)).edges
    InformativeEdges(nats=0.05)
    """

    nats: float

    def __post_init__(self) -> None:
        if not 0 <= self.nats < math.inf:
            raise ValueError(
                f"InformativeEdges(nats={self.nats}): the least information must be finite and not negative"
            )

    def allowed(self, dependence: PairInformation) -> Array:
        return np.asarray(dependence.gain >= self.nats * dependence.weight)


@dataclass(frozen=True)
class SignificantEdges:
    """Allow pairs for which a G-test rejects independence, with Bonferroni correction over all pairs of columns that vary.

    Parameters
    ----------
    level : float, default=0.05
        Probability that any pair of independent columns is allowed.

    Examples
    --------
    >>> from calibayes.families import OneTree
    >>> OneTree(SignificantEdges(level=0.01)).edges
    SignificantEdges(level=0.01)
    """

    level: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"SignificantEdges(level={self.level}): the level must lie between 0 and 1")

    def allowed(self, dependence: PairInformation) -> Array:
        testable = dependence.freedom > 0
        p_value = chdtrc(np.where(testable, dependence.freedom, 1.0), 2.0 * dependence.gain)
        return np.asarray(testable & (p_value * testable.sum(axis=-1, keepdims=True) <= self.level))


# -- What the structure is chosen by --------------------------------------------------------------------------


class StructureScore(Protocol):
    """What a structure is searched by."""

    @property
    def folds(self) -> int:
        """Number of folds of the search; 0 if the structure follows from sums over rows, without a search."""

    @property
    def edges(self) -> Edges:
        """Which pairs of columns may be joined, unless it is said."""


@dataclass(frozen=True)
class Information:
    """Choose arcs by mutual information given the class, found in counts of pairs of columns in one pass (Chow and Liu 1968).

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.families import Information
    >>> TreeAugmentedNB(structure=Information()).structure
    Information()
    """

    folds: ClassVar[int] = 0
    edges: ClassVar[Edges] = SignificantEdges()


@dataclass(frozen=True)
class PosteriorLoss(ABC):
    """A loss of p(class | x) that arcs are chosen by."""

    folds: int = 5
    edges: ClassVar[Edges] = AllEdges()

    def __post_init__(self) -> None:
        folds: Any = self.folds
        if isinstance(folds, bool) or not isinstance(folds, int) or folds < 1:
            raise ValueError(f"folds must be a whole number from 1 on, got {folds!r}")

    @abstractmethod
    def of(self, log_posterior: Array) -> Array:
        """The loss of each row, (n,), from log p(true class | x)."""


@dataclass(frozen=True)
class ConditionalLikelihood(PosteriorLoss):
    """Choose arcs by the conditional likelihood: the mean of -log p(class | x) falls.

    Parameters
    ----------
    folds : int, default=5
        Rows of a fold are predicted with the counts of the others; 1 predicts the training rows themselves.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.families import ConditionalLikelihood
    >>> X, y = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5, [0, 0, 1, 1] * 5
    >>> TreeAugmentedNB(structure=ConditionalLikelihood(folds=1)).fit(X, y).score(X, y)
    1.0
    """

    def of(self, log_posterior: Array) -> Array:
        return -log_posterior


@dataclass(frozen=True)
class SoftError(PosteriorLoss):
    """Choose arcs by the soft error: the mean of 1 - p(class | x) falls.

    Parameters
    ----------
    folds : int, default=5
        Rows of a fold are predicted with the counts of the others; 1 predicts the training rows themselves.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.families import SoftError
    >>> X, y = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5, [0, 0, 1, 1] * 5
    >>> TreeAugmentedNB(structure=SoftError(folds=1)).fit(X, y).score(X, y)
    1.0
    """

    def of(self, log_posterior: Array) -> Array:
        return -np.expm1(log_posterior)


STRUCTURES = {
    "information": Information,
    "conditional_likelihood": ConditionalLikelihood,
    "soft_error": SoftError,
}
"""Short name -> what arcs are chosen by."""


def structure_named(given: str | StructureScore) -> StructureScore:
    """The score of a short name, or the score itself. Raises ValueError if it is none."""
    score: StructureScore = resolve(
        "structure", given, STRUCTURES, ability="folds", example="ConditionalLikelihood(folds=1)"
    )
    return score


# -- Trees and forests ----------------------------------------------------------------------------------------


class Search(Protocol):
    """A method of structure learning."""

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        """The parents of the columns, class by class."""


@dataclass(frozen=True)
class OneTree:
    """One tree for all classes, of maximal conditional mutual information given the class.

    Parameters
    ----------
    edges : Edges
        Which pairs may become edges: `AllEdges`, `InformativeEdges` or `SignificantEdges`. The result is a forest where
        the allowed pairs do not connect all columns.

    Examples
    --------
    >>> from calibayes.families import InformativeEdges, Tree
    >>> Tree(alpha=1.0, search=OneTree(InformativeEdges(0.01))).search
    OneTree(edges=InformativeEdges(nats=0.01))
    """

    edges: Edges = field(default_factory=AllEdges)

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        tree = spanning_forest(candidates, candidates.pooled(), self.edges)
        return (tree,) * len(candidates.dependence.gain)


@dataclass(frozen=True)
class PerClass:
    """A tree for each class, of maximal mutual information within the class.

    Parameters
    ----------
    edges : Edges
        Which pairs may become edges, class by class.

    Examples
    --------
    >>> from calibayes.families import Tree
    >>> Tree(alpha=1.0, search=PerClass()).search
    PerClass(edges=AllEdges())
    """

    edges: Edges = field(default_factory=AllEdges)

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        by_class = candidates.by_class()
        return tuple(spanning_forest(candidates, information, self.edges) for information in by_class)


@dataclass(frozen=True)
class GivenTree:
    """One tree for all classes that is given, or was searched for by predictions, not learned from counts of pairs.

    Parameters
    ----------
    columns : tuple of int
        The parent of each column, -1 for a root.

    Examples
    --------
    >>> from calibayes.families import GivenTree, Tree
    >>> Tree(alpha=1.0, search=GivenTree((-1, 0, 0))).search
    GivenTree(columns=(-1, 0, 0))
    """

    columns: Parents

    def verify(self) -> None:
        """Raises ValueError unless this is a forest; see `calibayes.core.verify`."""
        verify_parents([self.columns], 1, len(self.columns))

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        return (self.columns,) * len(candidates.dependence.gain)


def spanning_forest(candidates: Candidates, dependence: PairInformation, edges: Edges) -> Parents:
    """The forest of maximal total gain over the allowed pairs."""
    gain, weight = dependence.gain, dependence.weight
    allowed = np.flatnonzero(edges.allowed(dependence) & (gain > LEAST_INFORMATION * weight))
    edge_keys = mixed(candidates.keys[candidates.left]) + mixed(candidates.keys[candidates.right])
    order = allowed[descending(gain[allowed], edge_keys[allowed])]
    # Ranks instead of gains: all differ, and none is 0, which a sparse graph takes for no edge.
    ranks = np.arange(1.0, len(order) + 1)
    shape = (candidates.d, candidates.d)
    # SciPy before 1.17.1 takes graphs with 32-bit indices only.
    ends = candidates.left[order].astype(np.int32), candidates.right[order].astype(np.int32)
    graph = sparse.coo_array((ranks, ends), shape=shape)
    forest = csgraph.minimum_spanning_tree(graph.tocsr())
    ends = (candidates.left, candidates.right)
    total = np.sum([np.bincount(end, gain, minlength=candidates.d) for end in ends], axis=0)
    return _rooted(forest, descending(total, candidates.keys))


def _rooted(forest: AnyArray, order: Array) -> Parents:
    """The parent of each column when the root of every tree is its first column in an order."""
    parents = np.full(len(order), -1)
    reached = np.zeros(len(order), dtype=bool)
    for column in order:
        if not reached[column]:
            found, before = csgraph.breadth_first_order(forest, column, directed=False)
            reached[found] = True
            parents[found[1:]] = before[found[1:]]
    return tuple(int(parent) for parent in parents)


def cells_of_pairs(levels: Sequence[int], most: int) -> int:
    """Number of cells of all pairs of columns with at most ``most`` each, without listing the pairs."""
    columns = sorted(Counter(levels).items())
    return sum(
        a * b * (columns_a * (columns_a - 1) // 2 if a == b else columns_a * columns_b)
        for i, (a, columns_a) in enumerate(columns)
        for b, columns_b in columns[i:]
        if a * b <= most
    )


def verify_parents(parents: Sequence[Parents], k: int, d: int) -> None:
    """Raises ValueError unless these are forests over d columns, one for each of k classes."""
    require_length("parents", parents, k)
    for tree in dict.fromkeys(parents):
        require_length("parents of a class", tree, d)
        require(all(-1 <= parent < d for parent in tree), f"parents contains a column outside of {d} columns")
        require(_is_forest(tree), "parents contains a cycle")


def _is_forest(parents: Parents) -> bool:
    """Whether the ancestors of every column end at a root."""
    reached_from = [-1] * len(parents)
    for column in range(len(parents)):
        ancestor = column
        while ancestor >= 0 and reached_from[ancestor] < 0:
            reached_from[ancestor], ancestor = column, parents[ancestor]
        if ancestor >= 0 and reached_from[ancestor] == column:
            return False
    return True


def topological_order(parents: Parents) -> tuple[int, ...]:
    """The columns by depth, so that parents come before their children; columns of equal depth in their order."""
    depth = [0] * len(parents)
    for column in range(len(parents)):
        ancestor = parents[column]
        while ancestor >= 0:
            depth[column], ancestor = depth[column] + 1, parents[ancestor]
    return tuple(sorted(range(len(parents)), key=lambda column: depth[column]))
