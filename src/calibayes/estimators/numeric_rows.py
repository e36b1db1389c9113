"""Tables of numbers without gaps, as estimators over densities read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import numbers
from calibayes.estimators.log_densities import Labeled
from calibayes.estimators.reading import Reading, Rows
from calibayes.estimators.targets import read_weight
from calibayes.tables.read import Table


class NumericRows(Reading):
    """Reads arrays and data frames of numbers; a missing cell is an error that names its column."""

    def _numbers(self, X: Any, *, reset: bool) -> Array:
        return _complete(self._read(X, reset=reset))

    def _labeled(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Labeled, Rows]:
        """Classes, rows that carry weight as numbers, and the same as they were read."""
        classes, rows = self._training_rows((X, y, sample_weight), None, unlabeled=False)
        mass = np.bincount(rows.codes, minlength=len(classes))
        if not mass.all():
            raise ValueError(f"class {classes[int(np.argmin(mass))]!r} has no row that carries weight")
        return classes, Labeled(_complete(rows.table), rows.codes, rows.weight, len(classes)), rows

    def _unlabeled(self, X: Any, sample_weight: Any) -> tuple[Sequence[str], Labeled]:
        """Names of the columns and the rows, all of one class."""
        table = self._read(X, reset=True)
        matrix, weight = _complete(table), read_weight(sample_weight, table.n)
        some = weight > 0
        return table.names, Labeled(matrix[some], np.zeros(int(some.sum()), dtype=np.int64), weight[some], 1)


def _complete(table: Table) -> Array:
    """All columns as numbers, (n, d), none missing."""
    matrix = numbers(table, range(len(table.names)), booleans=True).astype(np.float64)
    gaps = np.isnan(matrix).any(axis=0)
    if gaps.any():
        name = table.names[int(np.argmax(gaps))]
        raise ValueError(
            f"Input X contains NaN: column {name!r} has missing cells. Fill them or leave their rows out first"
        )
    return matrix
