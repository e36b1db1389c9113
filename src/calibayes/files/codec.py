"""From values to JSON and tensors, and back.

Texts, booleans, whole and finite numbers and None are themselves; a JSON list is a tuple; a JSON object without a key that
begins with ``$`` is a mapping. Everything else is an object with one such key, its tag: a `Codec` writes and reads it.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeAlias
from uuid import UUID

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.files.container import MOST_AXES, MOST_VALUES, NAMES, ModelFileError, are_sizes
from calibayes.tables.read import array_names

UNCHANGED = {str, bool, type(None)}
"""Types of values that are written as they are."""
MOST_WHOLE = 10**300
"""Whole numbers beyond it are not written."""
SHORTEST = 1000
"""Least number of entries of a tuple that is written in a short form."""
INVALID = (ValueError, TypeError, KeyError, IndexError, ArithmeticError, AttributeError, RecursionError)
"""Errors of objects that are made from invalid parts."""


Write: TypeAlias = "Callable[[Any, str, Writer], dict[str, Any]]"
"""(value, path, writer) -> JSON object with a tag."""
Read: TypeAlias = "Callable[[Mapping[str, Any], str, Reader], Any]"
"""(JSON object with a tag, path, reader) -> value. Raises ValueError if the object is invalid."""


@dataclass(frozen=True)
class Codec:
    """How values of some types are written as a JSON object with one tag (a key that begins with ``$``), and read back."""

    tag: str
    write: Write
    read: Read


@dataclass
class Writer:
    """Collects tensors while values are written. ``writes`` are looked up by the exact type of a value."""

    writes: Mapping[Any, Write]
    tensors: dict[str, Array] = field(default_factory=dict)
    _names: dict[Any, tuple[str, Array]] = field(default_factory=dict)
    _objects: dict[int, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    _numbers: int = 0

    def write(self, value: Any, path: str) -> Any:
        """The JSON of a value; ``path`` says where it is, for names of tensors and error messages."""
        kind = type(value)
        is_short = (kind is float and math.isfinite(value)) or (kind is int and abs(value) <= MOST_WHOLE)
        if kind in UNCHANGED or is_short:
            return value
        if kind is tuple:
            return short_form(value, path, self) or self.write_all(value, path)
        if isinstance(value, Mapping) and all(type(key) is str and key[:1] != "$" for key in value):
            return {key: self.write(part, f"{path}.{key}") for key, part in value.items()}
        write = self.writes.get(Mapping if isinstance(value, Mapping) else kind)
        if write is None:
            raise ModelFileError(f"{path[:LONGEST_PATH]} cannot be saved: {unknown_type(value)}")
        try:
            return write(value, path, self)
        except ModelFileError:
            raise
        except INVALID as error:
            raise ModelFileError(f"{path[:LONGEST_PATH]} cannot be saved: {reason(error)}") from error

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
    """Makes values from JSON and tensors. ``reads`` are looked up by tag."""

    reads: Mapping[str, Read]
    tensors: Mapping[str, Array]
    used: set[str] = field(default_factory=set)
    _objects: dict[int, tuple[Any, int]] = field(default_factory=dict)
    _size: int = field(init=False)
    _work: int = 0
    _text_bytes: int = 0
    _repeated: int = 0

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
        if tag not in self.reads:
            raise ModelFileError(f"{_printable(path)} has the unknown tag {tag[:LONGEST_NAME]!r}")
        before = self._work
        try:
            value = self.reads[tag](node, path, self)
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

    def count_repeated(self, times: Any) -> int:
        """A number of entries that a short form stands for. Raises ValueError if all of them are too many."""
        self._repeated += max(typed(times, int, "the number of entries"), 0)
        if times < 0 or self._repeated > MOST_REPEATED:
            raise ValueError(f"tuples of more than {MOST_REPEATED:,} entries are not allowed")
        return int(times)

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
MOST_REPEATED = 2**24
"""Largest number of entries of all tuples in a short form together."""
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


def unknown_type(value: Any) -> str:
    """Why a value of a type that is not known cannot be saved, and what could be done."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if callable(value) and hasattr(value, "__qualname__"):
        return f"it is the function or class {value.__qualname__}, and a model file holds no code: give None, a list or an object of calibayes"
    if type(value) is int:
        return f"a whole number of {len(str(abs(value)))} digits is too large"
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        return f"it is of the type {kind}: give a list or an array instead"
    return (
        f"it is of the type {kind}; a model file holds texts, dates, numbers of at most 64 bits and objects of calibayes: "
        "use one of these, or for cells of a table their text"
    )


def short_form(values: tuple[Any, ...], path: str, writer: Writer) -> dict[str, Any] | None:
    """A long tuple of equal values, of consecutive numbers or of the names of unnamed columns; None for others."""
    n, kinds = len(values), set(map(type, values))
    if n < SHORTEST or len(kinds) > 1 or not (kinds <= {*UNCHANGED, int} or isinstance(values[0], np.dtype)):
        return None
    first = values[0]
    if values.count(first) == n:
        return {"$repeat": writer.write(first, path), "times": n}
    if kinds == {int} and values == tuple(range(first, first + n)):
        return {"$count": [first, n]}
    return {"$names": n} if first == "x0" and values == array_names(n) else None


def _read_repeat(node: Mapping[str, Any], path: str, reader: Reader) -> tuple[Any, ...]:
    only(node, "$repeat", "times")
    value = reader.read(node["$repeat"], path)
    if type(value) not in {*UNCHANGED, int} and not isinstance(value, np.dtype):
        raise ValueError(f"values of the type {type(value).__name__} cannot be repeated")
    return (value,) * reader.count_repeated(node["times"])


def _read_count(node: Mapping[str, Any], path: str, reader: Reader) -> tuple[int, ...]:
    only(node, "$count")
    first, n = typed(node["$count"], list, "$count")
    return tuple(range(typed(first, int, "$count"), first + reader.count_repeated(n)))


def _read_names(node: Mapping[str, Any], path: str, reader: Reader) -> tuple[str, ...]:
    only(node, "$names")
    return _names(reader.count_repeated(node["$names"]))


@lru_cache(maxsize=1)
def _names(n: int) -> tuple[str, ...]:
    """The names of n columns, which are in a document several times."""
    return array_names(n)


SHORT_FORMS: Mapping[str, Read] = {"$repeat": _read_repeat, "$count": _read_count, "$names": _read_names}
"""Tag -> how such a tuple is read."""


# -- Codecs of plain values that JSON lacks: lists beside tuples, mappings with any keys, infinity, dates, random states

LONGEST_DECIMAL: Final = 1000
FLOATS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
LIBRARIES: Final = {
    name: nw.Implementation[name] for name in ("PANDAS", "MODIN", "CUDF", "PYARROW", "POLARS")
}
"""Libraries of data frames that a model returns rows as."""


def of_text(tag: str, write: Callable[[Any], str], read: Callable[[str], Any]) -> Codec:
    """A codec of values that are written as one text."""

    def read_text(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        only(node, tag)
        return read(typed(node[tag], str, tag))

    return Codec(tag, lambda value, path, writer: {tag: write(value)}, read_text)


def of_parts(tag: str, parts: Callable[[Any], Sequence[Any]], make: Callable[..., Any]) -> Codec:
    """A codec of values that are made from a few others."""

    def write_parts(value: Any, path: str, writer: Writer) -> dict[str, Any]:
        return {tag: writer.write_all(parts(value), path)}

    def read_parts(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
        only(node, tag)
        return make(*reader.read_all(typed(node[tag], list, tag), path))

    return Codec(tag, write_parts, read_parts)


def _mapping(*pairs: tuple[Any, Any]) -> dict[Any, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("the same key twice")
    return made


def _range(*parts: Any) -> range:
    made = range(*parts)
    if not -MOST_VALUES <= made.start <= MOST_VALUES or not -MOST_VALUES <= made.stop <= MOST_VALUES:
        raise ValueError(f"a range may not go beyond {MOST_VALUES:,}")
    return made


def _random_state(*state: Any) -> np.random.RandomState:
    made = np.random.RandomState(0)
    made.set_state(("MT19937", *state))
    return made


def _short(text: str) -> str:
    if len(text) > LONGEST_DECIMAL:
        raise ValueError(f"a decimal number of more than {LONGEST_DECIMAL} digits is not allowed")
    return text


PLAIN_VALUES: Final[Mapping[Any, Codec]] = {
    list: of_parts("$list", list, lambda *parts: list(parts)),
    Mapping: of_parts("$pairs", lambda value: tuple(value.items()), _mapping),
    slice: of_parts("$slice", lambda value: (value.start, value.stop, value.step), slice),
    range: of_parts("$range", lambda value: (value.start, value.stop, value.step), _range),
    np.random.RandomState: of_parts("$random_state", lambda value: value.get_state()[1:], _random_state),
    float: of_text("$float", repr, FLOATS.__getitem__),
    Decimal: of_text("$decimal", str, lambda text: Decimal(_short(text))),
    bytes: of_text("$bytes", bytes.hex, bytes.fromhex),
    datetime.date: of_text("$date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: of_text("$datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    datetime.time: of_text("$time", datetime.time.isoformat, datetime.time.fromisoformat),
    datetime.timedelta: of_parts(
        "$timedelta", lambda value: (value.days, value.seconds, value.microseconds), datetime.timedelta
    ),
    Fraction: of_parts("$fraction", lambda value: (value.numerator, value.denominator), Fraction),
    UUID: of_text("$uuid", str, UUID),
    nw.Implementation: of_text("$library", lambda value: value.name, LIBRARIES.__getitem__),
}
"""Type -> codec."""


# -- Codecs of arrays, of their types and of NumPy's scalars -------------------------------------------------


DTYPE: Final = re.compile(r"[<>|]([biuf]\d{1,2}|O|[US]\d{1,7}|[mM]8\[(\d{1,6})?(Y|M|W|D|h|m|s|ms|us|ns)\])")
"""The types that are known, as ``numpy.dtype.str``."""
MOST_AXIS: Final = 2**27
"""Longest axis of an array that is written as a list, which may be empty."""
PYTHON_TYPES: Final = {"b": bool, "i": int, "u": int, "f": float, "U": str, "S": bytes}


def dtype_text(dtype: np.dtype[Any]) -> str:
    if DTYPE.fullmatch(dtype.str) is None:
        raise ValueError(f"the type {dtype} cannot be saved")
    return dtype.str


def dtype_of(text: str) -> np.dtype[Any]:
    if DTYPE.fullmatch(typed(text, str, "a type")) is None:
        raise ValueError(f"unknown type {text[:80]!r}")
    return np.dtype(text)


def _write_scalar(value: np.generic, path: str, writer: Writer) -> dict[str, Any]:
    """A NumPy number, text, date or duration; dates and durations are whole numbers of their unit."""
    plain = value.view(np.int64).item() if value.dtype.kind in "mM" else value.item()
    return {"$scalar": writer.write(plain, path), "type": dtype_text(value.dtype)}


def _read_scalar(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    only(node, "$scalar", "type")
    dtype, plain = dtype_of(node["type"]), reader.read(node["$scalar"], path)
    if dtype.kind in "mM":
        return np.int64(typed(plain, int, "$scalar")).view(dtype)
    return dtype.type(typed(plain, PYTHON_TYPES[dtype.kind], "$scalar"))


def _write_array(value: Array, path: str, writer: Writer) -> dict[str, Any]:
    """A tensor; dates are one of whole numbers. Arrays of texts and of objects, and empty ones, are lists of their values."""
    if value.dtype.kind in "mM" and value.size:
        return {**_write_tensor(value.view(np.int64), path, writer), "type": dtype_text(value.dtype)}
    little = value.dtype.newbyteorder("<")
    if little in NAMES and value.size:
        tensor = _write_tensor(value.astype(little, copy=False), path, writer)
        return tensor if value.dtype == little else {**tensor, "type": dtype_text(value.dtype)}
    shape = {"shape": list(value.shape)} if value.ndim != 1 else {}
    cells = writer.write_all(value.reshape(-1).tolist(), path)
    return {"$array": cells, "type": dtype_text(value.dtype), **shape}


def _write_tensor(value: Array, path: str, writer: Writer) -> dict[str, Any]:
    """An array in Fortran order is written transposed, so that it is read in the same order."""
    if value.flags.c_contiguous or not value.flags.f_contiguous:
        return {"$tensor": writer.tensor_name(value, path)}
    return {"$tensor": writer.tensor_name(value.T, path), "transposed": True}


def _read_tensor(node: Mapping[str, Any], path: str, reader: Reader) -> Array:
    only(node, "$tensor", "transposed", "type")
    array = reader.tensor(node["$tensor"])
    array = array.T if typed(node.get("transposed", False), bool, "transposed") else array
    if "type" not in node:
        return array
    dtype = dtype_of(node["type"])
    if dtype.kind in "mM" and array.dtype == np.int64:
        return array.view(dtype)
    if dtype.newbyteorder("<") == array.dtype:
        return array.astype(dtype)
    raise ValueError("the type beside a tensor is that of dates, or the same in another order of bytes")


def _read_array(node: Mapping[str, Any], path: str, reader: Reader) -> Array:
    only(node, "$array", "type", "shape")
    dtype, cells = dtype_of(node["type"]), reader.read_all(typed(node["$array"], list, "$array"), path)
    if cells and dtype.kind not in "OUS":
        raise ValueError(f"an array of {len(cells)} values of the type {dtype} is not allowed")
    reader.count_text(dtype.itemsize * len(cells))
    made = np.empty(len(cells), dtype=dtype)
    for place, cell in enumerate(cells):
        made[place] = cell if dtype.kind == "O" else typed(cell, PYTHON_TYPES[dtype.kind], "a text")
    if dtype.kind in "US" and made.tolist() != list(cells):
        raise ValueError("texts are longer than their type allows")
    return made.reshape(_shape(node["shape"])) if "shape" in node else made


def _shape(given: Any) -> list[int]:
    if not are_sizes(given, MOST_AXES) or max(given, default=0) > MOST_AXIS:
        raise ValueError("the shape is invalid or too large")
    return list(given)


_array = Codec("$array", _write_array, _read_array)
_scalar = Codec("$scalar", _write_scalar, _read_scalar)
_dtype = of_text("$dtype", dtype_text, dtype_of)
_scalar_types = {
    *(np.str_, np.bytes_, np.datetime64, np.timedelta64, np.longlong, np.ulonglong),
    *(dtype.type for dtype in NAMES),
}
_dtype_types = {*map(type, NAMES), *(type(np.dtype(kind)) for kind in "OUSMmg")}

ARRAYS: Final[Mapping[Any, Codec]] = {
    np.ndarray: _array,
    **dict.fromkeys(_scalar_types, _scalar),
    **dict.fromkeys(_dtype_types, _dtype),
}
"""Type -> codec."""


def _read_same(node: Mapping[str, Any], path: str, reader: Reader) -> Any:
    """The object that was read before and has this number."""
    only(node, "$same")
    return reader.same(node["$same"])


REFERENCES: Final[Mapping[str, Read]] = {"$tensor": _read_tensor, "$same": _read_same}
"""Tag -> how an array is read that is a tensor, and an object that is in the document before."""


def writes_and_reads(codecs: Mapping[Any, Codec]) -> tuple[dict[Any, Write], dict[str, Read]]:
    """Type -> how its values are written, and tag -> how such an object is read."""
    writes = {kind: entry.write for kind, entry in codecs.items()}
    reads = {entry.tag: entry.read for entry in codecs.values()}
    return writes, {**reads, **SHORT_FORMS, **REFERENCES}
