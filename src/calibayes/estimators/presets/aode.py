"""Averaged one-dependence estimators (AODE) over data frames with mixed types and missing values."""

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
    chosen_bins,
    joint_schema,
    joint_specifications,
    with_most_relevant,
)
from calibayes.estimators.presets.kinds import KindChoices
from calibayes.estimators.presets.naive_bayes import smoothing_of
from calibayes.estimators.presets.tabular import TabularNB
from calibayes.estimators.presets.tree_columns import fits, most_relevant_columns
from calibayes.families import AveragedOneDependence
from calibayes.families.kernel.bandwidths import Bandwidth, OverBins, bandwidth_named
from calibayes.rules import rule_named
from calibayes.tables.table import Table

STARS = "stars"
"""Name of the family over the columns that are averaged over."""
MOST_AVERAGED = (128, 64, 32, 16)
"""Numbers of columns that are tried in turn, if all columns are too many."""
LARGEST_PAIRS = 2**24
"""Most cells in the tables of all pairs and classes: 128 megabytes."""


@estimator
class AODE(TabularNB):
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
    back_off: float = 5.0
    bandwidth: str | float | Bandwidth | None = None
    max_cells: int = 10_000
    discretize: str | Encoder | None = None
    n_bins: int | None = None

    numeric_kind: ClassVar[str] = "binned"

    def choices(self) -> KindChoices:
        bins = chosen_bins(self.discretize, self.n_bins, PairBins(few=32, parts=16, budget=2**20))
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self.levels_encoder())

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        family = AveragedOneDependence(
            **smoothing_of(self.alpha, self.prior),
            divides_rows=not rule_named(self.rule).is_closed_form,
            least_rows=number("least_rows", self.least_rows, 0.0, 1e300),
            back_off=number("back_off", self.back_off, 0.0, 1e300),
            bandwidth=OverBins() if self.bandwidth is None else bandwidth_named(self.bandwidth),
            max_cells=whole_number("max_cells", self.max_cells, 1),
        )
        return joint_specifications(STARS, family, self.kinds, self.choices())

    def specify(self, rows: Rows, classes: Array) -> Specification:
        """The families, with super-parents among the most relevant columns only if all columns are too many."""
        specification, k = super().specify(rows, classes), len(classes)
        most_cells = specification.families[0][1].max_cells

        def star_columns(positions: Sequence[int], encoder: Encoder) -> list[int] | None:
            is_small = len(positions) ** 2 * most_cells * k <= 2 * LARGEST_PAIRS
            if is_small and len(positions) <= MOST_AVERAGED[0]:
                return None
            return most_relevant_columns(
                positions, encoder, rows, k, MOST_AVERAGED, lambda levels: pairs_fit(levels, k, most_cells)
            )

        return with_most_relevant(specification, rows.table, star_columns)

    def describe(self, binding: ColumnBinding, table: Table) -> Schema | None:
        return joint_schema(STARS, self.kinds, binding, table)

    @property
    def super_parents_(self) -> list[str]:
        """The columns that are averaged over."""
        fitted = fitted_of(self)
        fitted.learned()
        family = fitted.model.families.get(STARS)
        if not isinstance(family, AveragedOneDependence):
            return []
        return [family.layout.columns[j] for j in family.super_parents or ()]


def pairs_fit(levels: Sequence[int], k: int, max_cells: int) -> bool:
    """Whether the tables of all pairs of columns with these numbers of levels are few and small enough."""
    return len(levels) <= MOST_AVERAGED[0] and fits(levels, k, max_cells, LARGEST_PAIRS)
