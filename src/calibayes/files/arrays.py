"""Codecs of arrays, of their types, and of NumPy's numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from calibayes.core.protocols import Array
from calibayes.files.codec import Codec, Read, Reader, Writer, of_text, only, typed
from calibayes.files.container import MOST_AXES, NAMES, are_sizes

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
TENSORS: Final[Mapping[str, Read]] = {"$tensor": _read_tensor}
"""Tag -> how such an array is read."""
