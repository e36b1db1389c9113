"""Rows and weights of the distinct values of a column, which can be added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_finite
from calibayes.kernels.levels.column_totals import LabeledRows, code_totals
from calibayes.kernels.levels.ordered_cells import distinct_positions
from calibayes.tables.distinct_verification import verify_distinct

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
    totals = code_totals(positions, 0, len(values) + 1, rows)
    return DistinctSums(values, totals.rows[:-1], totals.weights[:-1])


def number_sums(numbers: Array, rows: LabeledRows, most: int) -> DistinctSums | None:
    """Sums of the distinct numbers of a column (n,), NaN where missing; None if there are more than ``most``."""
    if numbers.dtype.kind in "iu" and (sums := _integer_sums(numbers, rows, most)) is not None:
        return sums
    missing = np.isnan(numbers)
    if not missing.any():
        found = distinct_positions(numbers, most)
        return None if found is None else distinct_sums(*found, rows)
    known = ~missing
    found = distinct_positions(numbers[known], most)
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
    totals = code_totals(numbers, first, size, rows)
    present = np.flatnonzero(totals.rows)
    return DistinctSums((first + present).astype(np.float64), totals.rows[present], totals.weights[present])


def _united(left: Array, right: Array, name: str) -> tuple[Array, Array, Array]:
    """Distinct values of two arrays, and the positions of the values of each."""
    if left.dtype.kind != "O" and right.dtype.kind != "O":
        values = np.union1d(left, right)
        return values, np.searchsorted(values, left), np.searchsorted(values, right)
    try:  # two ascending sequences, which are sorted by merging
        united = sorted(dict.fromkeys(chain(left.tolist(), right.tolist())))
    except TypeError as error:
        types = sorted({type(value).__name__ for value in chain(left.tolist(), right.tolist())})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(types)}") from error
    place = {value: position for position, value in enumerate(united)}
    values = np.empty(len(united), dtype=object)
    values[:] = united
    ours, theirs = (
        np.array([place[value] for value in part.tolist()], dtype=np.intp) for part in (left, right)
    )
    return values, ours, theirs
