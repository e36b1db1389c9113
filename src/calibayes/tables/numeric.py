"""Columns of a table as one checked matrix of floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.sparse import columns_where, is_sparse
from calibayes.tables.table import Table, holds_booleans, is_missing

LARGEST = 1e100
"""Larger absolute values are refused: sums of their squares overflow."""


def numeric_matrix(table: Table, indices: Sequence[int], *, booleans: bool = False) -> Array:
    """The given columns as a float matrix, (n, len(indices)), NaN where a value is missing.

    float32 columns stay float32, a sparse table stays sparse. Boolean columns are accepted as 0 and 1 if ``booleans``.
    Raises ValueError if a column is not numeric, contains infinity or values beyond 1e100, or contains NaN in a sparse
    table.
    """
    table = _booleans_as_numbers(table, indices) if booleans else table
    other = table.first_of_other_kind(indices, "fiub" if booleans else "fiu")
    if other is not None:
        raise ValueError(
            f"column {table.names[other]!r} does not hold numbers: could not convert its values to float. "
            "Use a categorical family, or a model for mixed columns such as NaiveBayes."
        )
    matrix = table.matrix(indices)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    _refuse_large(table, indices, matrix)
    if is_sparse(matrix) and np.isnan(matrix.data).any():
        name = table.names[indices[columns_where(matrix, np.isnan)[0]]]
        raise ValueError(f"column {name!r} contains NaN: a sparse table cannot have missing values")
    return matrix


def _booleans_as_numbers(table: Table, indices: Sequence[int]) -> Table:
    """The table with object columns of booleans and missing values as 0, 1 and NaN."""
    if not isinstance(table.content, tuple):
        return table
    selected = set(indices)
    columns = [
        np.array([np.nan if is_missing(value) else float(value) for value in column])
        if j in selected and holds_booleans(column)
        else column
        for j, column in enumerate(table.content)
    ]
    return Table(table.names, tuple(columns))


def _refuse_large(table: Table, indices: Sequence[int], matrix: Array) -> None:
    """Raise ValueError if a number is infinite, or so large that its square overflows."""
    limit = min(LARGEST, float(np.finfo(matrix.dtype).max))
    low, high = table.value_range(matrix)
    if -limit <= low and high <= limit:  # false if a value is missing: then each column is checked
        return
    too_large = columns_where(matrix, lambda values: np.abs(values) > limit)
    if len(too_large):
        first = indices[too_large[0]]
        is_infinite = np.isinf(table.column(first)).any()
        problem = "infinity" if is_infinite else f"values beyond {LARGEST:g}, whose squares overflow"
        raise ValueError(f"column {table.names[first]!r} contains {problem}")
