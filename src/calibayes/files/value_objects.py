"""Codec of objects that are made by calling their class with their fields: classes are looked up in a closed list."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibayes.files.codec import Codec, Reader, Writer, only
from calibayes.files.container import ModelFileError

# -- Whether a value fits the type annotation of a field. Used for values that were read from a file ---------


@cache
def field_types(cls: type) -> Mapping[str, Any]:
    """Field -> its annotation."""
    return get_type_hints(cls)


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type. Annotations that say nothing (Any) fit every value."""
    if annotation is Any:
        return True
    if annotation is None or annotation is type(None):
        return value is None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(origin, "__value__"):  # an alias with parameters, as NDArray is from Python 3.12 on
        return fits(value, origin.__value__)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is Literal:
        return any(type(value) is type(known) and value == known for known in arguments)
    if origin is not None:
        return _CONTAINERS[origin](value, arguments)
    if getattr(annotation, "_is_protocol", False):
        return not isinstance(value, type) and all(hasattr(value, name) for name in _members(annotation))
    if annotation is float:
        return isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    if annotation is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    return isinstance(value, annotation)


def _fits_tuple(value: Any, arguments: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _all_fit(value, arguments[0])
    return len(value) == len(arguments) and all(map(fits, value, arguments))


def _fits_sequence(value: Any, arguments: tuple[Any, ...]) -> bool:
    is_sequence = isinstance(value, list | tuple | range | np.ndarray)
    is_uniform = isinstance(value, range) or (isinstance(value, np.ndarray) and value.dtype != object)
    return is_sequence and _all_fit(value[:1] if is_uniform else value, arguments[0])


def _all_fit(values: Iterable[Any], annotation: Any) -> bool:
    """Whether all values fit. For plain annotations one value of each type is checked, as many values would take long."""
    if annotation in (str, float, int, bool) or get_origin(annotation) is np.dtype:
        values = {type(value): value for value in values}.values()
    return all(fits(value, annotation) for value in values)


def _fits_mapping(value: Any, arguments: tuple[Any, ...]) -> bool:
    is_mapping = isinstance(value, Mapping)
    return is_mapping and all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())


_CONTAINERS: Mapping[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    tuple: _fits_tuple,
    list: _fits_sequence,
    Sequence: _fits_sequence,
    Mapping: _fits_mapping,
    dict: _fits_mapping,
    Callable: lambda value, arguments: callable(value),
    np.dtype: lambda value, arguments: isinstance(value, np.dtype),
    np.ndarray: lambda value, arguments: True,  # the class itself checks its arrays, when it is verified
}
"""Generic type -> check of a value against its arguments."""


@cache
def _members(protocol: type) -> frozenset[str]:
    """The methods and attributes that a protocol asks for."""
    bases = [base for base in protocol.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in (*vars(base), *vars(base).get("__annotations__", {}))}
    return frozenset(name for name in names if not name.startswith("_"))


# -- Codec of objects that are made by calling their class with their fields: classes are looked up in a closed list


class UnknownClassError(ModelFileError):
    """A name that is not in the list."""


def field_names(cls: type) -> Sequence[str]:
    """The fields that a value is made from."""
    if is_dataclass(cls):
        return [field.name for field in fields(cls) if field.init]
    return getattr(cls, "_fields", ())


OlderFields: TypeAlias = tuple[Sequence[str], Callable[[dict[str, Any]], dict[str, Any]]]
"""Fields of a class in files of older formats, and a function from all fields that were read to those of today."""


Written: TypeAlias = Callable[[Any], Any]
"""From the value of a field to what is written of it."""


def value_codec(
    classes: Mapping[str, type],
    older: Mapping[str, OlderFields] | None = None,
    written: Mapping[tuple[str, str], Written] | None = None,
) -> Codec:
    """A codec of the objects of these classes, by name.

    ``older`` are fields of older formats, by class; ``written`` are functions for fields of which a part is written, by class
    and field.
    """
    shortened = written or {}

    def write(value: Any, path: str, writer: Writer) -> dict[str, Any]:
        kind, names = type(value).__name__, field_names(type(value))

        def parts() -> dict[str, Any]:
            held = {name: getattr(value, name) for name in names}
            held |= {name: shortened[kind, name](held[name]) for name in names if (kind, name) in shortened}
            return {"$type": kind, **{name: writer.write(held[name], f"{path}.{name}") for name in names}}

        return writer.once(value, parts) if names else parts()

    def read(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        cls = looked_up(classes, node["$type"])
        older_names, upgrade = (older or {}).get(cls.__name__, ((), dict))
        known = (*field_names(cls), *older_names)
        only(node, "$type", *known)
        given = upgrade({name: reader.read(node[name], f"{path}.{name}") for name in known if name in node})
        check_types(given, field_types(cls))
        return verified(cls(**given))

    return Codec("$type", write, read)


def check_types(given: Mapping[str, Any], annotations: Mapping[str, Any]) -> None:
    """Raises ValueError unless all values are of the annotated types."""
    for name, value in given.items():
        if not fits(value, annotations[name]):
            expected = getattr(annotations[name], "__name__", str(annotations[name])).replace("typing.", "")
            raise ValueError(f"{name} has the wrong type {type(value).__name__}, expected {expected}")


def verified(value: Any) -> Any:
    """A value whose parts fit together. Raises ValueError if they do not."""
    if hasattr(value, "verify"):
        value.verify()
    return value


def looked_up(known: Mapping[str, Any], name: Any) -> Any:
    """The class or function of this name."""
    if not isinstance(name, str) or name not in known:
        raise UnknownClassError(f"unknown class or function {str(name)[:80]!r}")
    return known[name]
