"""Whole numbers from 0 on as codes of levels, in the narrowest type that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import by_row, is_matrix, twin
from calibayes.kernels.threads import map_row_ranges

NO_LEVEL = 2**31
"""What a code that is none counts as among the largest ones."""
TYPES = (np.int8, np.int16, np.int32)


def code_type(levels: int) -> type[np.signedinteger]:
    """The narrowest type for codes of so many levels, and -1."""
    return next(kind for kind in TYPES if levels <= np.iinfo(kind).max + 1)


def _of_plain(top: Array, kind: Any) -> Array:
    """The largest codes as numbers with a sign, where negative ones of a narrow type are the largest of all."""
    most = min(int(np.iinfo(kind).max), NO_LEVEL - 1)
    return np.where(top > most, NO_LEVEL, top).astype(np.int64)


def native_largest_codes(module: Any, codes: Array) -> Any:
    if not is_matrix(codes, "iu"):
        return NotImplemented
    top = np.zeros(codes.shape[1], dtype=np.uint64)
    module.top(by_row(codes), top)
    return _of_plain(top, codes.dtype)


def native_narrow_into(module: Any, out: Array, codes: Array, levels: Array) -> Any:
    if not is_matrix(codes, "iu") or not out.flags.c_contiguous:
        return NotImplemented
    top = np.zeros(codes.shape[1], dtype=np.uint64)
    module.narrow(by_row(codes), np.ascontiguousarray(levels, dtype=np.uint32), out, top)
    return np.where(top > NO_LEVEL - 1, NO_LEVEL, top).astype(np.int64)


@twin(native_largest_codes)
def largest_codes(codes: Array) -> Array:
    """Largest code of each column of some rows, (d,); `NO_LEVEL` where one is negative or beyond 2**31 - 1."""
    wide = codes.astype(np.int64)
    return np.where((wide < 0) | (wide >= NO_LEVEL), NO_LEVEL, wide).max(axis=0, initial=0)


@twin(native_narrow_into)
def narrow_into(out: Array, codes: Array, levels: Array) -> Array:
    """Write the codes in another type, -1 for what is none of the levels (d,); their largest ones as they were, (d,)."""
    wide = codes.astype(np.int64)
    out[...] = np.where((wide >= 0) & (wide < levels), wide, -1)
    return largest_codes.plain(codes)


def tops(codes: Array) -> Array:
    """Largest code of each column, (d,), of a table of any number of rows."""
    return np.max(
        map_row_ranges(lambda rows: largest_codes(codes[rows]), len(codes), codes[:1].nbytes), axis=0
    )


def as_codes(numbers: Array, levels: Array) -> Array:
    """A table of whole numbers as codes, -1 for what is none of the levels (d,). No copy where none is needed."""
    kind = code_type(int(levels.max(initial=1)))
    if numbers.dtype.itemsize == np.dtype(kind).itemsize and (tops(numbers) < levels).all():
        return numbers.view(kind)
    return narrow(numbers, levels, kind)[0]


def narrow(numbers: Array, levels: Array, kind: type[np.signedinteger]) -> tuple[Array, Array]:
    """Codes of a type, -1 for what is none of the levels (d,), and their largest ones as they were, (d,)."""
    out = np.empty(numbers.shape, dtype=kind)
    found = map_row_ranges(
        lambda rows: narrow_into(out[rows], numbers[rows], levels), len(numbers), numbers[:1].nbytes
    )
    return out, np.max(found, axis=0)


def whole_codes(numbers: Array) -> tuple[Array, Array] | None:
    """A table of whole numbers as codes, and the largest of each column, (d,); None where some are negative or large."""
    for kind in TYPES[:2]:
        most = np.full(numbers.shape[1], np.iinfo(kind).max + 1)
        if numbers.dtype.itemsize == np.dtype(kind).itemsize:
            codes, top = numbers.view(kind), tops(numbers)
        else:
            codes, top = narrow(numbers, most, kind)
        if (top < most).all():
            return codes, top
    return None
