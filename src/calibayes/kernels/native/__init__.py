"""The native kernels where they were built, and which of them are in use.

The environment variable ``CALIBAYES_NATIVE`` decides when the package is loaded: "0" leaves them alone, "baseline",
"avx2" or "avx512" holds them to that level of instructions; by default it is the best that the processor has.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

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
        TWINS[native.__name__] = pair
        return pair

    return paired
