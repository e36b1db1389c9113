"""Open files, Arrow data, queries and arrays as streams of rows, and use streams as tables of estimators."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from numbers import Number
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d

from calibayes.core.notices import ProgressReporter, counted
from calibayes.core.protocols import AnyArray, Array, Engine
from calibayes.engines import engine_for, is_distributed
from calibayes.kernels.dispatch import most_threads
from calibayes.model.checked_rows import AS_GIVEN, Reading, convert, read_weight, require_labels, set_names
from calibayes.model.table_inputs import InMemory, OfTable, TableInput
from calibayes.streams import arrow, table_files
from calibayes.streams.chunks import Chunk, ChunkSource, RowStream, chunk_rows, read_ahead
from calibayes.streams.streamed_rows import StreamedRows, read_labels, silent
from calibayes.tables import read
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.origin import FROM_ARRAY, Origin
from calibayes.tables.summary import SAMPLE_ROWS

# -- Tables of Arrow in memory, and memory-mapped arrays ------------------------------------------------------


def _parts_of_table(table: Any, columns: Sequence[str]) -> Iterator[arrow.ArrowRows]:
    """The named columns of a table of Arrow."""
    chosen, size = table.select(list(columns)), chunk_rows(table.num_columns)
    for first in range(0, table.num_rows, size):
        read = partial(chosen.slice, first, size)
        yield arrow.ArrowRows(first, min(size, table.num_rows - first), "the table", read)


@dataclass(frozen=True)
class ArrayStream:
    """`RowStream` of an array (n, d), memory-mapped or in memory."""

    array: Array
    labels: Array | None
    weight: Array | None

    def __post_init__(self) -> None:
        if self.array.ndim != 2 or 0 in self.array.shape:
            raise ValueError(f"the array must have the shape (rows, columns), got {self.array.shape}")
        for role, values in (("labels", self.labels), ("weights", self.weight)):
            if isinstance(values, str):
                raise ValueError(
                    f"the columns of an array have no names: give an array of {role} instead of {values!r}"
                )
            if values is not None and len(values) != self.rows:
                number = counted(len(values), "value")
                raise ValueError(f"{number} in the {role} of {counted(self.rows, 'row')}")

    @property
    def names(self) -> tuple[str, ...]:
        return read.array_names(self.array.shape[1])

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        return read.read_array(self.array[:0], self.names).types()

    @property
    def origin(self) -> Origin:
        return FROM_ARRAY

    @property
    def rows(self) -> int:
        return len(self.array)

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Callable[[], Chunk]]:
        names = self.names if columns is None else tuple(columns)
        if unknown := read.names_beyond(names, self.names):
            raise ValueError(f"there is no column {unknown[0]!r}; the columns are x0 to {self.names[-1]}")
        size = chunk_rows(self.array.shape[1])
        for first in range(0, self.rows, size):
            yield partial(self._chunk, names, first, min(first + size, self.rows))

    def _chunk(self, names: tuple[str, ...], first: int, stop: int) -> Chunk:
        places = [int(name.removeprefix("x")) for name in names] if names != self.names else slice(None)
        cells = array_rows(self.array, first, stop)[:, places] if names else np.empty((stop - first, 0))
        roles = (self.labels, self.weight)
        labels, weight = (None if values is None else array_rows(values, first, stop) for values in roles)
        return Chunk(read.read_array(cells, names), labels, weight, first)


def array_rows(array: AnyArray, start: int, stop: int) -> Array:
    """Consecutive rows of an array as a copy; those of a memory-mapped file are read, so that no page stays mapped."""
    if not _is_plain_file(array):
        return np.array(array[start:stop])
    width = int(np.prod(array.shape[1:]))
    offset = array.offset + start * width * array.dtype.itemsize
    cells = np.fromfile(array.filename, array.dtype, (stop - start) * width, offset=offset)
    return cells.reshape(stop - start, *array.shape[1:])


def _is_plain_file(array: Array) -> bool:
    """Whether an array is a memory-mapped file as a whole, row after row, without changes that only memory has."""
    if not isinstance(array, np.memmap) or array.filename is None:
        return False
    base: Any = array.base
    return isinstance(base, mmap.mmap) and array.mode in ("r", "r+", "w+") and array.flags.c_contiguous


# -- Streams of sources of all kinds --------------------------------------------------------------------------


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
    is_lazy = read.dask_kind(source) is not None
    labels = _values("y", y, is_lazy=is_lazy)
    weight = _values("sample_weight", sample_weight, is_lazy=is_lazy)
    if is_lazy:
        from calibayes.backends.dask.frame import DaskStream

        return DaskStream(source, labels, weight)
    if isinstance(source, np.ndarray):
        return ArrayStream(source, labels, weight)
    return arrow.ArrowStream(_readable(source), labels, weight)


def _values(role: str, given: Any, *, is_lazy: bool) -> Any:
    """A name, or an array (n,). Dask collections are computed, unless they belong to one."""
    if given is None or isinstance(given, str) or (is_lazy and read.dask_kind(given) is not None):
        return given
    values = np.asarray(given)
    if values.ndim == 0:
        raise ValueError(f"{role} must be the name of a column or have one value for each row, got {given!r}")
    return values if values.ndim == 1 else column_or_1d(values, warn=True)


def _readable(source: Any) -> arrow.Readable:
    if read.is_path(source):
        files = table_files.found_files(source)
        return FILE_READERS[files[0].kind](files, _shown(source))
    _refuse_read_once(source)
    for is_kind, reader in READERS:
        if is_kind(source):
            return reader(source)
    raise ValueError(
        f"rows cannot be read from a {type(source).__name__}: give a path, a dataset of pyarrow, an object with "
        "__arrow_c_stream__ or a function that returns a reader of Arrow batches"
    )


def _shown(source: Any) -> str:
    """A path, or the first of several, for messages."""
    if not isinstance(source, list | tuple):
        return str(source)
    return f"{source[0]} and {len(source) - 1} more" if len(source) > 1 else str(source[0])


def _read_table(table: Any) -> arrow.Readable:
    """A table or a batch of Arrow."""
    pa = read.pyarrow()
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if table.num_rows == 0:
        raise ValueError("the table has no rows")
    parts = partial(_parts_of_table, table)
    return arrow.Readable(table.schema, table.schema.empty_table(), parts, "the table", table.num_rows)


def _refuse_read_once(source: Any) -> None:
    """Raises ValueError for a reader, whose rows are gone after one pass."""
    if type(source).__name__ == "RecordBatchReader" or hasattr(source, "__next__"):
        raise ValueError(
            f"a {type(source).__name__} can be read only once, but training reads the rows several times: pass a "
            "function without arguments that makes one, such as lambda: connection.execute(query).to_arrow_reader()"
        )


def _is_dataset(source: Any) -> bool:
    return read.is_of_pyarrow(source) and isinstance(source, read.module_of_pyarrow("dataset").Dataset)


def _is_arrow_table(source: Any) -> bool:
    pa = read.pyarrow() if read.is_of_pyarrow(source) else None
    return pa is not None and isinstance(source, (pa.Table, pa.RecordBatch))


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any], arrow.Readable]], ...] = (
    (_is_dataset, table_files.read_dataset),
    (_is_arrow_table, _read_table),
    (read.is_duckdb, arrow.read_duckdb),
    (nw.dependencies.is_polars_lazyframe, arrow.read_lazyframe),
    (lambda source: hasattr(source, "__arrow_c_stream__"), arrow.read_exporter),
    (callable, arrow.read_factory),
)
"""Whether an object is of a kind, and how it is read; the first that fits is taken."""
FILE_READERS: dict[str, Callable[[Sequence[table_files.FoundFile], str], arrow.Readable]] = {
    "parquet": table_files.read_parquet_files,
    "ipc": table_files.read_ipc_files,
    "csv": table_files.read_csv_files,
}

# -- Streams as tables of estimators: training rows that are read in passes, predictions chunk by chunk -------


CONVERTED_KINDS = "OUSMm"
"""Kinds of NumPy types of columns that may have to be converted: text, dates, durations."""


class StreamInput(TableInput):
    """Files, Arrow data, queries and other sources that are read in chunks."""

    refers_to_X = True

    def in_memory(self) -> InMemory:
        """The rows in memory; of a source with very many rows some, by their number."""
        rows = _all_rows(self, engine_for(most_threads()), Reading(unlabeled=True, fewest_classes=1))
        read = rows.in_memory()
        labels = np.array([*rows.classes.tolist(), None], dtype=object)[read.codes]
        return InMemory(replace(read.table, conversion=None), labels, read.weight)

    def rows(self, reader: Any, engine: Engine, how: Reading = AS_GIVEN) -> tuple[Array, StreamedRows]:
        """Classes and rows, which are read in passes by the engine."""
        require_labels(reader, self.y)
        report = silent
        if reader.verbose:
            reporter = ProgressReporter(type(reader).__name__, verbose=True)
            report = lambda text: reporter.report(text, 0.0)
        report("reading labels")
        rows = replace(_all_rows(self, engine, how).weighted(how.class_weight), report=report)
        converted = tuple(j for j, kind in enumerate(rows.stream.types) if kind.kind in CONVERTED_KINDS)
        some_rows = rows.some_rows(SAMPLE_ROWS, converted)  # the other columns are all zero
        rows = replace(rows, conversion=convert(reader, some_rows).conversion)
        set_names(reader, rows.summary.head)
        return rows.classes, rows

    def map(self, model: Any, method: str, function: OfTable) -> Any:
        """The predictions for all rows. Columns that the model does not know, such as the target, are not read."""
        parts = [InMemory(chunk.table).map(model, method, function) for chunk in self._chunks(model)]
        return np.concatenate(parts)

    def accuracy(self, model: Any) -> float:
        chunks = (
            (np.asarray(chunk.labels), model.predict(chunk.table), chunk.weight)
            for chunk in self._chunks(model, self.y, self.sample_weight)
        )
        labels, predicted, weights = zip(*chunks, strict=True)
        weight = None if weights[0] is None else np.concatenate(weights)
        return float(accuracy_score(np.concatenate(labels), np.concatenate(predicted), sample_weight=weight))

    def _chunks(self, model: Any, y: Any = None, sample_weight: Any = None) -> Iterator[Chunk]:
        """The chunks with the columns of a model; the next one is read while one is used."""
        stream = open_stream(self.X, y, sample_weight)
        known = getattr(model, "feature_names_in_", None)
        columns = None if known is None else _present(stream.names, tuple(known))
        with closing(read_ahead(stream.parts(columns))) as loaders:
            for load in loaders:
                yield load()


def open_input(X: Any, y: Any, sample_weight: Any) -> StreamInput:
    """The kind of table that a source read in this process is."""
    return StreamInput(X, y, sample_weight)


def _present(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the model. Raises ValueError if the source lacks one."""
    if lacking := read.names_beyond(known, names):
        raise ValueError(f"the source has no column {lacking[0]!r}, which the model was trained on")
    return known


def _all_rows(given: TableInput, engine: Engine, how: Reading) -> StreamedRows:
    """All rows of a source, their columns not yet converted."""
    sample_weight = given.sample_weight
    is_one_number = isinstance(sample_weight, Number)  # also those of NumPy
    stream = open_stream(given.X, given.y, None if is_one_number else sample_weight)
    conversion = ColumnConversion(stream.names, stream.types)
    if is_distributed(engine) and not ChunkSource(stream).is_lazy:
        engine = engine_for(most_threads())  # rows that workers cannot read are read here
    labels = read_labels(stream, engine, how)
    if is_one_number:
        labels = labels._replace(weight=np.broadcast_to(read_weight(sample_weight, 1), len(labels.codes)))
    return StreamedRows(stream, engine, conversion, *labels)
