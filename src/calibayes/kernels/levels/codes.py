"""Tables of nonnegative integers as level codes, in the narrowest signed type that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import is_matrix, row_major, twin
from calibayes.kernels.threads import map_row_ranges

NO_LEVEL = 2**31
"""Reported as the largest code of a column that contains a value which cannot be a code."""
CODE_TYPES = (np.int8, np.int16, np.int32)


def code_type(levels: int) -> type[np.signedinteger]:
    """The narrowest type for the codes of this many levels and -1."""
    return next(kind for kind in CODE_TYPES if levels <= np.iinfo(kind).max + 1)


def native_largest_codes(module: Any, codes: Array) -> Any:
    if not is_matrix(codes, "iu"):
        return NotImplemented
    largest = np.zeros(codes.shape[1], dtype=np.uint64)
    module.top(row_major(codes), largest)
    # Native code compares without sign: a negative code of a narrow type is above the largest positive one.
    limit = min(int(np.iinfo(codes.dtype).max), NO_LEVEL - 1)
    return np.where(largest > limit, NO_LEVEL, largest).astype(np.int64)


def native_narrow_into(module: Any, out: Array, codes: Array, levels: Array) -> Any:
    if not is_matrix(codes, "iu") or not out.flags.c_contiguous:
        return NotImplemented
    largest = np.zeros(codes.shape[1], dtype=np.uint64)
    module.narrow(row_major(codes), np.ascontiguousarray(levels, dtype=np.uint32), out, largest)
    return np.where(largest > NO_LEVEL - 1, NO_LEVEL, largest).astype(np.int64)


@twin(native_largest_codes)
def largest_codes(codes: Array) -> Array:
    """Largest code of each column of codes (n, d), (d,); `NO_LEVEL` if one is negative or above 2**31 - 1."""
    wide = codes.astype(np.int64)
    return np.where((wide < 0) | (wide >= NO_LEVEL), NO_LEVEL, wide).max(axis=0, initial=0)


@twin(native_narrow_into)
def narrow_into(out: Array, codes: Array, levels: Array) -> Array:
    """Write codes (n, d) into ``out`` (n, d), -1 for those outside the levels (d,); return `largest_codes` of the input."""
    wide = codes.astype(np.int64)
    out[...] = np.where((wide >= 0) & (wide < levels), wide, -1)
    return largest_codes.numpy(codes)


def column_maxima(codes: Array) -> Array:
    """`largest_codes` of a table of any number of rows, in parallel, (d,)."""
    return np.max(
        map_row_ranges(lambda rows: largest_codes(codes[rows]), len(codes), codes[:1].nbytes), axis=0
    )


def as_codes(integers: Array, levels: Array) -> Array:
    """Integers (n, d) as codes, -1 for those outside the levels (d,). Copies only if necessary."""
    kind = code_type(int(levels.max(initial=1)))
    if integers.dtype.itemsize == np.dtype(kind).itemsize and (column_maxima(integers) < levels).all():
        return integers.view(kind)
    return narrow(integers, levels, kind)[0]


def narrow(integers: Array, levels: Array, kind: type[np.signedinteger]) -> tuple[Array, Array]:
    """Codes (n, d) of a given type, -1 outside the levels (d,), and the largest code of each input column, (d,)."""
    out = np.empty(integers.shape, dtype=kind)
    maxima = map_row_ranges(
        lambda rows: narrow_into(out[rows], integers[rows], levels), len(integers), integers[:1].nbytes
    )
    return out, np.max(maxima, axis=0)


def codes_and_maxima(integers: Array) -> tuple[Array, Array] | None:
    """Integers (n, d) as int8 or int16 codes and the largest of each column, (d,); None if one is negative or too large."""
    for kind in CODE_TYPES[:2]:
        limits = np.full(integers.shape[1], np.iinfo(kind).max + 1)
        if integers.dtype.itemsize == np.dtype(kind).itemsize:
            codes, maxima = integers.view(kind), column_maxima(integers)
        else:
            codes, maxima = narrow(integers, limits, kind)
        if (maxima < limits).all():
            return codes, maxima
    return None
