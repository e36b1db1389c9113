"""From values to JSON and tensors, and back.

Texts, booleans, whole and finite numbers and None are themselves; a JSON list is a tuple; a JSON object without a key that
begins with ``$`` is a mapping. Everything else is an object with one such key, its tag: a `Codec` writes and reads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.files.errors import ModelFileError

PLAIN = (str, bool, int, type(None))
MOST_WHOLE = 10**300
"""Whole numbers beyond it are not written."""


@dataclass(frozen=True)
class Codec:
    """How values of some types are written as a JSON object with one tag, and read back.

    Attributes
    ----------
    tag : str
        The key that begins with ``$``.
    write : function
        (value, path, writer) -> JSON object with the tag.
    read : function
        (JSON object, path, reader) -> value. Raises ValueError if the object is invalid.
    """

    tag: str
    write: Callable[[Any, str, Writer], dict[str, Any]]
    read: Callable[[Mapping[str, Any], str, Reader], Any]


@dataclass
class Writer:
    """Collects tensors while values are written. ``codecs`` are looked up by the exact type of a value."""

    codecs: Mapping[type, Codec]
    tensors: dict[str, Array] = field(default_factory=dict)
    _names: dict[Any, str] = field(default_factory=dict)
    _objects: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    _numbers: int = 0

    def write(self, value: Any, path: str) -> Any:
        """The JSON of a value; ``path`` says where it is, for names of tensors and error messages."""
        kind = type(value)
        if kind in PLAIN and not (kind is int and abs(value) > MOST_WHOLE):
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind is tuple:
            return self.write_all(value, path)
        if isinstance(value, Mapping) and all(type(key) is str and key[:1] != "$" for key in value):
            return {key: self.write(part, f"{path}.{key}") for key, part in value.items()}
        codec = self.codecs.get(Mapping if isinstance(value, Mapping) else kind)
        if codec is None:
            raise ModelFileError(f"{path} cannot be saved: {_described(value)}")
        return codec.write(value, path, self)

    def write_all(self, values: Sequence[Any], path: str) -> list[Any]:
        return [self.write(value, f"{path}[{place}]") for place, value in enumerate(values)]

    def tensor_name(self, array: Array, path: str) -> str:
        """The name of a tensor with the content of an array in C order. The same memory is written once."""
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        if key not in self._names:
            name = re.sub(r"[^A-Za-z0-9_.\[\]]+", "_", path.partition(".")[2])
            unique = name if name not in self.tensors else f"{name}#{len(self.tensors)}"
            self.tensors[unique] = np.ascontiguousarray(array).reshape(array.shape)
            self._names[key] = unique
        return self._names[key]

    def once(self, value: Any, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The JSON of an object; if it was written before, a reference to it."""
        if id(value) in self._objects:
            first = self._objects[id(value)][1]
            if "$id" not in first:
                first["$id"], self._numbers = self._numbers, self._numbers + 1
            return {"$same": first["$id"]}
        written = make()
        self._objects[id(value)] = (value, written)
        return written


@dataclass
class Reader:
    """Makes values from JSON and tensors. ``codecs`` are looked up by tag."""

    codecs: Mapping[str, Codec]
    tensors: Mapping[str, Array]
    used: set[str] = field(default_factory=set)
    _objects: dict[int, Any] = field(default_factory=dict)
    _bytes_left: int = field(init=False)

    def __post_init__(self) -> None:
        size = sum(array.nbytes for array in self.tensors.values())
        self._bytes_left = MOST_READINGS * (LEAST_BYTES + size)

    def read(self, node: Any, path: str) -> Any:
        """The value of a JSON node. Raises ModelFileError if it is invalid."""
        if isinstance(node, list):
            return self.read_all(node, path)
        if not isinstance(node, dict):
            return node
        tags = [key for key in node if key[:1] == "$" and key != "$id"]
        if not tags:
            return {key: self.read(part, f"{path}.{key}") for key, part in node.items()}
        return self._read_tagged(node, tags[0], path)

    def read_all(self, nodes: Sequence[Any], path: str) -> tuple[Any, ...]:
        return tuple(self.read(node, f"{path}[{place}]") for place, node in enumerate(nodes))

    def _read_tagged(self, node: Mapping[str, Any], tag: str, path: str) -> Any:
        if tag not in self.codecs:
            raise ModelFileError(f"{path} has the unknown tag {tag[:80]!r}")
        try:
            value = self.codecs[tag].read(node, path, self)
        except ModelFileError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError) as error:
            raise ModelFileError(f"{path} is invalid: {error}") from error
        if "$id" in node:
            self._objects[node["$id"]] = value
        return value

    def tensor(self, name: Any) -> Array:
        """A tensor by name. All references together may not make much more work than the file is large."""
        if not isinstance(name, str) or name not in self.tensors:
            raise ValueError(f"there is no tensor {str(name)[:80]!r}")
        self.used.add(name)
        self._bytes_left -= self.tensors[name].nbytes
        if self._bytes_left < 0:
            raise ValueError("tensors are used too often")
        return self.tensors[name]

    def same(self, number: Any) -> Any:
        """An object that was read before."""
        if type(number) is not int or number not in self._objects:
            raise ValueError(f"there is no object {str(number)[:80]} before it")
        return self._objects[number]


MOST_READINGS = 64
"""How often each tensor may be used, on average."""
LEAST_BYTES = 2**16


def only(node: Mapping[str, Any], *keys: str) -> None:
    """Raises ValueError if a JSON object has other keys than these."""
    unknown = [key for key in node if key not in (*keys, "$id")]
    if unknown:
        raise ValueError(f"unknown key {unknown[0][:80]!r}")


def typed(value: Any, kind: type, name: str) -> Any:
    """A value of exactly this type. Raises ValueError if it is of another one."""
    if type(value) is not kind:
        raise ValueError(f"{name} must be of type {kind.__name__}, got {type(value).__name__}")
    return value


def _described(value: Any) -> str:
    """What a value is, and what could be done."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if callable(value) and hasattr(value, "__qualname__"):
        return (
            f"it is the function or class {value.__qualname__}, and a model file holds no code; "
            "set it to None before saving, or name what it stands for"
        )
    return f"it is a {kind}, and a model file holds numbers, texts and objects of calibayes only"
