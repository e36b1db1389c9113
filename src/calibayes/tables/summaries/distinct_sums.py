"""Rows and weights of the distinct values of a column, which can be added."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_finite
from calibayes.tables.distinct_verification import verify_distinct

MOST_LEVELS = 2**20
"""Largest number of distinct values, other than numbers, of a column whose rows are not in memory."""


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


def distinct_sums(
    values: Array, positions: Array, labels: Array, weight: Array, columns: int
) -> DistinctSums:
    """Sums of rows whose values are at ``positions`` among the distinct ones; negative labels are in the last column."""
    rows = np.bincount(positions, minlength=len(values))
    cells = positions * columns + labels % columns
    weights = np.bincount(cells, weight, len(values) * columns).reshape(-1, columns)
    return DistinctSums(values, rows, weights)


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
