"""Sums of columns over a block of rows, which add up to the summaries of a table.

The passes over a table whose rows are not in memory: `column_sums` of every block under `first_plan`, added up; then, as
long as `next_plan` of the totals is not None, again for the columns of that plan, whose cells replace the earlier ones
(`totals_after`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.column_totals import LabeledRows
from calibayes.kernels.levels.ordered_cells import CellTree, root_tree
from calibayes.kernels.numbers.known_moments import known_moments
from calibayes.tables.distinct import distinct_values
from calibayes.tables.summaries import column
from calibayes.tables.summaries.cell_sums import CellSums, cell_sums, in_root_cells
from calibayes.tables.summaries.cells import PASSES, refined
from calibayes.tables.summaries.column import ColumnSummary, cells_summary, values_summary
from calibayes.tables.summaries.distinct_sums import DistinctSums, distinct_sums, number_sums
from calibayes.tables.summaries.exceeding import SeenNumbers
from calibayes.tables.summaries.moment_sums import MomentSums, moment_sums, pivot_of, repeated_moments
from calibayes.tables.summaries.weights import rounded, rounding_unit
from calibayes.tables.table import LARGEST, Table, numeric_matrix


@dataclass(frozen=True)
class SurveyPlan:
    """What a pass over the rows counts."""

    trees: Mapping[int, CellTree | None]
    """Position of a column -> the cells its numbers are counted in; None: the distinct values, if there are not too many."""
    k: int
    """Number of classes; 0 if weights are not to be counted by class."""
    unit: float
    """The power of two that weights are rounded to multiples of, so that their sums are exact (see `summable`)."""
    number: int = 1
    """Number of the pass, from 1 on."""
    seen: SeenNumbers = field(default_factory=SeenNumbers)
    """The columns that are known, in this process, to have too many distinct numbers."""


@dataclass(frozen=True)
class ColumnSums:
    """Sums of a column over some rows. They can be added in any order."""

    name: str
    counts: DistinctSums | CellSums
    missing_rows: int
    missing_weight: float
    moments: MomentSums | None
    """None for a column that does not hold numbers."""

    def __add__(self, other: ColumnSums) -> ColumnSums:
        moments = None if self.moments is None or other.moments is None else self.moments.plus(other.moments)
        return ColumnSums(
            self.name,
            _added(self.counts, other.counts, self.name),
            self.missing_rows + other.missing_rows,
            self.missing_weight + other.missing_weight,
            moments,
        )

    @property
    def known_rows(self) -> int:
        """Number of rows whose value is known."""
        return self.counts.known_rows

    def summary(self) -> ColumnSummary:
        """The summary of the column, if these are the sums of all rows."""
        weights = self.counts.weights
        if isinstance(self.counts, DistinctSums):
            return values_summary(self.counts.values, self.counts.rows, weights.sum(axis=1), lambda: weights)
        return cells_summary(self.counts.counts, self.counts.sampled, lambda: weights)


def first_plan(columns: Sequence[int], k: int, weight: Array) -> SurveyPlan:
    """The plan of the first pass, over the columns at these positions; ``weight`` (n,) are the weights of all rows."""
    return SurveyPlan(dict.fromkeys(columns), k, rounding_unit(weight))


def next_plan(plan: SurveyPlan, totals: Mapping[str, ColumnSums]) -> SurveyPlan | None:
    """The plan of the pass after one with these totals, or None if there is nothing left to count.

    It counts the columns that have heavy cells of several distinct numbers; there are at most four passes.
    """
    if plan.number == PASSES:
        return None
    trees = {}
    for j, tree in plan.trees.items():
        counts = totals[str(j)].counts
        if isinstance(counts, CellSums):
            further = refined(root_tree() if tree is None else tree, counts.counts)
            if further is not None:
                trees[j] = further
    return SurveyPlan(trees, plan.k, plan.unit, plan.number + 1, plan.seen) if trees else None


def totals_after(totals: Mapping[str, ColumnSums], found: Mapping[str, ColumnSums]) -> dict[str, ColumnSums]:
    """The totals of all passes so far, from those of the passes before and those that the last one has found."""
    return {**totals, **{name: _refined(totals.get(name), sums) for name, sums in found.items()}}


def column_sums(table: Table, weight: Array, codes: Array | None, plan: SurveyPlan) -> dict[str, ColumnSums]:
    """Sums of the columns of a plan over the rows of a block, by the column's position as a string.

    ``weight`` (n,) and class codes (n,), -1 for a row without a label, are those of the block. The passes after the
    first count cells only.
    """
    labels = np.full(table.n, -1) if codes is None or not plan.k else codes
    rows = LabeledRows(labels.astype(np.int32), rounded(weight, plan.unit), plan.k + 1)
    total = float(rows.weight.sum())
    return {
        str(j): _first_sums(table, j, rows, total, plan)
        if tree is None
        else ColumnSums(table.names[j], cell_sums(table.column(j), tree, rows), 0, 0.0, None)
        for j, tree in plan.trees.items()
    }


def _first_sums(table: Table, j: int, rows: LabeledRows, total: float, plan: SurveyPlan) -> ColumnSums:
    """Sums of a column in the first pass; ``total`` is the weight of all rows of the block."""
    counts: DistinctSums | CellSums
    if table.is_numeric(j):
        counts, moments = _number_sums(table, j, rows, plan)
    else:
        counts, moments = distinct_sums(*distinct_values(table, j), rows), None
    known_weight = float(counts.weights.sum())  # sums of weights are exact
    return ColumnSums(table.names[j], counts, table.n - counts.known_rows, total - known_weight, moments)


def _number_sums(
    table: Table, j: int, rows: LabeledRows, plan: SurveyPlan
) -> tuple[DistinctSums | CellSums, MomentSums]:
    """Counts of distinct numbers if they are not too many, else of cells; and moments."""
    numbers = table.column(j)
    counts = None if plan.seen.exceeds(j) else number_sums(numbers, rows, column.MOST_DISTINCT)
    plan.seen.add(j, None if counts is None else counts.values)
    if counts is not None:
        _refuse_large(table, j, counts.values)
        return counts, repeated_moments(counts.values, counts.rows)
    pivot = pivot_of(numbers)
    moments = known_moments(numbers, pivot)
    _refuse_large(table, j, np.array([moments.low, moments.high]))
    return cell_sums(numbers, root_tree(), rows, plan.seen.sample(j, numbers)), moment_sums(moments, pivot)


def _refuse_large(table: Table, j: int, ascending: Array) -> None:
    """Raise ValueError if the first or last of ascending numbers of column j is too large."""
    if len(ascending) and (ascending[0] < -LARGEST or ascending[-1] > LARGEST):
        numeric_matrix(table, [j])  # raises ValueError


def _refined(before: ColumnSums | None, sums: ColumnSums) -> ColumnSums:
    """The sums of a column in the first pass with the cells of a later one."""
    if before is None or not isinstance(before.counts, CellSums) or not isinstance(sums.counts, CellSums):
        return sums
    return replace(before, counts=replace(sums.counts, sampled=before.counts.sampled))


def _added(
    left: DistinctSums | CellSums, right: DistinctSums | CellSums, name: str
) -> DistinctSums | CellSums:
    """The sum of two counts: of distinct values if there are not too many, else of cells."""
    if isinstance(left, DistinctSums) and isinstance(right, DistinctSums):
        both = left.plus(right, name)
        is_exact = len(both.values) <= column.MOST_DISTINCT or both.values.dtype.kind not in "fiu"
        return both if is_exact else in_root_cells(both)
    in_cells = [part if isinstance(part, CellSums) else in_root_cells(part) for part in (left, right)]
    return in_cells[0] + in_cells[1]
