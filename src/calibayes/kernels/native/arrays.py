"""Arrays as the native kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array


def is_matrix(array: Any, kinds: str) -> bool:
    """Whether it is an array of NumPy with two dimensions, of certain kinds of numbers in the machine's own order."""
    return (
        type(array) is np.ndarray
        and array.ndim == 2
        and array.dtype.kind in kinds
        and array.dtype.isnative
        and array.dtype.itemsize in (1, 2, 4, 8)
        and array.dtype != np.float16
    )


def by_row(matrix: Array) -> Array:
    """The matrix itself where the cells of a row lie side by side, else a copy."""
    size = matrix.dtype.itemsize
    plain = matrix.shape[1] < 2 or matrix.strides[1] == size
    rows = matrix.strides[0] >= 0 and matrix.strides[0] % size == 0 and matrix.flags.aligned
    return matrix if plain and rows else np.ascontiguousarray(matrix)


def floats(array: Any) -> Array:
    """As float64, cells side by side."""
    return np.ascontiguousarray(array, dtype=np.float64)


def whole(array: Any) -> Array:
    """As int64, cells side by side."""
    return np.ascontiguousarray(array, dtype=np.int64)
