"""Columns of text of Arrow as distinct values and codes, without a Python object per row."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.table import CodedColumn

# -- pyarrow, which is optional and imported when it is needed -----------------------------------------------


def pyarrow() -> Any:
    """The package pyarrow. Raises ImportError that says how to install it."""
    return module_of_pyarrow("")


@cache
def module_of_pyarrow(name: str) -> Any:
    """A module of pyarrow, such as "dataset"; the package itself for an empty name."""
    try:
        return importlib.import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError as error:
        raise ImportError(
            "reading files and Arrow streams chunk by chunk needs pyarrow: pip install 'calibayes[parquet]'"
        ) from error


# -- Columns of text of Arrow as distinct values and codes, without a Python object per row ------------------


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is one of strings."""
    types = pyarrow().types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or (hasattr(types, "is_string_view") and types.is_string_view(kind))
    )


def holds_text(kind: Any) -> bool:
    """Whether the values of a type of Arrow are strings, written out or as positions in a dictionary."""
    return is_text(kind.value_type if pyarrow().types.is_dictionary(kind) else kind)


def one_array(column: Any) -> Any:
    """A chunked array as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def coded_text(column: Any) -> CodedColumn:
    """An array, or a chunked array, of text as sorted distinct values and codes."""
    pa = pyarrow()
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not pa.types.is_dictionary(column.type):
        is_view = not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        column = (column.cast(pa.large_string()) if is_view else column).dictionary_encode()
    encoded = one_array(column.unify_dictionaries() if column.num_chunks > 1 else column)
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
