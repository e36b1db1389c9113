"""Sums of columns over a block of rows, which add up to the summaries of a table.

The passes over a table whose rows are not in memory: `column_sums` of every block under `first_plan`, added up; then, as
long as `next_plan` of the totals is not None, again for the columns of that plan, whose cells replace the earlier ones
(`totals_after`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_finite
from calibayes.kernels import cut_points, level_counts
from calibayes.kernels.cut_points import DistinctSample, distinct_sample
from calibayes.kernels.level_counts import LabeledRows
from calibayes.kernels.moments import known_moments, power_sums
from calibayes.tables import summary as summaries
from calibayes.tables.conversion import verify_distinct
from calibayes.tables.memory_summary import PASSES, center_rows, column_centers, refined
from calibayes.tables.table import (
    LARGEST,
    Table,
    distinct_values,
    holds_booleans,
    numeric_matrix,
    refuse_other_kind,
    sorted_codes,
)

# -- Rows and weights of the distinct values of a column, which can be added ---------------------------------

MOST_LEVELS = 2**20
"""Largest number of distinct values, other than numbers, of a column whose rows are not in memory."""
CELLS_PER_ROW = 4
"""Integers are counted in an array with at most so many cells for each row."""


@dataclass(frozen=True)
class DistinctSums:
    """The distinct values of a column, ascending, with rows (cells,) and weights by class (cells, k + 1) of each."""

    values: Array
    rows: Array
    weights: Array

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify_distinct("values", self.values)
        rows = require_array("rows", self.rows, (len(self.values),), "i")
        require(bool((rows > 0).all()), "rows of distinct values must be positive")
        require_finite("weights", self.weights, (len(self.values), None), least=0.0)

    @property
    def known_rows(self) -> int:
        """Number of rows whose value is known."""
        return int(self.rows.sum())

    def plus(self, other: DistinctSums, name: str) -> DistinctSums:
        """The sum of two columns. Raises ValueError if the values of column ``name`` cannot be compared, or are too many."""
        values, ours, theirs = _united(self.values, other.values, name)
        rows = np.zeros(len(values), dtype=np.int64)
        weights = np.zeros((len(values), self.weights.shape[1]))
        for positions, part in ((ours, self), (theirs, other)):
            rows[positions] += part.rows
            weights[positions] += part.weights
        if len(values) > MOST_LEVELS and values.dtype.kind not in "fiu":
            raise ValueError(
                f"column {name!r} has more than {MOST_LEVELS} distinct values, too many to be counted while rows are read: "
                "leave it out, or pool rare values before"
            )
        return DistinctSums(values, rows, weights)


def distinct_sums(values: Array, positions: Array, rows: LabeledRows) -> DistinctSums:
    """Sums of rows whose values are at ``positions`` (n,) among the distinct ones, or after them if missing."""
    totals = level_counts.code_totals(positions, 0, len(values) + 1, rows)
    return DistinctSums(values, totals.rows[:-1], totals.weights[:-1])


def number_sums(numbers: Array, rows: LabeledRows, most: int) -> DistinctSums | None:
    """Sums of the distinct numbers of a column (n,), NaN where missing; None if there are more than ``most``."""
    if numbers.dtype.kind in "iu" and (sums := _integer_sums(numbers, rows, most)) is not None:
        return sums
    missing = np.isnan(numbers)
    if not missing.any():
        found = cut_points.distinct_positions(numbers, most)
        return None if found is None else distinct_sums(*found, rows)
    known = ~missing
    found = cut_points.distinct_positions(numbers[known], most)
    if found is None:
        return None
    positions = np.full(len(numbers), len(found[0]))
    positions[known] = found[1]
    return distinct_sums(found[0], positions, rows)


def _integer_sums(numbers: Array, rows: LabeledRows, most: int) -> DistinctSums | None:
    """Sums of integers, by counting; None if they are too far from each other, or from zero to be float64 numbers."""
    if not len(numbers):
        return None
    first, last = int(numbers.min()), int(numbers.max())
    size = last - first + 1
    if size > most or size * rows.columns > CELLS_PER_ROW * len(numbers) or max(-first, last) > 2**53:
        return None
    totals = level_counts.code_totals(numbers, first, size, rows)
    present = np.flatnonzero(totals.rows)
    return DistinctSums((first + present).astype(np.float64), totals.rows[present], totals.weights[present])


def _united(left: Array, right: Array, name: str) -> tuple[Array, Array, Array]:
    """Distinct values of two arrays, and the positions of the values of each."""
    if left.dtype.kind != "O" and right.dtype.kind != "O":
        values = np.union1d(left, right)
        return values, np.searchsorted(values, left), np.searchsorted(values, right)
    both = left.tolist() + right.tolist()  # two ascending sequences, which are sorted by merging
    try:
        values, codes = sorted_codes(both)
    except TypeError as error:
        types = sorted({type(value).__name__ for value in both})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(types)}") from error
    return values, codes[: len(left)], codes[len(left) :]


# -- Rows and weights of cells of the ordered bits of a column's numbers, which can be added -----------------


NO_SAMPLE = DistinctSample(np.zeros(0), 0)


@dataclass(frozen=True)
class CellSums:
    """The cells of a tree that have rows, and some of the distinct numbers.

    Missing numbers (NaN) are in no cell, weights of rows without a label (-1) in the last column.
    """

    cells: level_counts.CellTotals
    sampled: DistinctSample = NO_SAMPLE
    """Some of the distinct numbers; none in the passes after the first, which has them all the same."""

    @property
    def weights(self) -> Array:
        """Weights by class, (cells, k + 1)."""
        return self.cells.weights

    @property
    def known_rows(self) -> int:
        """Number of rows whose value is known."""
        return int(self.cells.totals[:, 0].sum())

    def __add__(self, other: CellSums) -> CellSums:
        cells = level_counts.united_cells(self.cells, other.cells)
        return CellSums(cells, _united_cells(self.sampled, other.sampled))


Counts: TypeAlias = DistinctSums | CellSums


def in_root_cells(distinct: DistinctSums) -> CellSums:
    """The sums of distinct numbers in the cells of the root."""
    if not len(distinct.values):
        empty = np.zeros(0, dtype=np.int64)
        counts = cut_points.CellCounts(empty, empty, *np.zeros((3, 0)))
        return CellSums(level_counts.cells_with(counts, distinct.weights))
    cells = cut_points.cell_numbers(distinct.values, cut_points.root_tree())
    entries, first = np.unique(cells, return_index=True)
    last = np.append(first[1:], len(distinct.values)) - 1
    rows = np.add.reduceat(distinct.rows, first)
    weights = np.add.reduceat(distinct.weights, first, axis=0)
    low, high = distinct.values[first], distinct.values[last]
    counts = cut_points.CellCounts(entries, rows, low, high, weights.sum(axis=1))
    sampled = distinct_sample(distinct.values, summaries.MOST_SAMPLED)
    return CellSums(level_counts.cells_with(counts, weights), sampled)


def _united_cells(left: DistinctSample, right: DistinctSample) -> DistinctSample:
    """The sample of the distinct numbers of both."""
    if not len(left.values) and left.zeros <= right.zeros:
        return right
    together = np.concatenate([left.values, right.values])
    return distinct_sample(together, summaries.MOST_SAMPLED, max(left.zeros, right.zeros))


# -- Which columns have too many distinct numbers, as far as a process has seen ------------------------------

_seen: dict[str, dict[int, Array | int]] = {}
"""Key of a survey -> position of a column -> its distinct numbers so far; if they are too many, the most zeros with which
the hashes of a sample of them begin."""
MOST_SURVEYS = 8
"""Surveys that are remembered in a process."""


@dataclass(frozen=True)
class SeenNumbers:
    """The distinct numbers of the blocks that a process has counted in one survey of a table.

    It makes counting faster, and changes no count: as soon as the blocks of this process show that a column has too many
    distinct numbers, those of further blocks need not be found.
    """

    key: str = field(default_factory=lambda: f"{np.random.SeedSequence().entropy:x}")

    def exceeds(self, j: int) -> bool:
        """Whether column j is known to have too many distinct numbers."""
        return isinstance(self._columns().get(j), int)

    def add(self, j: int, numbers: Array | None) -> None:
        """Add the distinct numbers of a block; None if they are too many."""
        before = self._columns().get(j, np.zeros(0))
        if isinstance(before, int):
            return
        if numbers is None:
            self._columns()[j] = 0
        elif len(before) + len(numbers) > summaries.MOST_DISTINCT:
            together = np.union1d(before, numbers)
            self._columns()[j] = together if len(together) <= summaries.MOST_DISTINCT else 0
        elif len(numbers) > len(before):
            self._columns()[j] = numbers

    def sample(self, j: int, numbers: Array) -> DistinctSample:
        """A sample of the distinct numbers of a block of column j, which has too many of them.

        Hashes begin with at least as many zeros as those of earlier blocks: a sample of all rows needs no fewer.
        """
        before = self._columns().get(j)
        zeros = before if isinstance(before, int) else 0
        sampled = distinct_sample(numbers, summaries.MOST_SAMPLED, zeros)
        self._columns()[j] = max(zeros, sampled.zeros)
        return sampled

    def _columns(self) -> dict[int, Array | int]:
        if self.key not in _seen:
            while len(_seen) >= MOST_SURVEYS:
                _seen.pop(next(iter(_seen)))
        return _seen.setdefault(self.key, {})


# -- Number, mean and sum of squared differences of numbers, which can be added (Chan, Golub and LeVeque 1983)

PIVOT_STEP = 64
"""One in so many rows is used to find a number near the mean."""


@dataclass(frozen=True)
class MomentSums:
    """Moments of the known numbers of a column, by the weights of the rows."""

    weight: float
    """Total weight of the numbers."""
    pivot: float
    """A number near the mean."""
    offset: float
    """The mean less the pivot: apart, since the difference of two means may be much smaller than their rounding."""
    squares: float
    """Sum of squared differences from the mean."""

    def plus(self, other: MomentSums) -> MomentSums:
        """The moments of the numbers of both."""
        if not self.weight or not other.weight:
            return self if self.weight else other
        weight = self.weight + other.weight
        shift, share = (other.pivot - self.pivot) + (other.offset - self.offset), other.weight / weight
        squares = self.squares + other.squares + shift * shift * self.weight * share
        return MomentSums(weight, self.pivot, self.offset + shift * share, squares)

    @property
    def mean(self) -> float:
        """Mean of the numbers; 0 without any."""
        return self.pivot + self.offset

    @property
    def variance(self) -> float:
        """Variance of the numbers; 0 without any."""
        return self.squares / self.weight if self.weight else 0.0


def pivot_of(numbers: Array) -> float:
    """The mean of every 64th of the numbers (n,) that are known, 0 without any.

    The squared difference from the mean of all is then at most 63 variances, if as many of these rows are known as of
    the others: sums around it lose at most six bits.
    """
    some = numbers[::PIVOT_STEP].astype(np.float64)
    some = some[~np.isnan(some)]
    with np.errstate(invalid="ignore", over="ignore"):
        return float(some.mean()) if len(some) else 0.0


def repeated_moments(values: Array, weights: Array) -> MomentSums:
    """Moments of numbers, (v,), each with the total weight of its rows, (v,)."""
    weight = float(weights.sum())
    pivot = float(values @ weights) / (weight or 1.0)
    differences = values - pivot
    return _around(weight, pivot, float(differences @ weights), float((differences * differences) @ weights))


def _around(weight: float, pivot: float, total: float, squares: float) -> MomentSums:
    """Moments from the weighted sums of differences from a pivot and of their squares."""
    if not weight:
        return MomentSums(0.0, 0.0, 0.0, 0.0)
    offset = total / weight
    return MomentSums(weight, pivot, offset, max(squares - weight * offset * offset, 0.0))


# -- Sums of columns over a block of rows ---------------------------------------------------------------------


@dataclass(frozen=True)
class SurveyPlan:
    """What a pass over the rows counts."""

    trees: Mapping[int, cut_points.CellTree | None]
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
    counts: Counts
    missing_rows: int
    missing_weight: float
    moments: MomentSums | None
    """None for a column that does not hold numbers."""

    def __add__(self, other: ColumnSums) -> ColumnSums:
        moments = None if self.moments is None or other.moments is None else self.moments.plus(other.moments)
        counts = _added(self.counts, other.counts, self.name)
        missing = self.missing_rows + other.missing_rows, self.missing_weight + other.missing_weight
        return ColumnSums(self.name, counts, *missing, moments)

    def summary(self) -> summaries.ColumnSummary:
        """The summary of the column, if these are the sums of all rows."""
        counts, weights = self.counts, self.counts.weights
        if isinstance(counts, DistinctSums):
            return summaries.values_summary(counts.values, counts.rows, weights.sum(axis=1), lambda: weights)
        return summaries.cells_summary(counts.cells.counts, counts.sampled, lambda: weights)


def first_plan(columns: Sequence[int], k: int, weight: Array) -> SurveyPlan:
    """The plan of the first pass, over the columns at these positions; ``weight`` (n,) are the weights of all rows."""
    return SurveyPlan(dict.fromkeys(columns), k, summaries.rounding_unit(weight))


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
            further = refined(cut_points.root_tree() if tree is None else tree, counts.cells.counts)
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
    rows = LabeledRows(labels.astype(np.int32), summaries.rounded(weight, plan.unit), plan.k + 1)
    total, sums = float(rows.weight.sum()), {}
    for j, tree in plan.trees.items():
        if tree is None:
            sums[str(j)] = _first_sums(table, j, rows, total, plan)
        else:
            counts = CellSums(level_counts.cell_totals(table.column(j), tree, rows))
            sums[str(j)] = ColumnSums(table.names[j], counts, 0, 0.0, None)
    return sums


def _first_sums(table: Table, j: int, rows: LabeledRows, total: float, plan: SurveyPlan) -> ColumnSums:
    """Sums of a column in the first pass; ``total`` is the weight of all rows of the block."""
    counts: Counts
    if table.is_numeric(j):
        counts, moments = _number_sums(table, j, rows, plan)
    else:
        counts, moments = distinct_sums(*distinct_values(table, j), rows), None
    known_weight = float(counts.weights.sum())  # sums of weights are exact
    return ColumnSums(table.names[j], counts, table.n - counts.known_rows, total - known_weight, moments)


def _number_sums(table: Table, j: int, rows: LabeledRows, plan: SurveyPlan) -> tuple[Counts, MomentSums]:
    """Counts of distinct numbers if they are not too many, else of cells; and moments."""
    numbers = table.column(j)
    counts = None if plan.seen.exceeds(j) else number_sums(numbers, rows, summaries.MOST_DISTINCT)
    plan.seen.add(j, None if counts is None else counts.values)
    if counts is not None:
        _refuse_large(table, j, counts.values)
        return counts, repeated_moments(counts.values, counts.weights.sum(axis=1))
    pivot = pivot_of(numbers)
    known = known_moments(numbers, pivot)
    _refuse_large(table, j, np.array([known.low, known.high]))
    totals = level_counts.cell_totals(numbers, cut_points.root_tree(), rows)
    cells = CellSums(totals, plan.seen.sample(j, numbers))
    if (rows.weight == rows.weight[:1]).all():
        unit = float(rows.weight[:1].sum())
        return cells, _around(cells.known_rows * unit, pivot, known.total * unit, known.squares * unit)
    sums = power_sums(numbers[:, None], np.array([pivot]), rows.weight[:, None])
    weight, total, squares = (float(part[0, 0]) for part in sums)
    return cells, _around(weight, pivot, total, squares)


def _refuse_large(table: Table, j: int, ascending: Array) -> None:
    """Raise ValueError if the first or last of ascending numbers of column j is too large."""
    if len(ascending) and (ascending[0] < -LARGEST or ascending[-1] > LARGEST):
        numeric_matrix(table, [j])  # raises ValueError


def _refined(before: ColumnSums | None, sums: ColumnSums) -> ColumnSums:
    """The sums of a column in the first pass with the cells of a later one."""
    if before is None or not isinstance(before.counts, CellSums) or not isinstance(sums.counts, CellSums):
        return sums
    return replace(before, counts=replace(sums.counts, sampled=before.counts.sampled))


def _added(left: Counts, right: Counts, name: str) -> Counts:
    """The sum of two counts: of distinct values if there are not too many, else of cells."""
    if isinstance(left, DistinctSums) and isinstance(right, DistinctSums):
        both = left.plus(right, name)
        is_exact = len(both.values) <= summaries.MOST_DISTINCT or both.values.dtype.kind not in "fiu"
        return both if is_exact else in_root_cells(both)
    in_cells = [part if isinstance(part, CellSums) else in_root_cells(part) for part in (left, right)]
    return in_cells[0] + in_cells[1]


# -- The summary of a table whose rows are not in memory -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Streamed(summaries.TableSummary):
    """The summary of a table from sums over its blocks; ``head`` is the table of the sample."""

    drawn: summaries.Sample
    """The sample of the rows."""
    totals: Mapping[str, ColumnSums]
    """Position of a column, as a string -> its sums over all rows."""
    all_blocks: Callable[[Any, Any], Any]
    """Function that returns `blocks`."""

    @property
    def sample(self) -> summaries.Sample:
        return self.drawn

    def column(self, j: int) -> summaries.ColumnSummary:
        return self.cached(("column", j), self._sums(j).summary)

    def missing_rows(self, j: int) -> int:
        return self._sums(j).missing_rows

    def missing_weight(self, j: int) -> float:
        return self._sums(j).missing_weight

    def moments(self, indices: Sequence[int]) -> summaries.Moments:
        refuse_other_kind(self.head, indices, "fiu")
        self.refuse_all_missing(indices)
        sums = [self._sums(j).moments for j in indices]
        means = np.array([0.0 if part is None else part.mean for part in sums])
        sample = self.sample.table
        few = sample.rows(np.arange(sample.n)[center_rows(sample.n)])
        center = column_centers(numeric_matrix(few, indices), lambda places: means[places])
        variances = np.array([0.0 if part is None else part.variance for part in sums])
        is_incomplete = [self.missing_rows(j) > 0 for j in indices]
        center[is_incomplete] = summaries.start_points(means, variances)[is_incomplete]
        return summaries.Moments(center, variances)

    def check_numbers(self, indices: Sequence[int]) -> None:
        refuse_other_kind(self.head, [j for j in indices if not holds_booleans(self.contents(j))], "fiub")
        self.refuse_all_missing(indices)

    def blocks(self, encoder: Any, counts: Any) -> Any:
        return self.all_blocks(encoder, counts)

    def _sums(self, j: int) -> ColumnSums:
        return self.totals[str(j)]
