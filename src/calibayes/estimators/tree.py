"""Tree-augmented naive Bayes over a table as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

from calibayes.core.protocols import Rule
from calibayes.encoders.bins import PairBins, bins_named
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.numbers import Encoder
from calibayes.encoders.schema import schema
from calibayes.estimators.checks import number, whole_number
from calibayes.estimators.kinds import Choices, OfKind, check_kinds, given_kinds, specifications
from calibayes.estimators.naive_bayes import MOST_BINS, UNCUT, Tabular
from calibayes.estimators.reading import Rows
from calibayes.families import OneTree, PerClass, SignificantEdges, Tree
from calibayes.families.kernel.bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.families.tree.structures import Edges, Search
from calibayes.tables.read import Table

TREE = "tree"
"""Name of the family over the columns that hang together."""
IN_TREE = ("binned", "categorical")
"""Kinds of columns that are part of the tree; columns of other kinds stand beside it."""


class Edge(NamedTuple):
    """A column that hangs on another."""

    parent: str
    child: str
    information: float
    """Mutual information of the two in nats: given the class, or within it where each class has its own tree."""
    label: Any = None
    """The class whose tree it belongs to; None where all classes share one."""


@dataclass(frozen=True)
class InTree:
    """The columns that are part of the tree."""

    binned: OfKind
    categorical: OfKind

    def __call__(self, table: Table) -> list[int]:
        return sorted([*self.binned(table), *self.categorical(table)])


@dataclass(eq=False, repr=False, kw_only=True)
class TreeAugmentedNB(Tabular):
    """Naive Bayes in which each column may hang on one other: numbers are cut into bins, all else is categorical.

    The tree is the one that says most about the columns given the class (Friedman, Geiger and Goldszmidt 1997), found
    in one pass over the rows.

    Parameters
    ----------
    kinds : mapping, optional
        Column, by name or position, -> "binned" or "categorical" where it is not to be what it would be by itself, or
        another kind of `GenerativeClassifier`, which then stands beside the tree.
    discretize, n_bins
        How numbers are cut; see `NaiveBayes`. By default finely (`PairBins`), and ``bandwidth`` smooths over the bins.
    rare_levels, max_levels
        How levels are pooled; see `NaiveBayes`.
    per_class : bool, default=False
        Whether every class has its own tree.
    edges : Edges, optional
        Which edges are worth it: `SignificantEdges` ones by default, those of `InformativeEdges` so many nats, or `AllEdges` one, which
        is the tree of the paper; with the first two it may be a forest.
    alpha : float, default=1
        Pseudo-count per level, shared out over the levels of the column's parent.
    back_off : float, default=5
        Rows that a column borrows, under each level of its parent, from its own distribution in the class.
    bandwidth : {"bins", "normal", "silverman", "sheather_jones"}, 0 or rule of `calibayes.families`, optional
        How wide a kernel is that smooths the tables along binned numbers; by default "bins" (`OverBins`), whose kernel
        narrows as rows get more. 0 smooths nothing, `InCells` has a width in bins.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    max_cells : int, default=10000
        Two columns with more cells than this in their common table are not joined.
    fit_prior, class_prior, force_alpha
        As in scikit-learn's CategoricalNB.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Attributes
    ----------
    edges_ : list of Edge
        The edges, those that say most first; `calibayes.plots.plot_tree` draws them.
    schema_ : Schema
        The kind of each column and why; it prints as a table.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = TreeAugmentedNB().fit(penguins.columns, penguins.target)
    >>> model.edges_[0].parent, model.edges_[0].child
    ('sex', 'body_mass_g')
    """

    discretize: str | Encoder | None = None
    n_bins: int | None = None
    per_class: bool = False
    edges: Edges | None = None
    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000

    numeric_kind: ClassVar[str] = "binned"

    def _choices(self) -> Choices:
        if self.discretize is None and self.n_bins is not None:
            raise ValueError(UNCUT)
        most = whole_number("n_bins", MOST_BINS if self.n_bins is None else self.n_bins, 1)
        bins = PairBins() if self.discretize is None else bins_named(self.discretize, most)
        return Choices(self._smoothing(), bins=bins, levels=self._levels())

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        given, choices = check_kinds(self.kinds), self._choices()
        beside = [s for s in specifications(given, self.numeric_kind, choices) if s[0] not in IN_TREE]
        binned, categorical = (OfKind(kind, given, self.numeric_kind) for kind in IN_TREE)
        encoder = ByColumnType(numbers=choices.bins, others=choices.levels, binned=binned)
        return [(TREE, self._tree(), InTree(binned, categorical), encoder), *beside]

    def _tree(self) -> Tree:
        edges = SignificantEdges() if self.edges is None else self.edges
        if isinstance(edges, type) or not hasattr(edges, "worth"):
            raise ValueError(
                f"edges must be AllEdges(), InformativeEdges(), SignificantEdges() or their like, got {edges!r}"
            )
        search: Search = PerClass(edges) if self.per_class else OneTree(edges)
        return Tree(
            **self._smoothing(),
            search=search,
            back_off=number("back_off", self.back_off, 0.0, 1e300),
            bandwidth=OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            max_cells=whole_number("max_cells", self.max_cells, 1),
        )

    def _bind(self, rule: Rule, rows: Rows) -> None:
        super()._bind(rule, rows)
        bound = self._bound
        encoders, chosen = dict(bound.encoders), dict(bound.chosen)
        if TREE in encoders:
            joined, indices = cast(ByColumnType, encoders.pop(TREE)), chosen.pop(TREE)
            for kind, part, places in joined.by_side(IN_TREE):
                encoders[kind], chosen[kind] = part, tuple(indices[place] for place in places)
        given = frozenset(given_kinds(check_kinds(self.kinds), rows.table))
        self.schema_ = schema(rows.table, encoders, chosen, given)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, those that say most first."""
        self._check_learned()
        family = self._model.families.get(TREE)
        if not isinstance(family, Tree):
            return []
        told = family.edges(self.data_statistics_[TREE])
        names, labels = family.layout.columns, [None, *self.classes_.tolist()]
        found = [Edge(names[parent], names[child], nats, labels[c + 1]) for parent, child, nats, c in told]
        return sorted(found, key=lambda edge: -edge.information)
