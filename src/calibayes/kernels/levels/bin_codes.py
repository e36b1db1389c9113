"""Codes of the bins that numbers fall into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin
from calibayes.kernels.levels.counts import code_type
from calibayes.kernels.threads import map_row_ranges

ROW_BYTES = 16
"""Approximate number of bytes of a cell and its code."""


def native_bin_codes(module: Any, x: Array, edges: Sequence[Array]) -> Any:
    if not is_matrix(x, "f") or not x.shape[1] or max(map(len, edges)) >= 2**15 - 1:
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


def _type(edges: Sequence[Array]) -> type:
    """The type of the codes."""
    return code_type(max((len(inner) + 2 for inner in edges), default=1))
