"""Columns whose values are in the names of folders (year=2024/month=1/part.parquet), as Hive writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from calibayes.tables.streams.arrow.modules import pyarrow

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""The name that Hive gives a missing value."""


def partition_texts(path: str, folder: str) -> dict[str, str | None]:
    """Column -> value as text, from the folders between a folder and a file in it."""
    between = PurePosixPath(path).parts[len(PurePosixPath(folder).parts) : -1]
    pairs = [part.partition("=") for part in between if "=" in part]
    return {unquote(name): None if text == MISSING else unquote(text) for name, _, text in pairs}


def partition_types(partitions: Sequence[Mapping[str, str | None]], folder: str) -> dict[str, Any]:
    """Column -> type of Arrow: integers if all values are, else text. Raises ValueError if files have other columns."""
    names = partitions[0].keys()
    if any(partition.keys() != names for partition in partitions):
        raise ValueError(f"the files in {folder} lie in folders of different columns (name=value)")
    return {name: _type([partition[name] for partition in partitions]) for name in names}


def _type(texts: Sequence[str | None]) -> Any:
    pa = pyarrow()
    known = [text for text in texts if text is not None]
    are_integers = bool(known) and all(text.lstrip("-").isdecimal() and text.isascii() for text in known)
    return pa.int32() if are_integers and all(abs(int(text)) < 2**31 for text in known) else pa.string()


def partition_values(texts: Mapping[str, str | None], types: Mapping[str, Any]) -> dict[str, Any]:
    """Column -> value as a scalar of Arrow."""
    pa = pyarrow()
    return {name: pa.scalar(text, pa.string()).cast(types[name]) for name, text in texts.items()}


def with_partition(batch: Any, columns: Sequence[str], values: Mapping[str, Any]) -> Any:
    """The columns in their order, with constant ones for the values of a partition."""
    pa = pyarrow()
    arrays = [
        pa.repeat(values[name], batch.num_rows) if name in values else batch.column(name) for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def with_partition_fields(schema: Any, types: Mapping[str, Any]) -> Any:
    """The schema of files with those columns of their partition that they do not have themselves."""
    for name, kind in types.items():
        schema = schema if name in schema.names else schema.append(pyarrow().field(name, kind))
    return schema
