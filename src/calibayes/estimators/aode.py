"""Averaged one-dependence estimators (AODE) over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from calibayes.encoders.bins import PairBins
from calibayes.estimators import structure_search, tree_augmented
from calibayes.estimators.tree_augmented import (
    CandidateColumns,
    Edge,
    JointPreset,
    fits,
    most_relevant_columns,
)
from calibayes.families import AveragedOneDependence, ClassPrior, KDependence
from calibayes.families.tree_structures import LARGEST_TABLES, Edges, StructureScore
from calibayes.model.parameters import estimator, number, whole_number
from calibayes.rules import rule_named

STARS = "stars"
"""Name of the family over the columns that are averaged over."""
MOST_AVERAGED = (128, 64, 32, 16)
"""Numbers of columns that are tried in turn, if all columns are too many."""
LARGEST_PAIRS = 2**24
"""Most cells in the tables of all pairs and classes: 128 megabytes."""


@estimator
class AODE(JointPreset):
    """Averaged one-dependence estimators (AODE): all columns depend on one, the super-parent, each column in turn.

    p(x | class) is the mean over the super-parents (Webb, Boughton and Wang 2005). Under "ml" and "map" each super-parent
    counts all rows, as in the paper, in one pass; nothing is searched for. Under rules with steps the weight of a row is
    divided among the super-parents by their posterior, as among the components of a mixture.
    Numbers are binned, the rest is categorical. Time grows with the square of the number of columns: only the 128 columns
    that depend on the class most (fewer, if the tables of their pairs would need more than 128 megabytes) take part; the
    others are independent of all columns given the class. With more columns than rows log probabilities have a temperature,
    as in `NaiveBayes`.

    Parameters
    ----------
    least_rows : float, default=2
        Rows per level that a column must have on average to be a super-parent; if none has as many, those with the most
        are. It keeps columns out whose levels hardly repeat.
    back_off : float, default=5
        Pseudo-rows that smooth a column's distribution, under each level of the super-parent, towards its distribution in
        the class.
    bandwidth : {"bins", "normal", "silverman", "sheather_jones"}, 0 or rule of `calibayes.families`, optional
        Width of the kernel that smooths the tables along binned numbers, as in `TreeAugmentedNB`.
    max_cells : int, default=10000
        Two columns whose joint table has more cells than this do not depend on each other.
    discretize, n_bins
        How numbers are binned; see `NaiveBayes`. By default into at most 32 bins (`PairBins`), and ``bandwidth`` smooths
        over the bins.
    kinds : mapping, optional
        Column, by name or position, -> "binned" or "categorical" for columns that are to have another kind than by
        default, or another kind of `GenerativeClassifier`, which is then independent of these columns given the class.
    rare_levels, max_levels, prior, priors
        See `NaiveBayes`.
    alpha : float, default=1
        Pseudo-count per level, divided by the number of levels of the super-parent.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Attributes
    ----------
    super_parents_ : list of str
        The columns that are averaged over.
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import AODE
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = AODE(rule="ml").fit(penguins.data, penguins.target)
    >>> bool(model.score(penguins.data, penguins.target) > 0.97)
    True
    """

    least_rows: float = 2.0

    _family_name: ClassVar[str] = STARS

    def _default_bins(self) -> PairBins:
        return PairBins(few=32, parts=16, budget=2**20)

    def _joint_family(self) -> AveragedOneDependence:
        return AveragedOneDependence(
            divides_rows=not rule_named(self.rule).is_closed_form,
            least_rows=number("least_rows", self.least_rows, 0.0, 1e300),
            **self._family_parameters(),
        )

    def _joint_columns(self, given: CandidateColumns) -> list[int] | None:
        most, max_cells, d = MOST_AVERAGED[0], int(self.max_cells), len(given.positions)
        if d <= most and d**2 * max_cells * given.k <= 2 * LARGEST_PAIRS:
            return None

        def pairs_fit(levels: Sequence[int]) -> bool:
            return len(levels) <= most and fits(levels, given.k, max_cells, LARGEST_PAIRS)

        return most_relevant_columns(given, MOST_AVERAGED, pairs_fit)

    @property
    def super_parents_(self) -> list[str]:
        """The columns that are averaged over."""
        family = self._learned_family(AveragedOneDependence)
        return [] if family is None else [family.layout.columns[j] for j in family.super_parents or ()]


# -- k-dependence Bayes over data frames with mixed types and missing values ---------------------------------

NETWORK = "network"
"""Name of the family over the columns of the network."""
MOST_IN_NETWORK = (64, 32, 16)
"""Numbers of columns of a network of triples that are tried in turn, if all columns are too many."""


@estimator
class KDependenceBayes(JointPreset):
    """k-dependence Bayes (KDB): each column may depend on one or two others. Numbers are binned, the rest is categorical.

    The columns are taken by decreasing mutual information with the class; the parents of each are those of the columns
    before it with the largest mutual information given the class (Sahami 1996), the second given the first. A second
    parent is itself joined to the first one, so that missing values can be summed out exactly. All is found in one pass
    over the rows. Of more than 64 columns only the 64 that depend on the class most are part of the network; the others are
    independent of all columns given the class. Where the tables of all triples of columns would need more than 128
    megabytes, the largest are left out: these columns have one parent. With more columns than rows log probabilities have a
    temperature, as in `NaiveBayes`.

    Parameters
    ----------
    max_parents : {1, 2}, default=2
        Largest number of other columns that a column depends on.
    edges : Edges, optional
        Which edges are kept: `SignificantEdges` by default, `InformativeEdges` above a number of nats, or `AllEdges`. A
        search by another ``structure`` tries all by default.
    structure : {"information", "conditional_likelihood", "soft_error"} or score, default="information"
        What the parents are chosen by: mutual information given the class; or the loss of the posterior, by which parents are added
        to naive Bayes one at a time, as long as the loss falls on held-out folds of the training rows: -log p(class | x)
        (`ConditionalLikelihood`) or 1 - p(class | x) (`SoftError`; docs/trees.md). The model is then no sum over rows
        and cannot be merged, extended or made to forget rows.
    back_off : float, default=5
        Pseudo-rows that smooth a column's distribution, under each combination of levels of its parents, towards that with
        one parent fewer.
    bandwidth : {"bins", "normal", "silverman", "sheather_jones"}, 0 or rule of `calibayes.families`, optional
        Width of the kernel that smooths the tables along binned numbers, as in `TreeAugmentedNB`.
    max_cells : int, default=10000
        Columns whose joint table has more cells than this are not joined.
    discretize, n_bins
        How numbers are binned; see `NaiveBayes`. By default into at most 16 bins, or finely if ``max_parents`` is 1
        (`PairBins`), and ``bandwidth`` smooths over the bins.
    kinds : mapping, optional
        Column, by name or position, -> "binned" or "categorical" for columns that are to have another kind than by
        default, or another kind of `GenerativeClassifier`, which is then independent of the network given the class.
    rare_levels, max_levels, prior, priors
        See `NaiveBayes`.
    alpha : float, default=1
        Pseudo-count per level, divided by the number of combinations of levels of the column's parents.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Attributes
    ----------
    edges_ : list of Edge
        The edges, the most informative first; the information of a second parent is given the first.
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import KDependenceBayes
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = KDependenceBayes().fit(penguins.data, penguins.target)
    >>> bool(model.score(penguins.data, penguins.target) > 0.97)
    True
    """

    max_parents: int = 2
    edges: Edges | None = None
    structure: str | StructureScore = "information"

    _family_name: ClassVar[str] = NETWORK

    def _refuse_parts_of_rows(self) -> None:
        super()._refuse_parts_of_rows()
        tree_augmented.refuse_search(self.structure)

    def _default_bins(self) -> PairBins:
        return PairBins() if self.max_parents == 1 else PairBins(few=16, parts=8)

    def _joint_family(self) -> KDependence:
        return KDependence(
            max_parents=whole_number("max_parents", self.max_parents, 1),
            edges=tree_augmented.edges_of(self.edges, self.structure),
            **self._family_parameters(),
        )

    def _with_structure(
        self, family: KDependence, given: CandidateColumns, class_prior: ClassPrior
    ) -> KDependence:
        arcs = structure_search.ordered_arcs
        found = tree_augmented.searched(self.structure, self._joint_family, arcs, given, class_prior)
        return family if found is None else replace(family, given=found)

    def _joint_columns(self, given: CandidateColumns) -> list[int] | None:
        most, max_cells = MOST_IN_NETWORK[0], self.max_cells
        if self.max_parents == 1:
            return tree_augmented.tree_columns(given, max_cells)
        if len(given.positions) <= most:
            return None

        def network_fits(levels: Sequence[int]) -> bool:
            return len(levels) <= most and fits(levels, given.k, max_cells, LARGEST_TABLES)

        return most_relevant_columns(given, MOST_IN_NETWORK, network_fits)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        family = self._learned_family(KDependence)
        if family is None:
            return []
        found = family.edges_with_information(self.data_statistics_[NETWORK])
        return tree_augmented.sorted_edges(family.layout.columns, found)
