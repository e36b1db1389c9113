"""The distinct values of a column, sorted, and the code of each row's value."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.table import Table

LARGEST_COUNTED = 2**16
"""Integer columns from 0 up to this are sorted by counting, which is much faster than comparing."""


def distinct_values(table: Table, j: int) -> tuple[Array, Array]:
    """Sorted distinct values of column j, (v,), and the position of each row's value in them, (n,); v where missing.

    The result for an object column is kept in the table.

    >>> from calibayes.tables.read import read_array
    >>> table = read_array(np.array([["b"], ["a"], [None], ["b"]], dtype=object))
    >>> values, codes = distinct_values(table, 0)
    >>> values.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 2, 1])
    """
    if j in table.distinct_cache:
        return table.distinct_cache[j]
    column = table.column(j)
    result = _sorted_with_codes(column, table.missing_mask(j), table.names[j])
    if column.dtype.kind == "O":
        table.distinct_cache[j] = result
    return result


def _sorted_with_codes(column: Array, missing: Array, name: str) -> tuple[Array, Array]:
    if missing.any():
        known = ~missing
        values, known_codes = _sorted_with_codes(column[known], missing[known], name)
        codes = np.full(len(column), len(values))
        codes[known] = known_codes
        return values, codes
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(
            f"column {name!r} contains infinity: replace such values by missing ones, or leave these rows out"
        )
    if column.dtype.kind in "iu" and len(column) and column.min() >= 0 and column.max() <= LARGEST_COUNTED:
        present = np.bincount(column) > 0
        return np.flatnonzero(present), (np.cumsum(present) - 1)[column]
    if column.dtype.kind == "O" and set(map(type, column)) <= {str}:
        return _sorted_texts(column.tolist())
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        types = sorted({type(value).__name__ for value in column})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(types)}") from error


def _sorted_texts(cells: list[str]) -> tuple[Array, Array]:
    """Distinct texts and codes. Only the distinct ones are sorted, which is faster than sorting all cells if they are few."""
    values = sorted(set(cells))
    positions = {value: code for code, value in enumerate(values)}
    codes = np.fromiter(map(positions.__getitem__, cells), dtype=np.int64, count=len(cells))
    return np.array(values, dtype=object), codes
