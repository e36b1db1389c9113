"""Fingerprints of values: equal in every process for values of equal content, different for others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:
    """A checksum of a value: of its classes, fields, arrays, texts, numbers and functions. Addresses have no influence.

    >>> fingerprint({"a": (1, 2.5)}) == fingerprint({"a": (1, 2.5)}) != fingerprint({"a": (1, 2)})
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(value):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """The content of a value, in an order that depends on the content alone."""
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    else:
        inner = _inner(value)
        yield (repr(value) if inner is None else str(len(inner))).encode()
        for part in inner or ():
            yield from _parts(part)


def _inner(value: Any) -> tuple[Any, ...] | None:
    """The values that a value consists of; None for one that its text describes."""
    for kinds, parts in _CONTENTS:
        if isinstance(value, kinds):
            return parts(value)
    if is_dataclass(value):
        return tuple(getattr(value, field.name) for field in fields(value) if field.init)
    if not hasattr(value, "__dict__"):
        return None
    has_text = "__repr__" in {name for base in type(value).__mro__[:-1] for name in vars(base)}
    return (repr(value) if has_text else "", vars(value))


def _of_function(value: FunctionType) -> tuple[Any, ...]:
    cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
    return value.__module__, value.__qualname__, value.__code__, value.__defaults__, cells


_CONTENTS: tuple[tuple[Any, Callable[[Any], tuple[Any, ...]]], ...] = (
    (np.ndarray, lambda value: (value.shape, *value.reshape(-1))),
    (np.generic, lambda value: (value.dtype.str, value.tobytes())),
    (Mapping, lambda value: tuple(part for item in value.items() for part in item)),
    ((list, tuple), tuple),
    (AbstractSet, lambda value: tuple(sorted(map(fingerprint, value)))),
    (partial, lambda value: (value.func, value.args, value.keywords)),
    (MethodType, lambda value: (value.__func__, value.__self__)),
    (FunctionType, _of_function),
    (CodeType, lambda value: (value.co_code, value.co_names, value.co_consts)),
    (np.random.RandomState, lambda value: (value.get_state(legacy=True),)),
    (np.random.Generator, lambda value: (value.bit_generator.state,)),
)
"""Types -> the parts of their values."""
