"""Columns of Arrow as arrays: the same values and types that `tables.read.read_frame` finds, without an object per row."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.read import series_values
from calibayes.tables.streams.arrow.modules import pyarrow


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is one of strings."""
    types = pyarrow().types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or (hasattr(types, "is_string_view") and types.is_string_view(kind))
    )


def stored_column(column: Any, name: str) -> Array | CodedColumn:
    """A chunked array of Arrow as an array, or as a `CodedColumn` if it holds text, or booleans with missing cells."""
    types, kind = pyarrow().types, column.type
    if is_text(kind) or (types.is_dictionary(kind) and is_text(kind.value_type)):
        return _coded_text(column)
    if types.is_boolean(kind):
        return _booleans(column)
    if types.is_float64(kind) or (types.is_integer(kind) and not column.null_count):
        return _one_array(column).to_numpy(zero_copy_only=False)
    return series_values(nw.from_native(column, series_only=True).alias(name))


def _one_array(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _booleans(column: Any) -> Array | CodedColumn:
    if not column.null_count:
        return _one_array(column).to_numpy(zero_copy_only=False)
    places = column.cast(pyarrow().int8()).fill_null(2).to_numpy()
    return _used(np.array([False, True], dtype=object), places)


def _coded_text(column: Any) -> CodedColumn:
    """Text as sorted distinct values and codes."""
    pa = pyarrow()
    if not pa.types.is_dictionary(column.type):
        is_view = not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        column = (column.cast(pa.large_string()) if is_view else column).dictionary_encode()
    encoded = _one_array(column.unify_dictionaries() if column.num_chunks > 1 else column)
    size = len(encoded.dictionary)
    indices = encoded.indices
    if indices.null_count:
        indices = (indices if indices.type.bit_width > 16 else indices.cast(pa.int64())).fill_null(size)
    places = indices.to_numpy(zero_copy_only=False)
    used = np.flatnonzero(np.bincount(places, minlength=size + 1)[:size])
    texts = encoded.dictionary.take(pa.array(used)).to_pylist()
    return _sorted_codes(texts, used, places, size)


def _sorted_codes(texts: list[str | None], used: Array, places: Array, size: int) -> CodedColumn:
    """Codes of the sorted distinct texts, from places in a dictionary of ``size`` entries, ``used`` of which occur."""
    values = sorted({text for text in texts if text is not None})
    code_of = {text: code for code, text in enumerate(values)}
    new_codes = np.full(size + 1, len(values))
    new_codes[used] = [len(values) if text is None else code_of[text] for text in texts]
    return CodedColumn(np.array(values, dtype=object), new_codes[places])


def _used(values: Array, places: Array) -> CodedColumn:
    """A coded column from places in sorted values (v where missing), without the values that do not occur."""
    occurs = np.bincount(places, minlength=len(values) + 1)[:-1] > 0
    new_codes = np.append(np.cumsum(occurs) - 1, occurs.sum())
    return CodedColumn(values[occurs], new_codes[places])
