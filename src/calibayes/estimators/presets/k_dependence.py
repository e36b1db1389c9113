"""k-dependence Bayes over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from calibayes.core.protocols import Array
from calibayes.encoders.bins import PairBins
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.attributes import fitted_of
from calibayes.estimators.generative.binding import ColumnBinding
from calibayes.estimators.generative.recipe import Specification
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import estimator, number, whole_number
from calibayes.estimators.presets.joint_columns import (
    checked_edges,
    chosen_bins,
    joint_schema,
    joint_specifications,
    with_most_relevant,
)
from calibayes.estimators.presets.kinds import KindChoices
from calibayes.estimators.presets.naive_bayes import smoothing_of
from calibayes.estimators.presets.tabular import TabularNB
from calibayes.estimators.presets.tree import Edge
from calibayes.estimators.presets.tree_columns import fits, most_relevant_columns, tree_columns
from calibayes.families import KDependence, SignificantEdges
from calibayes.families.kernel.bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.families.tree.structures import LARGEST_TABLES, Edges
from calibayes.tables.table import Table

NETWORK = "network"
"""Name of the family over the columns of the network."""
MOST_IN_NETWORK = (64, 32, 16)
"""Numbers of columns of a network of triples that are tried in turn, if all columns are too many."""


@estimator
class KDependenceBayes(TabularNB):
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
        Which edges are kept: `SignificantEdges` by default, `InformativeEdges` above a number of nats, or `AllEdges`.
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
    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000
    discretize: str | Encoder | None = None
    n_bins: int | None = None

    numeric_kind: ClassVar[str] = "binned"

    def choices(self) -> KindChoices:
        fine = PairBins() if self.max_parents == 1 else PairBins(few=16, parts=8)
        bins = chosen_bins(self.discretize, self.n_bins, fine)
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self.levels_encoder())

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        family = KDependence(
            **smoothing_of(self.alpha, self.prior),
            max_parents=whole_number("max_parents", self.max_parents, 1),
            edges=checked_edges(self.edges, SignificantEdges()),
            back_off=number("back_off", self.back_off, 0.0, 1e300),
            bandwidth=OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            max_cells=whole_number("max_cells", self.max_cells, 1),
        )
        return joint_specifications(NETWORK, family, self.kinds, self.choices())

    def specify(self, rows: Rows, classes: Array) -> Specification:
        """The families, with the network over the most relevant columns only if all columns are too many."""
        specification, k = super().specify(rows, classes), len(classes)
        family: KDependence = specification.families[0][1]

        def network_columns(positions: Sequence[int], encoder: Encoder) -> list[int] | None:
            if family.max_parents == 1:
                return tree_columns(positions, encoder, rows, k, family.max_cells)
            if len(positions) <= MOST_IN_NETWORK[0]:
                return None
            return most_relevant_columns(
                positions,
                encoder,
                rows,
                k,
                MOST_IN_NETWORK,
                lambda levels: (
                    len(levels) <= MOST_IN_NETWORK[0] and fits(levels, k, family.max_cells, LARGEST_TABLES)
                ),
            )

        return with_most_relevant(specification, rows.table, network_columns)

    def describe(self, binding: ColumnBinding, table: Table) -> Schema | None:
        return joint_schema(NETWORK, self.kinds, binding, table)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        fitted = fitted_of(self)
        fitted.learned()
        family = fitted.model.families.get(NETWORK)
        if not isinstance(family, KDependence):
            return []
        names = family.layout.columns
        edges = [
            Edge(names[parent], names[child], nats)
            for parent, child, nats in family.edges_with_information(fitted.data_statistics[NETWORK])
        ]
        return sorted(edges, key=lambda edge: -edge.information)
