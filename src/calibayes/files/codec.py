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
UNCHANGED = {str, bool, type(None)}
"""Types of values that are written as they are."""
MOST_WHOLE = 10**300
"""Whole numbers beyond it are not written."""
INVALID = (
    *(ValueError, TypeError, KeyError, IndexError),
    *(ArithmeticError, AttributeError, RecursionError),
)
"""Errors of objects that are made from invalid parts."""


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
    _names: dict[Any, tuple[str, Array]] = field(default_factory=dict)
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
        if set(map(type, values)) <= UNCHANGED:
            return list(values)
        return [self.write(value, f"{path}[{place}]") for place, value in enumerate(values)]

    def tensor_name(self, array: Array, path: str) -> str:
        """The name of a tensor with the content of an array in C order. The same memory is written once."""
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype)
        if key not in self._names:
            name = re.sub(r"[^A-Za-z0-9_.\[\]]+", "_", path.partition(".")[2])
            unique = name if name not in self.tensors else f"{name}#{len(self.tensors)}"
            self.tensors[unique] = np.ascontiguousarray(array).reshape(array.shape)
            self._names[key] = (unique, array)  # which keeps the memory from being used for another array
        return self._names[key][0]

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
    _objects: dict[int, tuple[Any, int]] = field(default_factory=dict)
    _size: int = field(init=False)
    _work: int = 0
    _text_bytes: int = 0

    def __post_init__(self) -> None:
        self._size = LEAST_SIZE + sum(array.nbytes for array in self.tensors.values())

    def read(self, node: Any, path: str) -> Any:
        """The value of a JSON node. Raises ModelFileError if it is invalid."""
        self._size, self._work = self._size + 1, self._work + 1
        if isinstance(node, list):
            return self.read_all(node, path)
        if not isinstance(node, dict):
            return node
        tags = [key for key in node if key[:1] == "$" and key != "$id"]
        if not tags and "$id" not in node:
            start = path[:LONGEST_PATH]
            return {key: self.read(part, f"{start}.{key[:LONGEST_NAME]}") for key, part in node.items()}
        return self._read_tagged(node, (tags or ["$id"])[0], path)

    def read_all(self, nodes: Sequence[Any], path: str) -> tuple[Any, ...]:
        if set(map(type, nodes)).isdisjoint((list, dict)):
            self._size, self._work = self._size + len(nodes), self._work + len(nodes)
            return tuple(nodes)
        start = path[:LONGEST_PATH]
        return tuple(self.read(node, f"{start}[{place}]") for place, node in enumerate(nodes))

    def _read_tagged(self, node: Mapping[str, Any], tag: str, path: str) -> Any:
        if tag not in self.codecs:
            raise ModelFileError(f"{_printable(path)} has the unknown tag {tag[:LONGEST_NAME]!r}")
        before = self._work
        try:
            value = self.codecs[tag].read(node, path, self)
            if "$id" in node:
                self._note(node["$id"], value, self._work - before)
        except ModelFileError:
            raise
        except INVALID as error:
            raise ModelFileError(f"{_printable(path)} is invalid: {reason(error)}") from error
        return value

    def _note(self, number: Any, value: Any, work: int) -> None:
        if typed(number, int, "$id") in self._objects:
            raise ValueError(f"the $id {number} is given twice")
        self._objects[number] = (value, work)

    def _repeat(self, work: int) -> None:
        """Count what is read again. References may not make much more work than the file is large."""
        self._work += work
        if self._work > MOST_READINGS * self._size:
            raise ValueError("objects or tensors are used too often")

    def count_text(self, size: int) -> None:
        """Count the bytes of arrays of texts. Raises ValueError if they are too many."""
        self._text_bytes += size
        if self._text_bytes > MOST_TEXT_BYTES:
            raise ValueError(f"arrays of texts of more than {MOST_TEXT_BYTES:,} bytes are not allowed")

    def tensor(self, name: Any) -> Array:
        """A tensor by name."""
        if not isinstance(name, str) or name not in self.tensors:
            raise ValueError(f"there is no tensor {str(name)[:80]!r}")
        self.used.add(name)
        self._repeat(self.tensors[name].nbytes)
        return self.tensors[name]

    def same(self, number: Any) -> Any:
        """An object that was read before."""
        if type(number) is not int or number not in self._objects:
            raise ValueError(f"there is no object {str(number)[:80]} before it")
        value, work = self._objects[number]
        self._repeat(work)
        return value


MOST_READINGS = 64
"""How often each value and each byte of a tensor may be used, on average."""
LEAST_SIZE = 2**16
MOST_TEXT_BYTES = 2**28
"""Largest size of all arrays of texts of fixed width together."""
LONGEST_PATH, LONGEST_NAME = 300, 80
"""Longer ones are cut off, so that messages and the work for them are bounded."""


def reason(error: BaseException) -> str:
    """The message of an error in one line."""
    text = f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
    return _printable(" ".join(text.split()))


def _printable(text: str) -> str:
    return "".join(mark if mark.isprintable() else "?" for mark in text[:LONGEST_PATH])


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
