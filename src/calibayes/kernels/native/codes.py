"""Whole numbers as codes: calls of the native twins of `calibayes.kernels.codes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import by_row, is_matrix

NO_LEVEL = 2**31


def _of_plain(top: Array, kind: Any) -> Array:
    """The largest codes as numbers with a sign, where negative ones of a narrow type are the largest of all."""
    most = min(int(np.iinfo(kind).max), NO_LEVEL - 1)
    return np.where(top > most, NO_LEVEL, top).astype(np.int64)


def largest_codes(module: Any, codes: Array) -> Any:
    if not is_matrix(codes, "iu"):
        return NotImplemented
    top = np.zeros(codes.shape[1], dtype=np.uint64)
    module.top(by_row(codes), top)
    return _of_plain(top, codes.dtype)


def narrow_into(module: Any, out: Array, codes: Array, levels: Array) -> Any:
    if not is_matrix(codes, "iu") or not out.flags.c_contiguous:
        return NotImplemented
    top = np.zeros(codes.shape[1], dtype=np.uint64)
    module.narrow(by_row(codes), np.ascontiguousarray(levels, dtype=np.uint32), out, top)
    return np.where(top > NO_LEVEL - 1, NO_LEVEL, top).astype(np.int64)
