"""Codes of the bins that numbers fall into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin
from calibayes.kernels.levels.counts import code_type
from calibayes.kernels.threads import map_row_ranges

MOST_EDGES = 2**15 - 2
"""Native code supports so many edges of a column."""
ROW_BYTES = 16
"""Approximate number of bytes of a cell and its code."""


def native_bin_codes(module: Any, x: Array, edges: Sequence[Array]) -> Any:
    if not is_matrix(x, "f") or not x.shape[1] or max(map(len, edges)) > MOST_EDGES:
        return NotImplemented
    first = as_int64(np.concatenate([[0], np.cumsum([len(inner) for inner in edges])]))
    joined = as_float64(np.concatenate([np.zeros(0), *edges]))
    out = np.empty(x.shape, dtype=np.int16)

    def of_rows(rows: slice) -> None:
        module.bin_codes(row_major(x[rows]), joined, first, out[rows])

    map_row_ranges(of_rows, len(x), x.shape[1] * ROW_BYTES)
    return out.astype(_type(edges), copy=False)


@twin(native_bin_codes)
def bin_codes(x: Array, edges: Sequence[Array]) -> Array:
    """The code of each number (n, d): how many of the ascending edges of its column are not above it; -1 for NaN."""
    codes = np.empty(x.shape, dtype=_type(edges))
    for j, (inner, column) in enumerate(zip(edges, x.T, strict=True)):
        codes[:, j] = np.where(np.isnan(column), -1, np.searchsorted(inner, column, side="right"))
    return codes


def native_bin_columns(
    module: Any, columns: Sequence[Array], edges: Sequence[Array], limit: float
) -> tuple[Array, Array] | Any:
    if not columns or max(map(len, edges)) > MOST_EDGES or not all(map(_is_supported, columns)):
        return NotImplemented
    codes = np.empty((len(columns[0]), len(columns)), dtype=_type(edges))
    inner = [as_float64(column_edges) for column_edges in edges]

    def of_rows(rows: slice) -> list[bool]:
        return [
            module.bin_column(column[rows], inner[j], limit, codes[rows, j])
            for j, column in enumerate(columns)
        ]

    return codes, np.any(map_row_ranges(of_rows, len(codes), len(columns) * ROW_BYTES), axis=0)


def _is_supported(column: Array) -> bool:
    return is_matrix(column[:, None], "fiu") and column.flags.aligned


@twin(native_bin_columns)
def bin_columns(columns: Sequence[Array], edges: Sequence[Array], limit: float) -> tuple[Array, Array]:
    """`bin_codes` of columns of any types of numbers, (n,) each, and which of them have a number beyond +- limit, (d,)."""
    codes = np.empty((len(columns[0]) if columns else 0, len(columns)), dtype=_type(edges))
    is_beyond = np.zeros(len(columns), dtype=bool)
    for j, (inner, column) in enumerate(zip(edges, columns, strict=True)):
        numbers = column.astype(np.float64)
        codes[:, j] = np.where(np.isnan(numbers), -1, np.searchsorted(inner, numbers, side="right"))
        is_beyond[j] = (np.abs(numbers) > limit).any()
    return codes, is_beyond


def _type(edges: Sequence[Array]) -> type:
    """The type of the codes."""
    return code_type(max((len(inner) + 2 for inner in edges), default=1))
