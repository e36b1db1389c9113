"""Codec of objects that are made by calling their class with their fields: classes are looked up in a closed list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from calibayes.storage.annotations import field_types, fits
from calibayes.storage.codec import Codec, Reader, Writer, only
from calibayes.storage.errors import ModelFileError


class UnknownClassError(ModelFileError):
    """A name that is not in the list."""


def field_names(cls: type) -> Sequence[str]:
    """The fields that a value is made from."""
    if is_dataclass(cls):
        return [field.name for field in fields(cls) if field.init]
    return getattr(cls, "_fields", ())


def value_codec(classes: Mapping[str, type]) -> Codec:
    """A codec of the objects of these classes, by name."""

    def read(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        cls = looked_up(classes, node["$type"])
        known = field_names(cls)
        only(node, "$type", *known)
        given = {name: reader.read(node[name], f"{path}.{name}") for name in known if name in node}
        check_types(given, field_types(cls))
        return verified(cls(**given))

    return Codec("$type", _write, read)


def _write(value: Any, path: str, writer: Writer) -> dict[str, Any]:
    def write() -> dict[str, Any]:
        parts = {
            name: writer.write(getattr(value, name), f"{path}.{name}") for name in field_names(type(value))
        }
        return {"$type": type(value).__name__, **parts}

    return writer.once(value, write) if field_names(type(value)) else write()


def read_same(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    """The object that was read before and has this number."""
    only(node, "$same")
    return reader.same(node["$same"])


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
