"""Open whatever holds rows of a table as a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.backends.dask.frame import DaskStream
from calibayes.streams.arrow import (
    ArrowStream,
    Readable,
    read_duckdb,
    read_exporter,
    read_factory,
    read_lazyframe,
)
from calibayes.streams.chunks import RowStream, chunk_rows
from calibayes.streams.memory import ArrayStream, TableSource
from calibayes.streams.table_files import (
    FoundFile,
    found_files,
    read_csv_files,
    read_dataset,
    read_ipc_files,
    read_parquet_files,
)
from calibayes.tables.read import dask_kind, is_duckdb, is_of_pyarrow, is_path, module_of_pyarrow, pyarrow


def open_stream(source: Any, y: Any, sample_weight: Any = None) -> RowStream:
    """A stream of the rows of files, Arrow data or a function that returns a reader.

    Parameters
    ----------
    source : path or list of paths, dataset or table of pyarrow, DuckDB relation, polars LazyFrame, object with \
            ``__arrow_c_stream__``, function, array, Dask data frame or array
        Paths may be globs, folders (also with partitions such as year=2024) and addresses such as s3://bucket/file.
        Files are Parquet, Arrow IPC or CSV, by the ending of their names. A function returns a fresh reader of Arrow
        batches each time it is called.
    y : str, array or None
        Name of the column of labels, or the labels of all rows.
    sample_weight : str, array or None
        Name of the column of weights, or the weights of all rows.

    Raises
    ------
    ValueError
        If there are no rows, columns are missing, files have different columns, or the source can be read only once.
    OSError
        If a file cannot be read.
    """
    if dask_kind(source) is not None:
        return DaskStream(source, _role(y), _role(sample_weight))
    if isinstance(source, np.ndarray):
        return ArrayStream(source, _role(y), _role(sample_weight))
    return ArrowStream(_readable(source), _role(y), _role(sample_weight))


def _role(column: Any) -> Any:
    if column is None or isinstance(column, str | np.ndarray) or dask_kind(column) is not None:
        return column
    return np.asarray(column)


def _readable(source: Any) -> Readable:
    if is_path(source):
        return _read_files(found_files(source), _shown(source))
    _refuse_read_once(source)
    for is_kind, read in READERS:
        if is_kind(source):
            return read(source)
    raise ValueError(
        f"rows cannot be read from a {type(source).__name__}: give a path, a dataset of pyarrow, an object with "
        "__arrow_c_stream__ or a function that returns a reader of Arrow batches"
    )


def _shown(source: Any) -> str:
    """A path, or the first of several, for messages."""
    if not isinstance(source, list | tuple):
        return str(source)
    return f"{source[0]} and {len(source) - 1} more" if len(source) > 1 else str(source[0])


def _read_files(files: Sequence[FoundFile], where: str) -> Readable:
    return FILE_READERS[files[0].kind](files, where)


def _read_table(table: Any) -> Readable:
    """A table or a batch of Arrow."""
    whole = pyarrow().Table.from_batches([table]) if isinstance(table, pyarrow().RecordBatch) else table
    if whole.num_rows == 0:
        raise ValueError("the table has no rows")
    source = TableSource(whole, chunk_rows(whole.num_columns))
    return Readable(whole.schema, whole.schema.empty_table(), source, "the table")


def _refuse_read_once(source: Any) -> None:
    """Raises ValueError for a reader, whose rows are gone after one pass."""
    if type(source).__name__ == "RecordBatchReader" or hasattr(source, "__next__"):
        raise ValueError(
            f"a {type(source).__name__} can be read only once, but training reads the rows several times: pass a "
            "function without arguments that makes one, such as lambda: connection.execute(query).to_arrow_reader()"
        )


def _is_dataset(source: Any) -> bool:
    return is_of_pyarrow(source) and isinstance(source, module_of_pyarrow("dataset").Dataset)


def _is_arrow_table(source: Any) -> bool:
    return is_of_pyarrow(source) and isinstance(source, (pyarrow().Table, pyarrow().RecordBatch))


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Readable]], ...] = (
    (_is_dataset, read_dataset),
    (_is_arrow_table, _read_table),
    (is_duckdb, read_duckdb),
    (nw.dependencies.is_polars_lazyframe, read_lazyframe),
    (lambda source: hasattr(source, "__arrow_c_stream__"), read_exporter),
    (callable, read_factory),
)
"""Whether an object is of a kind, and how it is read; the first that fits is taken."""
FILE_READERS: dict[str, Callable[[Sequence[FoundFile], str], Readable]] = {
    "parquet": read_parquet_files,
    "ipc": read_ipc_files,
    "csv": read_csv_files,
}
