"""Tree-augmented naive Bayes over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array, Family, Layout
from calibayes.core.verify import require_columns
from calibayes.encoders.bins import PairBins, bins_named
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import Schema
from calibayes.estimators import structure_search, tabular
from calibayes.estimators.tabular import KindChoices, OfKind, TabularNB
from calibayes.families import (
    ClassPrior,
    GivenTree,
    KDependence,
    OneTree,
    PerClass,
    Tree,
)
from calibayes.families.counts import smoothing_of
from calibayes.families.kernel_bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.families.network_tables import ParentSets
from calibayes.families.tree_structures import (
    LARGEST_TABLES,
    Edges,
    PosteriorLoss,
    Search,
    StructureScore,
    structure_named,
)
from calibayes.kernels.level_counts import offsets, weighted_counts
from calibayes.kernels.moments import weight_of_one, whole_counts
from calibayes.model.attributes import fitted_of
from calibayes.model.binding import ColumnBinding, columns_with_values
from calibayes.model.checked_rows import TrainingRows
from calibayes.model.parameters import estimator, number, whole_number
from calibayes.model.recipe import Specification
from calibayes.model.splits import assign_folds, rows_by_weight
from calibayes.tables.summary import Sample, TableSummary, content_order
from calibayes.tables.table import Table

# -- Which columns are part of a tree, if the tables of all pairs of columns would be too large --------------

MOST_IN_TREE = (256, 128, 64, 32, 16)
"""Numbers of columns of a tree that are tried in turn, if all columns are too many."""
WIDE_TABLES = 2**22
"""Largest number of cells of the tables of all pairs, over all classes, if there are more columns than rows: so few rows do
not show which of millions of pairs depend on each other, and inner folds count them several times."""


Fit = Callable[[Sequence[int]], bool]
"""Whether the tables of columns with given numbers of levels fit into memory."""


@dataclass(frozen=True)
class Positions:
    """Columns at given positions, as a selection for a family."""

    chosen: tuple[int, ...]

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("chosen", self.chosen)

    def __call__(self, table: Table | TableSummary) -> list[int]:
        return list(self.chosen)


class CandidateColumns(NamedTuple):
    """Columns that a family is to model jointly, if they are not too many, and what those are chosen by if they are."""

    positions: Sequence[int]
    encoder: Encoder
    rows: TrainingRows
    k: int

    def levels(self, positions: Sequence[int]) -> Sequence[int]:
        """Numbers of levels of some of the columns: with fewer columns, numbers may get more bins."""
        return self.encoder.fit(self.rows.summary, positions).layout()["levels"] if positions else ()


def tree_columns(given: CandidateColumns, max_cells: int) -> list[int] | None:
    """The columns that depend on the class most, as many as fit; None if all columns fit.

    Of columns that are equally relevant all are chosen or none, so that the order of the columns has no influence.
    """
    if len(given.positions) <= MOST_IN_TREE[0]:
        return None
    is_wide = len(given.positions) > rows_by_weight(given.rows)
    most_cells = min(WIDE_TABLES, LARGEST_TABLES) if is_wide else LARGEST_TABLES

    def tree_fits(levels: Sequence[int]) -> bool:
        return fits(levels, given.k, max_cells, most_cells)

    return most_relevant_columns(given, MOST_IN_TREE, tree_fits)


def most_relevant_columns(given: CandidateColumns, numbers: Sequence[int], fit: Fit) -> list[int] | None:
    """The columns that depend on the class most, in the first of these numbers that fit; None if all columns fit.

    ``fit`` says whether the tables of columns with given numbers of levels fit into memory.
    """
    fitted = given.encoder.fit(given.rows.summary, given.positions)
    levels = fitted.layout()["levels"]
    if fit(levels):
        return None
    sample = given.rows.summary.sample
    relevance = np.round(class_relevance(fitted.encode(sample.table), levels, sample, given.k), 8)
    for most in numbers:
        least = np.sort(relevance)[-most - 1] if most < len(given.positions) else -np.inf
        chosen: list[int] = np.asarray(given.positions)[relevance > least].tolist()
        if fit(given.levels(chosen)):
            break
    return chosen


def fits(levels: Sequence[int], k: int, max_cells: int, most_cells: float) -> bool:
    """Whether the tables of all pairs of columns with these numbers of levels have at most so many cells."""
    sizes, counts = np.unique(np.asarray(levels, dtype=np.int64), return_counts=True)
    cells, pairs = np.outer(sizes, sizes), np.outer(counts, counts).astype(np.float64)
    pairs[np.diag_indices(len(sizes))] -= counts
    return bool(k * np.sum(np.where(cells <= max_cells, cells * pairs, 0.0)) / 2 <= most_cells)


def class_relevance(codes: Array, levels: Sequence[int], rows: Sample, k: int) -> Array:
    """How clearly each column depends on the class, (d,): the G statistic, standardized for its degrees of freedom."""
    # A row without a label (-1) does not count.
    labels = np.eye(k + 1)[rows.codes][:, :k] * rows.weight[:, None]
    first = offsets(tuple(levels))
    counts = weighted_counts(codes, labels, first)
    by_class = np.add.reduceat(counts, first[:-1], axis=1)
    by_level = counts.sum(axis=0)
    joint = np.add.reduceat(xlogy(counts, counts).sum(axis=0), first[:-1])
    margins = np.add.reduceat(xlogy(by_level, by_level), first[:-1]) + xlogy(by_class, by_class).sum(axis=0)
    total = by_class.sum(axis=0)
    gain = joint - margins + xlogy(total, total)
    known_levels = np.add.reduceat((by_level > 0).astype(np.float64), first[:-1])
    freedom = np.maximum((known_levels - 1.0) * (k - 1), 1.0)
    return np.asarray((2.0 * gain - freedom) / np.sqrt(2.0 * freedom))


# -- One family over all binned and categorical columns, beside families of further kinds: what such presets share

ALONE = "without parent"
"""Name of the family over further columns, if there are too many for one family."""
JOINT_KINDS = ("binned", "categorical")
"""Kinds of columns that are modeled jointly; columns of other kinds are independent of them given the class."""


@dataclass(frozen=True)
class BinnedOrCategorical:
    """The columns that are modeled jointly."""

    binned: OfKind
    categorical: OfKind

    def __call__(self, table: Table | TableSummary) -> list[int]:
        return sorted([*self.binned(table), *self.categorical(table)])


def checked_edges(edges: Edges | None, default: Edges) -> Edges:
    """The given criterion for edges. Raises ValueError if it is none."""
    chosen = default if edges is None else edges
    if isinstance(chosen, type) or not hasattr(chosen, "allowed"):
        expected = "an object such as AllEdges(), InformativeEdges() or SignificantEdges()"
        raise ValueError(f"edges must be {expected}, got {edges!r}")
    return chosen


# -- Base of presets whose binned and categorical columns depend on each other: one family over all of them

Kind = TypeVar("Kind", bound=Family)


@estimator
class JointPreset(TabularNB):
    """Parameters of presets whose columns depend on each other."""

    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000
    discretize: str | Encoder | None = None
    n_bins: int | None = None

    _numeric_kind: ClassVar[str] = "binned"
    _family_name: ClassVar[str]
    """Name of the family over the columns that depend on each other."""

    def _joint_family(self) -> Family:
        """The family over the columns that depend on each other."""
        raise TypeError(f"{type(self).__name__} chooses no family")

    def _joint_columns(self, given: CandidateColumns) -> list[int] | None:
        """The columns of the joint family if all columns are too many, otherwise None."""
        raise TypeError(f"{type(self).__name__} chooses no columns")

    def _with_structure(self, family: Any, given: CandidateColumns, class_prior: ClassPrior) -> Any:
        """The joint family, with a structure where that is no result of its counts."""
        return family

    def _default_bins(self) -> Encoder:
        """The encoder of binned columns unless ``discretize`` is given."""
        return PairBins()

    def _choices(self) -> KindChoices:
        if self.discretize is None and self.n_bins is not None:
            raise ValueError(tabular.BINS_WITHOUT_DISCRETIZE)
        most = whole_number("n_bins", tabular.DEFAULT_BINS if self.n_bins is None else self.n_bins, 1)
        bins = self._default_bins() if self.discretize is None else bins_named(self.discretize, most)
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self._levels_encoder())

    def _family_parameters(self) -> dict[str, Any]:
        """Parameters that all joint families have, checked."""
        return {
            **smoothing_of(self.alpha, self.prior),
            "back_off": number("back_off", self.back_off, 0.0, 1e300),
            "bandwidth": OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            "max_cells": whole_number("max_cells", self.max_cells, 1),
        }

    def _families(self) -> Sequence[tuple[Any, ...]]:
        """A family over the binned and categorical columns, and families of the other kinds that are given."""
        family, choices, given = self._joint_family(), self._choices(), tabular.check_kinds(self.kinds)
        others = [s for s in tabular.specifications(given, "binned", choices) if s[0] not in JOINT_KINDS]
        binned, categorical = (OfKind(kind, given, "binned") for kind in JOINT_KINDS)
        encoder = ByColumnType(numbers=choices.bins, others=choices.levels, binned=binned)
        return [(self._family_name, family, BinnedOrCategorical(binned, categorical), encoder), *others]

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        """The families; if all columns are too many for the joint one, the least relevant depend on the class alone."""
        specification = super()._specification(rows, classes)
        (name, family, selection, encoder), *others = specification.families
        positions = selection(rows.summary)
        known = columns_with_values(positions, rows.summary)
        candidates = CandidateColumns(known, encoder, rows, len(classes))
        chosen = self._joint_columns(candidates)
        modeled = candidates if chosen is None else candidates._replace(positions=chosen)
        structured = self._with_structure(family, modeled, specification.class_prior)
        if chosen is None:
            return specification._replace(families=[(name, structured, selection, encoder), *others])
        rest = Positions(tuple(j for j in positions if j not in set(chosen)))
        alone = (ALONE, replace(family, max_cells=0), rest, encoder)
        joint = (name, structured, Positions(tuple(chosen)), encoder)
        return specification._replace(families=[joint, alone, *others])

    def _schema(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        """The schema, in which binned and categorical columns of the joint family are apart."""
        encoders, chosen = dict(binding.encoders), dict(binding.chosen)
        for family in [name for name in (self._family_name, ALONE) if name in encoders]:
            by_type, positions = cast(ByColumnType, encoders.pop(family)), chosen.pop(family)
            for kind, part, places in by_type.by_side(JOINT_KINDS):
                key = kind if family == self._family_name else f"{kind}, {family}"
                encoders[key], chosen[key] = part, tuple(positions[place] for place in places)
        return super()._schema(replace(binding, encoders=encoders, chosen=chosen), summary)

    def _learned_family(self, kind: type[Kind]) -> Kind | None:
        """The joint family after training; None if it has no columns. Raises ValueError if there were too few rows."""
        fitted = fitted_of(self)
        fitted.learned()
        family = fitted.model.families.get(self._family_name)
        return family if isinstance(family, kind) else None


# -- Presets whose structure may be searched for by predictions of the training rows --------------------------


def refuse_search(structure: str | StructureScore) -> None:
    """Raises ValueError if the structure is searched for with all rows at once, so that the model is no sum over rows."""
    if structure_named(structure).folds:
        raise ValueError(
            f"structure={structure!r} is searched for with all rows at once: use structure='information'"
        )


def edges_of(edges: Edges | None, structure: str | StructureScore) -> Edges:
    """Which pairs of columns may be joined."""
    return checked_edges(edges, structure_named(structure).edges)


def searched(
    structure: str | StructureScore,
    local: Callable[[], KDependence],
    arcs: structure_search.ArcsOf,
    given: CandidateColumns,
    class_prior: ClassPrior,
) -> ParentSets | None:
    """The parents of the columns by predictions of the training rows; None if the structure needs no search.

    ``local`` has the terms of the columns in log p(x, class) for any parents, ``arcs`` those that may be added.
    """
    score = structure_named(structure)
    if not isinstance(score, PosteriorLoss) or not given.positions:
        return None
    encoder = given.encoder.fit(given.rows.summary, given.positions)
    classes, names = tuple(map(str, range(given.k))), tuple(map(str, given.positions))
    layout = Layout(classes, **{"columns": names, **encoder.layout()})
    rows = distinct_rows(encoder, given.rows.summary.sample, score.folds)
    fixed = class_prior.bind(layout).fixed
    return structure_search.searched_parents(local().bind(layout), rows, score, arcs, fixed)


def distinct_rows(encoder: Encoder, sample: Sample, folds: int) -> structure_search.EncodedRows:
    """The distinct encoded rows with a label, ordered and dealt to folds by their content and weight alone.

    A row of weight 2 is two rows, which may be in two folds: each then has a part of the weight.
    """
    labels = cast(Array, sample.codes)
    labeled = np.flatnonzero(labels >= 0)
    weights = sample.weight[labeled]
    cells = np.column_stack([encoder.encode(sample.table)[labeled], labels[labeled]]).astype(np.int32)
    cells, which = np.unique(cells, axis=0, return_inverse=True)
    total = np.bincount(which.ravel(), weights, minlength=len(cells))
    order = content_order(cells[:, :-1], total, cells[:, -1])
    cells, total = cells[order], total[order]
    unit = weight_of_one(weights if whole_counts(total) is None else total)
    copies = np.maximum(np.rint(total / unit), 1.0).astype(np.intp)
    source = np.repeat(np.arange(len(cells)), copies)
    fold = assign_folds(cells[source, -1], folds)
    parts, count = np.unique(np.stack([source, fold]), axis=1, return_counts=True)
    row, fold = parts
    weight = total[row] * (count / copies[row])
    return structure_search.EncodedRows(cells[row, :-1], cells[row, -1].astype(np.intp), weight, fold)


# -- Tree-augmented naive Bayes over data frames with mixed types and missing values -------------------------

TREE = "tree"
"""Name of the family over the columns of the tree."""


class Edge(NamedTuple):
    """An edge of the tree: a column that depends on another."""

    parent: str
    child: str
    information: float
    """Mutual information of the two columns in nats, given the class; within one class if each has its own tree."""
    label: Any = None
    """The class whose tree it belongs to; None if all classes share one."""


def sorted_edges(names: Sequence[str], found: Iterable[tuple[Any, ...]]) -> list[Edge]:
    """Edges from positions of parents and children, information and label; the most informative first."""
    edges = [Edge(names[parent], names[child], *rest) for parent, child, *rest in found]
    return sorted(edges, key=lambda edge: -edge.information)


@estimator
class TreeAugmentedNB(JointPreset):
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
        which is the tree of the paper; with the first two the result may be a forest. A search by another ``structure``
        tries all by default.
    structure : {"information", "conditional_likelihood", "soft_error"} or score, default="information"
        What the tree is chosen by: mutual information given the class; or the loss of the posterior, by which edges are added
        to naive Bayes one at a time, as long as the loss falls on held-out folds of the training rows: -log p(class | x)
        (`ConditionalLikelihood`) or 1 - p(class | x) (`SoftError`; docs/trees.md). The model is then no sum over rows
        and cannot be merged, extended or made to forget rows.
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
    structure: str | StructureScore = "information"

    _family_name: ClassVar[str] = TREE

    def _refuse_parts_of_rows(self) -> None:
        super()._refuse_parts_of_rows()
        refuse_search(self.structure)

    def _joint_family(self) -> Tree:
        edges = edges_of(self.edges, self.structure)
        search: Search = PerClass(edges) if self.per_class else OneTree(edges)
        return Tree(search=search, **self._family_parameters())

    def _local_family(self) -> KDependence:
        if self.per_class:
            raise ValueError(
                f"per_class=True needs structure='information', got {self.structure!r}: one tree is searched"
            )
        edges = edges_of(self.edges, self.structure)
        return KDependence(max_parents=1, edges=edges, **self._family_parameters())

    def _with_structure(self, family: Tree, given: CandidateColumns, class_prior: ClassPrior) -> Tree:
        found = searched(self.structure, self._local_family, structure_search.tree_arcs, given, class_prior)
        if found is None:
            return family
        return replace(family, search=GivenTree(tuple(next(iter(parents), -1) for parents in found)))

    def _joint_columns(self, given: CandidateColumns) -> list[int] | None:
        return tree_columns(given, self.max_cells)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        family = self._learned_family(Tree)
        if family is None:
            return []
        labels, found = [None, *self.classes_.tolist()], family.edges(self.data_statistics_[TREE])
        labeled = ((parent, child, nats, labels[c + 1]) for parent, child, nats, c in found)
        return sorted_edges(family.layout.columns, labeled)
