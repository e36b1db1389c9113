"""Which columns hang on which: trees and forests found in what pairs of columns tell about each other.

A tree is told by the parent of each column, -1 for a root. Chow and Liu (1968): of all trees the one whose edges gain
most log likelihood is the most likely one; with the gains of all classes added up it is the tree-augmented naive Bayes
of Friedman, Geiger and Goldszmidt (1997). Edges that gain nothing are left out. The root of each tree is its first
column, and among edges that gain the same, those of earlier columns come first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import chdtrc

from calibayes.core.protocols import Array
from calibayes.kernels.levels.pairs import PairInformation

Parents: TypeAlias = tuple[int, ...]
LEAST_INFORMATION = 1e-9
"""Nats a row below which an edge gains nothing but rounding."""
DIGITS = 10
"""Digits to which gains are compared: sums in another order must not change a tree."""


class Candidates(NamedTuple):
    """Pairs of columns that may become edges, for some classes or for all of them."""

    d: int
    left: Array
    right: Array
    dependence: PairInformation
    """What each pair says in each class, (k, pairs)."""

    def pooled(self) -> PairInformation:
        """The classes together, (pairs,): what columns tell about each other given the class."""
        return PairInformation(*(part.sum(axis=0) for part in self.dependence))

    def by_class(self) -> list[PairInformation]:
        """Each class alone, (pairs,)."""
        return [PairInformation(*parts) for parts in zip(*self.dependence, strict=True)]

    def position(self, one: int, other: int) -> int:
        """Where a pair of columns is among all."""
        here = (self.left == min(one, other)) & (self.right == max(one, other))
        return int(np.flatnonzero(here)[0])


class Edges(Protocol):
    """Which pairs are worth an edge."""

    def worth(self, dependence: PairInformation) -> Array:
        """One answer for each pair, (pairs,)."""


@dataclass(frozen=True)
class AllEdges:
    """All pairs: a tree over all columns."""

    def worth(self, dependence: PairInformation) -> Array:
        return np.ones(dependence.gain.shape, dtype=bool)


@dataclass(frozen=True)
class InformativeEdges:
    """Pairs whose mutual information is at least so many nats.

    Parameters
    ----------
    nats : float
    """

    nats: float

    def __post_init__(self) -> None:
        if not 0 <= self.nats < math.inf:
            raise ValueError(
                f"InformativeEdges(nats={self.nats}): the least information must be finite and not negative"
            )

    def worth(self, dependence: PairInformation) -> Array:
        return np.asarray(dependence.gain >= self.nats * dependence.weight)


@dataclass(frozen=True)
class SignificantEdges:
    """Pairs whose independence a G-test refutes, all pairs together at no more than this level (Bonferroni).

    Parameters
    ----------
    level : float, default=0.05
        Probability that any two independent columns are joined.
    """

    level: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"SignificantEdges(level={self.level}): the level must lie between 0 and 1")

    def worth(self, dependence: PairInformation) -> Array:
        some = dependence.freedom > 0
        chance = chdtrc(np.where(some, dependence.freedom, 1.0), 2.0 * dependence.gain)
        return np.asarray(some & (chance * len(chance) <= self.level))


class Search(Protocol):
    """How a structure is found."""

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        """The parents of the columns, class by class."""


@dataclass(frozen=True)
class OneTree:
    """One tree for all classes, by what columns tell about each other given the class.

    Parameters
    ----------
    edges : Edges
        Which pairs are worth an edge: `AllEdges`, `InformativeEdges` or `SignificantEdges`; with the latter two it may be a forest.
    """

    edges: Edges = field(default_factory=AllEdges)

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        tree = spanning(candidates, candidates.pooled(), self.edges)
        return (tree,) * len(candidates.dependence.gain)


@dataclass(frozen=True)
class PerClass:
    """A tree for each class, by what columns tell about each other within it.

    Parameters
    ----------
    edges : Edges
        Which pairs are worth an edge, class by class.
    """

    edges: Edges = field(default_factory=AllEdges)

    def parents(self, candidates: Candidates) -> tuple[Parents, ...]:
        return tuple(spanning(candidates, told, self.edges) for told in candidates.by_class())


def spanning(candidates: Candidates, dependence: PairInformation, edges: Edges) -> Parents:
    """The forest of the greatest gain over the pairs that are worth an edge."""
    gain, weight = dependence.gain, dependence.weight
    kept = np.flatnonzero(edges.worth(dependence) & (gain > LEAST_INFORMATION * weight))
    top = gain[kept].max(initial=0.0)
    order = kept[np.argsort(-np.round(gain[kept] / (top or 1.0), DIGITS), kind="stable")]
    # Ranks instead of gains: no two are equal, and none is zero, which would be no edge.
    ranks = np.arange(1.0, len(order) + 1)
    shape = (candidates.d, candidates.d)
    graph = sparse.coo_array((ranks, (candidates.left[order], candidates.right[order])), shape=shape)
    forest = csgraph.minimum_spanning_tree(graph.tocsr())
    return _rooted(forest, candidates.d)


def _rooted(forest: Array, d: int) -> Parents:
    """The parent of each column when every tree hangs on its first column."""
    parents = np.full(d, -1)
    reached = np.zeros(d, dtype=bool)
    for column in range(d):
        if not reached[column]:
            order, before = csgraph.breadth_first_order(forest, column, directed=False)
            reached[order] = True
            parents[order[1:]] = before[order[1:]]
    return tuple(int(parent) for parent in parents)


def from_parents_on(parents: Parents) -> tuple[int, ...]:
    """The columns in an order in which parents come before their children, and earlier columns first."""
    depth = [0] * len(parents)
    for column in range(len(parents)):
        above = parents[column]
        while above >= 0:
            depth[column], above = depth[column] + 1, parents[above]
    return tuple(sorted(range(len(parents)), key=lambda column: depth[column]))
