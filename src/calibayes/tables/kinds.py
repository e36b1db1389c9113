"""Kinds of objects that hold a table, recognized by their types: nothing is imported or read for it."""

from __future__ import annotations

import os
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

ENVIRONMENT_VARIABLE = "CALIBAYES_MEMORY"
DEFAULT_BUDGET = 2**28
"""Bytes of encoded rows that are kept in memory."""
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def dask_kind(data: Any) -> str | None:
    """ "frame", "series" or "array" for a Dask collection, None for anything else."""
    module, name = type(data).__module__, type(data).__name__
    if not module.startswith("dask."):
        return None
    if module.startswith("dask.array"):
        return "array"
    return {"DataFrame": "frame", "Series": "series"}.get(name)


def is_path(source: Any) -> bool:
    """Whether an object is a path, or a list of paths."""
    paths = source if isinstance(source, list | tuple) else [source]
    return bool(paths) and all(isinstance(path, str | os.PathLike) for path in paths)


def is_duckdb(source: Any) -> bool:
    """Whether an object is a relation of DuckDB."""
    return type(source).__name__ == "DuckDBPyRelation"


def is_of_pyarrow(source: Any) -> bool:
    """Whether an object is a dataset, table or batch of pyarrow; looked up by name, without an import."""
    return any(
        kind.__module__.partition(".")[0] == "pyarrow"
        and kind.__name__ in ("Dataset", "RecordBatch", "Table")
        for kind in type(source).__mro__
    )


def is_streamed(source: Any) -> bool:
    """Whether an object is read in chunks, rather than into memory as a whole.

    False for arrays, lists of rows and data frames in memory, and for memory-mapped arrays of no more bytes than
    `memory_budget`.
    """
    if isinstance(source, np.ndarray):
        return isinstance(source, np.memmap) and source.nbytes > memory_budget()
    if dask_kind(source) is not None:
        return True
    if nw.dependencies.is_into_dataframe(source) or nw.dependencies.is_into_series(source):
        return False
    if is_path(source) or nw.dependencies.is_polars_lazyframe(source):
        return True
    if hasattr(source, "__arrow_c_stream__") or is_of_pyarrow(source) or is_duckdb(source):
        return True
    return callable(source) and not isinstance(source, type) and not hasattr(source, "__array__")


def memory_budget() -> int:
    """Bytes that encoded rows may take in memory: the environment variable CALIBAYES_MEMORY, such as 512M or 2G."""
    text = os.environ.get(ENVIRONMENT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_BUDGET
    number = text.lower().removesuffix("ib").removesuffix("b")
    unit = number[-1:] if number[-1:] in UNITS else ""
    try:
        budget = int(float(number.removesuffix(unit)) * UNITS[unit])
    except (ValueError, OverflowError):
        budget = -1
    if budget < 0:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} must be a number of bytes such as 512M or 2G, got {text!r}")
    return budget


def taken_out(X: Any, y: Any, sample_weight: Any = None) -> tuple[Any, Any, Any]:
    """A data frame without the columns that ``y`` and ``sample_weight`` name, and these columns as arrays.

    What is no name is returned as it is. Raises ValueError if there is no such column.
    """
    names = [name for name in (y, sample_weight) if isinstance(name, str)]
    if not names:
        return X, y, sample_weight
    if not nw.dependencies.is_into_dataframe(X):
        raise ValueError(
            f"{names[0]!r} is to be a column of X, but the columns of a {type(X).__name__} have no names: pass a data frame, or "
            "one value for each row"
        )
    frame = nw.from_native(X, eager_only=True)
    lacking = [name for name in names if name not in frame.columns]
    if lacking:
        columns = ", ".join(map(str, frame.columns))
        raise ValueError(f"there is no column {lacking[0]!r}; the columns are {columns}")
    taken = [frame[part].to_numpy() if isinstance(part, str) else part for part in (y, sample_weight)]
    return frame.drop(names).to_native(), *taken
