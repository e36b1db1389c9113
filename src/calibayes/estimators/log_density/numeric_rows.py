"""Tables of numbers without missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.input import Rows, convert, read_table, training_rows
from calibayes.estimators.interface.labels import read_weight
from calibayes.estimators.log_density.densities import LabeledNumbers
from calibayes.tables.table import Table, numeric_matrix

LEAST_WEIGHT = 1e-100


def labeled_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, LabeledNumbers, Rows]:
    """Classes, the rows of positive weight as numbers, and the same as they were read."""
    classes, rows = training_rows(estimator, X, y, sample_weight)
    counts = np.bincount(rows.codes, minlength=len(classes))
    if not counts.all():
        raise ValueError(f"class {classes[int(np.argmin(counts))]!r} has no row with a positive weight")
    if rows.weight.max() < LEAST_WEIGHT:
        raise ValueError(
            f"the largest sample weight is {rows.weight.max():g}, below {LEAST_WEIGHT:g}: products of such weights are 0. "
            "Multiply all weights by a constant"
        )
    matrix = complete_matrix(rows.table)
    return classes, LabeledNumbers(matrix, rows.codes, rows.weight, len(classes)), rows


def unlabeled_numbers(estimator: Any, X: Any, sample_weight: Any) -> tuple[Sequence[str], LabeledNumbers]:
    """Names of the columns and the rows of positive weight, all of one class."""
    table = convert(estimator, read_table(estimator, X, reset=True))
    matrix, weight = complete_matrix(table), read_weight(sample_weight, table.n)
    positive = weight > 0
    codes = np.zeros(int(positive.sum()), dtype=np.int64)
    return table.names, LabeledNumbers(matrix[positive], codes, weight[positive], 1)


def complete_matrix(table: Table) -> Array:
    """All columns as numbers, (n, d). Raises ValueError, naming the column, if a value is missing."""
    matrix = numeric_matrix(table, range(len(table.names)), booleans=True).astype(np.float64)
    incomplete = np.isnan(matrix).any(axis=0)
    if incomplete.any():
        name = table.names[int(np.argmax(incomplete))]
        raise ValueError(
            f"Input X contains NaN: column {name!r} has missing values. Fill them or remove their rows first"
        )
    return matrix
