"""Levels: calls of the native twins of `calibayes.kernels.counts`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import by_row, floats, is_matrix, whole

MOST_CELLS = 2**27
"""Cells of all columns that a native table can hold."""


def taken(codes: Any, first: Array, kinds: str) -> bool:
    return is_matrix(codes, kinds) and codes.shape[1] > 0 and first[-1] + len(first) < MOST_CELLS


def look_up(module: Any, codes: Array, table: Array, first: Array, kinds: str = "iu") -> Any:
    if not taken(codes, first, kinds) or len(table) == 0:
        return NotImplemented
    out = np.empty((len(codes), len(table)))
    module.look_up(by_row(codes), floats(table), whole(first), out)
    return out


def weighted_counts(module: Any, codes: Array, weights: Array, first: Array, kinds: str = "iu") -> Any:
    if not taken(codes, first, kinds) or not is_matrix(weights, "fiub"):
        return NotImplemented
    out = np.empty((weights.shape[1], int(first[-1])))
    module.weighted_counts(by_row(codes), floats(weights), whole(first), out)
    return out
