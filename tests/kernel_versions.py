"""Contexts in which kernels run a given version: that of NumPy, or that of an instruction set."""

from collections.abc import Iterator
from contextlib import contextmanager

from calibayes.kernels.dispatch import native_kernels


@contextmanager
def numpy_only() -> Iterator[None]:
    """Context in which all kernels run their NumPy version (in all threads)."""
    before, native_kernels.module = native_kernels.module, None
    try:
        yield
    finally:
        native_kernels.module = before


@contextmanager
def use_instruction_set(name: str) -> Iterator[None]:
    """Context in which native kernels use the named instruction set (in all threads).

    Raises ValueError if it is not available.
    """
    before = native_kernels.instruction_set
    if native_kernels.module is None or not native_kernels.module.choose(name):
        raise ValueError(f"this machine has no native kernels for the instruction set {name!r}")
    try:
        yield
    finally:
        native_kernels.module.choose(before)
