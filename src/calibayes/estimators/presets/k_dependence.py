"""k-dependence Bayes over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from calibayes.encoders.bins import PairBins
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.interface.input import TrainingRows
from calibayes.estimators.interface.parameters import estimator, whole_number
from calibayes.estimators.presets.joint_columns import checked_edges
from calibayes.estimators.presets.joint_preset import JointPreset
from calibayes.estimators.presets.tree import Edge
from calibayes.estimators.presets.tree_columns import fits, most_relevant_columns, tree_columns
from calibayes.families import KDependence, SignificantEdges
from calibayes.families.tree.structures import LARGEST_TABLES, Edges

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

    family_name: ClassVar[str] = NETWORK

    def default_bins(self) -> PairBins:
        return PairBins() if self.max_parents == 1 else PairBins(few=16, parts=8)

    def joint_family(self) -> KDependence:
        return KDependence(
            max_parents=whole_number("max_parents", self.max_parents, 1),
            edges=checked_edges(self.edges, SignificantEdges()),
            **self.family_parameters(),
        )

    def joint_columns(
        self, positions: Sequence[int], encoder: Encoder, rows: TrainingRows, k: int
    ) -> list[int] | None:
        most, max_cells = MOST_IN_NETWORK[0], self.max_cells
        if self.max_parents == 1:
            return tree_columns(positions, encoder, rows, k, max_cells)
        if len(positions) <= most:
            return None

        def network_fits(levels: Sequence[int]) -> bool:
            return len(levels) <= most and fits(levels, k, max_cells, LARGEST_TABLES)

        return most_relevant_columns(positions, encoder, rows, k, MOST_IN_NETWORK, network_fits)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        family = self.learned_family(KDependence)
        if family is None:
            return []
        names = family.layout.columns
        edges = [
            Edge(names[parent], names[child], nats)
            for parent, child, nats in family.edges_with_information(self.data_statistics_[NETWORK])
        ]
        return sorted(edges, key=lambda edge: -edge.information)
