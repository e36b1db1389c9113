"""Tree-augmented naive Bayes over data frames with mixed types and missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from calibayes.encoders.encoder import Encoder
from calibayes.estimators.interface.input import TrainingRows
from calibayes.estimators.interface.parameters import estimator
from calibayes.estimators.presets.joint_columns import checked_edges
from calibayes.estimators.presets.joint_preset import JointPreset
from calibayes.estimators.presets.tree_columns import tree_columns
from calibayes.families import OneTree, PerClass, SignificantEdges, Tree
from calibayes.families.tree.structures import Edges, Search

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

    family_name: ClassVar[str] = TREE

    def joint_family(self) -> Tree:
        edges = checked_edges(self.edges, SignificantEdges())
        search: Search = PerClass(edges) if self.per_class else OneTree(edges)
        return Tree(search=search, **self.family_parameters())

    def joint_columns(
        self, positions: Sequence[int], encoder: Encoder, rows: TrainingRows, k: int
    ) -> list[int] | None:
        return tree_columns(positions, encoder, rows, k, self.max_cells)

    @property
    def edges_(self) -> list[Edge]:
        """The edges, the most informative first."""
        family = self.learned_family(Tree)
        if family is None:
            return []
        names, labels = family.layout.columns, [None, *self.classes_.tolist()]
        edges = [
            Edge(names[parent], names[child], nats, labels[c + 1])
            for parent, child, nats, c in family.edges(self.data_statistics_[TREE])
        ]
        return sorted(edges, key=lambda edge: -edge.information)
