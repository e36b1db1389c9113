"""Where arrays live: an array library with the array API and one of its devices; copies from and to NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array, is_torch_array

from calibayes.core.protocols import Array

TEMPORARY_BYTES = 2**30
"""Approximate size of the temporary arrays of a kernel: rows are processed in ranges of that size."""


@dataclass(frozen=True)
class Placement:
    """An array library and a device."""

    xp: Any
    """The array API namespace of the library."""
    device: Any

    def array(self, given: Any, dtype: str | None = None) -> Any:
        """A NumPy array, number or sequence as an array of this library on this device, of a type given by name."""
        values = np.asarray(given, dtype=dtype)
        # PyTorch shares memory with NumPy on the CPU, and accepts writable memory in row order only.
        values = values if values.flags.writeable and values.flags.c_contiguous else values.copy(order="C")
        return self.xp.asarray(values, device=self.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def arange(self, stop: int) -> Any:
        return self.xp.arange(stop, dtype=self.xp.int64, device=self.device)

    def float64(self, values: Any) -> Any:
        """The array as float64, itself if it is."""
        return values if values.dtype == self.xp.float64 else self.xp.astype(values, self.xp.float64)


def is_on_device(array: Any) -> bool:
    """Whether this is an array of another library than NumPy, with the array API."""
    return is_array_api_obj(array) and not is_numpy_array(array)


def placement_of(array: Any) -> Placement:
    """The library and device of an array."""
    return Placement(array_namespace(array), device(array))


def to_numpy(array: Any) -> Array:
    """An array of any library as a NumPy array."""
    if is_torch_array(array):
        return array.detach().cpu().numpy()
    if hasattr(array, "get"):  # CuPy
        return array.get()
    xp = array_namespace(array)
    return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE")) if hasattr(xp, "Device") else array)


def numpy_type(array: Any) -> np.dtype[Any]:
    """The NumPy type that corresponds to the type of an array."""
    return _numpy_type_named(str(array.dtype))


@cache
def _numpy_type_named(name: str) -> np.dtype[Any]:
    """By the name of a type, such as "torch.float64"."""
    return np.dtype(name.rsplit(".", maxsplit=1)[-1])


def row_ranges(n: int, row_bytes: int) -> list[slice]:
    """Consecutive ranges of n rows with about `TEMPORARY_BYTES` of temporary arrays each; at least one."""
    size = max(TEMPORARY_BYTES // max(row_bytes, 1), 1)
    return [slice(start, min(start + size, n)) for start in range(0, max(n, 1), size)]
