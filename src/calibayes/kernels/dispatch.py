"""Which implementation of a kernel runs: native code, NumPy, or another array library.

The environment variable ``CALIBAYES_NATIVE`` is read when the package is loaded: "0" switches native kernels off,
"baseline", "avx2" or "avx512" limits them to that instruction set; by default the best one of the processor is used.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

import array_api_compat.numpy
import numpy as np
from array_api_compat import array_namespace

from calibayes.core.protocols import Array

VARIABLE = "CALIBAYES_NATIVE"

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass
class Use:
    """Which kernels are in use."""

    module: Any
    """The extension module, None for the NumPy twins."""
    reason: str
    """Why there is none."""

    @property
    def level(self) -> str | None:
        """The level of instructions, None for the NumPy twins."""
        return None if self.module is None else str(self.module.level())


def load(wanted: str) -> Use:
    """The extension module as an environment variable asks for it."""
    if wanted == "0":
        return Use(None, f"{VARIABLE}=0")
    try:
        module = importlib.import_module("calibayes.kernels.native._native")
    except ImportError as error:
        return Use(None, f"not built: {error}")
    if wanted and not module.choose(wanted):
        raise ValueError(f"{VARIABLE} must be 0 or one of {', '.join(module.levels())}, got {wanted!r}")
    return Use(module, "")


use = load(os.environ.get(VARIABLE, ""))


@contextmanager
def switched_off() -> Iterator[None]:
    """Inside, the NumPy twins do the work (in all threads)."""
    before, use.module = use.module, None
    try:
        yield
    finally:
        use.module = before


@contextmanager
def held_to(level: str) -> Iterator[None]:
    """Inside, native kernels use a level of instructions (in all threads)."""
    before = use.level
    if use.module is None or not use.module.choose(level):
        raise ValueError(f"this machine has no native kernels of level {level!r}")
    try:
        yield
    finally:
        use.module.choose(before)


class Twin(Generic[Given, Result]):
    """A kernel of NumPy with its native twin, which answers NotImplemented to arrays that it does not take."""

    def __init__(self, plain: Callable[Given, Result], native: Callable[..., Any]) -> None:
        self.plain, self.native = plain, native
        update_wrapper(self, plain)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        if use.module is not None:
            answer = self.native(use.module, *args, **kwargs)
            if answer is not NotImplemented:
                found: Result = answer
                return found
        return self.plain(*args, **kwargs)


TWINS: dict[str, Twin[..., Any]] = {}
"""All kernels that have a native twin."""


def twin(native: Callable[..., Any]) -> Callable[[Callable[Given, Result]], Twin[Given, Result]]:
    """Gives a kernel of NumPy its native twin, a function of the extension module and the same arguments."""

    def paired(plain: Callable[Given, Result]) -> Twin[Given, Result]:
        pair = Twin(plain, native)
        TWINS[plain.__name__] = pair
        return pair

    return paired


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


def namespace(*arrays: Any) -> Any:
    """The array API namespace that the arrays share (NumPy, PyTorch, CuPy, ...)."""
    if all(
        type(array) is np.ndarray for array in arrays
    ):  # most are, and asking takes longer than small sums
        return array_api_compat.numpy
    return array_namespace(*arrays)
