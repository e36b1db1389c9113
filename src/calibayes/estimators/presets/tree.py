"""Tree-augmented naive Bayes over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

from calibayes.core.protocols import Array
from calibayes.encoders.bins import PairBins, bins_named
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.attributes import fitted_of
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.recipe import Specification
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import estimator, number, whole_number
from calibayes.estimators.presets.kinds import KindChoices, OfKind, check_kinds, kinds_schema, specifications
from calibayes.estimators.presets.naive_bayes import smoothing_of
from calibayes.estimators.presets.tabular import BINS_WITHOUT_DISCRETIZE, DEFAULT_BINS, TabularNB
from calibayes.estimators.presets.tree_columns import Positions, tree_columns
from calibayes.families import OneTree, PerClass, SignificantEdges, Tree
from calibayes.families.kernel.bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.families.tree.structures import Edges, Search
from calibayes.tables.table import Table

TREE = "tree"
"""Name of the family over the columns of the tree."""
ALONE = "without parent"
"""Name of the family over further columns, if there are too many for one tree."""
IN_TREE = ("binned", "categorical")
"""Kinds of columns that are part of the tree; columns of other kinds are independent of it given the class."""


class Edge(NamedTuple):
    """An edge of the tree: a column that depends on another."""

    parent: str
    child: str
    information: float
    """Mutual information of the two columns in nats, given the class; within one class if each has its own tree."""
    label: Any = None
    """The class whose tree it belongs to; None if all classes share one."""


@dataclass(frozen=True)
class InTree:
    """The columns that are part of the tree."""

    binned: OfKind
    categorical: OfKind

    def __call__(self, table: Table) -> list[int]:
        return sorted([*self.binned(table), *self.categorical(table)])


@estimator
class TreeAugmentedNB(TabularNB):
    """Tree-augmented naive Bayes (TAN): each column may depend on one other. Numbers are binned, the rest is categorical.

    The tree maximizes the mutual information of the columns given the class (Friedman, Geiger and Goldszmidt 1997) and is
    found in one pass over the rows. Where the tables of all pairs of columns would need more than a gigabyte (32 megabytes,
    if there are more columns than rows), only the 256 columns that depend on the class most (or fewer, if these need too
    much as well) are part of the tree; the others are independent of all columns given the class. With more columns than
    rows log probabilities have a temperature, as in `NaiveBayes`.

    Parameters
    ----------
    per_class : bool, default=False
        Whether every class has its own tree.
    edges : Edges, optional
        Which edges are kept: `SignificantEdges` by default, `InformativeEdges` above a number of nats, or `AllEdges`,
        which is the tree of the paper; with the first two the result may be a forest.
    back_off : float, default=5
        Pseudo-rows that smooth a column's distribution, under each level of its parent, towards its distribution in the
        class.
    bandwidth : {"bins", "normal", "silverman", "sheather_jones"}, 0 or rule of `calibayes.families`, optional
        Width of the kernel that smooths the tables along binned numbers; by default "bins" (`OverBins`), whose kernel
        becomes narrower with more rows. 0 does not smooth, `InCells` is a width in bins.
    max_cells : int, default=10000
        Two columns whose joint table has more cells than this are not joined by an edge.
    discretize, n_bins
        How numbers are binned; see `NaiveBayes`. By default finely (`PairBins`), and ``bandwidth`` smooths over the bins.
    kinds : mapping, optional
        Column, by name or position, -> "binned" or "categorical" for columns that are to have another kind than by
        default, or another kind of `GenerativeClassifier`, which is then independent of the tree given the class.
    rare_levels, max_levels, prior, priors
        See `NaiveBayes`.
    alpha : float, default=1
        Pseudo-count per level, divided by the number of levels of the column's parent.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Attributes
    ----------
    edges_ : list of Edge
        The edges, the most informative first; `calibayes.plots.plot_tree` draws them.
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import TreeAugmentedNB
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = TreeAugmentedNB().fit(penguins.data, penguins.target)
    >>> model.edges_[0].parent, model.edges_[0].child
    ('body_mass_g', 'sex')
    """

    per_class: bool = False
    edges: Edges | None = None
    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000
    discretize: str | Encoder | None = None
    n_bins: int | None = None

    numeric_kind: ClassVar[str] = "binned"

    def choices(self) -> KindChoices:
        if self.discretize is None and self.n_bins is not None:
            raise ValueError(BINS_WITHOUT_DISCRETIZE)
        most = whole_number("n_bins", DEFAULT_BINS if self.n_bins is None else self.n_bins, 1)
        bins = PairBins() if self.discretize is None else bins_named(self.discretize, most)
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self.levels_encoder())

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        given, choices = check_kinds(self.kinds), self.choices()
        others = [s for s in specifications(given, self.numeric_kind, choices) if s[0] not in IN_TREE]
        binned, categorical = (OfKind(kind, given, self.numeric_kind) for kind in IN_TREE)
        encoder = ByColumnType(numbers=choices.bins, others=choices.levels, binned=binned)
        return [(TREE, self._tree(), InTree(binned, categorical), encoder), *others]

    def specify(self, rows: Rows, classes: Array) -> Specification:
        """The families, with the tree over the most relevant columns only if all columns are too many."""
        specification = super().specify(rows, classes)
        (name, tree, selection, encoder), *others = specification.families
        positions = selection(rows.table)
        chosen = tree_columns(positions, encoder, rows, len(classes), tree.max_cells)
        if chosen is None:
            return specification
        rest = tuple(j for j in positions if j not in set(chosen))
        families = [
            (name, tree, Positions(tuple(chosen)), encoder),
            (ALONE, replace(tree, max_cells=0), Positions(rest), encoder),
        ]
        return specification._replace(families=[*families, *others])

    def _tree(self) -> Tree:
        edges = SignificantEdges() if self.edges is None else self.edges
        if isinstance(edges, type) or not hasattr(edges, "allowed"):
            raise ValueError(
                f"edges must be an object such as AllEdges(), InformativeEdges() or SignificantEdges(), got {edges!r}"
            )
        search: Search = PerClass(edges) if self.per_class else OneTree(edges)
        return Tree(
            **smoothing_of(self.alpha, self.prior),
            search=search,
            back_off=number("back_off", self.back_off, 0.0, 1e300),
            bandwidth=OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            max_cells=whole_number("max_cells", self.max_cells, 1),
        )

    def describe(self, binding: ColumnBinding, table: Table) -> Schema | None:
        encoders, chosen = dict(binding.encoders), dict(binding.chosen)
        for name in [name for name in (TREE, ALONE) if name in encoders]:
            by_type, positions = cast(ByColumnType, encoders.pop(name)), chosen.pop(name)
            for kind, part, places in by_type.by_side(IN_TREE):
                key = kind if name == TREE else f"{kind}, {name}"
                encoders[key], chosen[key] = part, tuple(positions[place] for place in places)
        return kinds_schema(check_kinds(self.kinds), table, encoders, chosen)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        fitted = fitted_of(self)
        fitted.learned()
        family = fitted.model.families.get(TREE)
        if not isinstance(family, Tree):
            return []
        names, labels = family.layout.columns, [None, *fitted.classes.tolist()]
        edges = [
            Edge(names[parent], names[child], nats, labels[c + 1])
            for parent, child, nats, c in family.edges(fitted.data_statistics[TREE])
        ]
        return sorted(edges, key=lambda edge: -edge.information)
