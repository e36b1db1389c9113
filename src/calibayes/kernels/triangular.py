"""Products with triangular matrices: half the work of a full product.

SciPy's wrappers of BLAS hold Python's lock, so that blocks of rows in threads would wait for each other. The same
routines lie, for Cython, behind pointers; called through those the lock is free.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from calibayes.core.protocols import Array

ROUTINES = {"d": ("dtrmm", ctypes.c_double), "f": ("strmm", ctypes.c_float)}
"""By the letter of an array's type: the routine, and the number it takes."""


@cache
def _routine(name: str) -> Any:
    """The BLAS routine of that name, its eleven arguments all by reference."""
    capsule = ctypes.py_object(vars(cython_blas)["__pyx_capi__"][name])
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 11)(pointer_of(capsule, name_of(capsule)))


def multiply(rows: Array, factor: Array) -> None:
    """Replace each row x, (n, d), by the lower triangular ``factor`` (d, d) times x.

    Both are of one type, float32 or float64, and lie row by row in memory; what is above the diagonal is not read.
    """
    (n, d), letter, size = rows.shape, rows.dtype.char, rows.itemsize
    if factor.shape != (d, d) or factor.dtype.char != letter or letter not in ROUTINES:
        raise ValueError(
            f"cannot multiply {rows.dtype} {rows.shape} by triangular {factor.dtype} {factor.shape}"
        )
    if not (n and d):
        return
    if rows.strides[1] != size or factor.strides[1] != size:
        raise ValueError("rows and factors must lie row by row in memory")
    name, number = ROUTINES[letter]
    sizes = [
        ctypes.c_int(s) for s in (d, n, max(factor.strides[0] // size, d), max(rows.strides[0] // size, d))
    ]
    _call(name, number(1.0), sizes, factor, rows)


def _call(name: str, one: Any, sizes: list[Any], factor: Array, rows: Array) -> None:
    """BLAS reads arrays column by column: rows are columns to it, and a lower triangle an upper one, transposed."""
    d, n, factor_stride, row_stride = (ctypes.addressof(size) for size in sizes)
    left, upper, transposed, general = (ctypes.c_char(letter) for letter in (b"L", b"U", b"T", b"N"))
    letters = [ctypes.addressof(letter) for letter in (left, upper, transposed, general)]
    data = (factor.ctypes.data, factor_stride, rows.ctypes.data, row_stride)
    _routine(name)(*letters, d, n, ctypes.addressof(one), *data)


def row_squares(rows: Array) -> Array:
    """Sum of squares of each row, (n,), in float64; of float32 from short stretches."""
    width = rows.shape[1] if rows.dtype == np.float64 else STRETCH
    parts = [rows[:, start : start + width] for start in range(0, rows.shape[1], max(width, 1))]
    return np.sum([np.einsum("nd,nd->n", part, part) for part in parts], axis=0, dtype=np.float64)


STRETCH = 64
"""How many squares are added up in float32."""
