"""Walk a fitted object as a decoder of model files does: `verify` of every value in it, innermost first."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np


def values_in(thing) -> Iterator[object]:
    """All objects inside of a thing, innermost first, then the thing itself; arrays and plain values are left out."""
    if isinstance(thing, str | bytes | np.ndarray | np.dtype | np.generic):
        return
    for child in children(thing):
        yield from values_in(child)
    if type(thing).__module__.startswith("calibayes"):
        yield thing


def children(thing):
    if isinstance(thing, Mapping):
        return [*thing.values()]
    if isinstance(thing, tuple | list):
        return [*thing]
    is_ours = type(thing).__module__.startswith("calibayes") and not callable(
        getattr(thing, "__wrapped__", None)
    )
    if is_ours and hasattr(thing, "get_params"):
        return [*vars(thing).values()]
    if is_dataclass(thing) and not isinstance(thing, type):
        return [getattr(thing, field.name) for field in fields(thing) if field.init]
    return []


def verify_all(thing) -> list[type]:
    """`verify` of everything in a thing; the classes that have it."""
    verified = [value for value in values_in(thing) if hasattr(value, "verify")]
    for value in verified:
        value.verify()
    return [type(value) for value in verified]
