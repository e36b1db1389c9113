"""A stream of rows from a source of Arrow tables: databases, lazy data frames, readers, datasets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.notices import counted, listed
from calibayes.core.protocols import Array
from calibayes.streams.chunks import Chunk, chunk_rows, place_named
from calibayes.tables.origin import Origin, origin_of
from calibayes.tables.read import (
    SEVERAL_VALUES,
    coded_text,
    holds_text,
    names_beyond,
    one_array,
    pyarrow,
    refuse_duplicate_names,
    series_values,
)
from calibayes.tables.table import CodedColumn, Table, coded_columns, occurring

# -- Columns of Arrow as arrays: the same values and types that `tables.read.read_frame` finds, without an object per row


def stored_column(column: Any, name: str) -> Array | CodedColumn:
    """A chunked array of Arrow as an array, or as a `CodedColumn` if it holds text, or booleans with missing cells."""
    types, kind = pyarrow().types, column.type
    if holds_text(kind):
        return coded_text(column)
    if types.is_boolean(kind) and column.null_count:
        codes = column.cast(pyarrow().int8()).fill_null(2).to_numpy()
        return CodedColumn(*occurring(np.array([False, True], dtype=object), codes))
    if types.is_boolean(kind) or types.is_float64(kind) or (types.is_integer(kind) and not column.null_count):
        return one_array(column).to_numpy(zero_copy_only=False)
    return series_values(nw.from_native(column, series_only=True).alias(name))


def index_columns(schema: Any) -> list[str]:
    """The columns that hold the index of the data frame that a file was written from."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str)]  # others describe a range


# -- Whether a source that is computed anew for each pass gives the same rows again --------------------------


class Repetition:
    """Checksums of labels and weights, or of another column, by the number of a chunk's first row.

    Queries without an order may give their rows in another order each time, which no later step could notice: labels
    would be those of other rows.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._sums: dict[int, int] = {}

    def check(self, chunk: Chunk, column: Any = None) -> Chunk:
        """The chunk. Raises ValueError if labels, weights or the column differ from those of the first reading."""
        found = _checksum(column, _checksum(chunk.weight, _checksum(chunk.labels, chunk.n)))
        if self._sums.setdefault(chunk.first, found) != found:
            raise ValueError(
                f"{self.where} gave other rows than before, or in another order, but training reads them several times: "
                "add an ORDER BY to the query, or write its rows into a file first"
            )
        return chunk


def _checksum(column: Any, start: int) -> int:
    if column is None:
        return start
    if isinstance(column, CodedColumn):
        return _checksum(column.codes, crc32(repr(column.values.tolist()).encode(), start))
    if column.dtype == object:
        return crc32(repr(column.tolist()).encode(), start)
    return crc32(np.ascontiguousarray(column).view(np.uint8).data, start)


# -- A stream of rows from a source of Arrow tables ----------------------------------------------------------


class ArrowRows(NamedTuple):
    """Consecutive rows."""

    first: int
    """Number of the first one."""
    number: int
    """How many they are."""
    place: str
    """Where they are, for messages."""
    read: Callable[[], Any]
    """Reads them as a table of Arrow."""


@dataclass(frozen=True)
class Readable:
    """Tables of Arrow in the order of the rows.

    Attributes
    ----------
    schema : schema of Arrow
    frame : data frame
        Without rows, of the kind to give back.
    tables : function
        The named columns of the rows, at least one column; the same tables in every call.
    where : str
        What is read, for messages.
    rows : int, optional
        Number of rows; None if only reading tells.
    """

    schema: Any
    frame: Any
    tables: Callable[[Sequence[str]], Iterator[ArrowRows]]
    where: str
    rows: int | None = None

    @cached_property
    def repetition(self) -> Repetition | None:
        """Checks that rows are the same each time; None for stored rows, whose number is known."""
        return Repetition(self.where) if self.rows is None else None


@dataclass(frozen=True)
class ArrowStream:
    """`RowStream` of a source of Arrow tables; ``target`` and ``weight`` are names of columns, or values for all rows."""

    given: Readable
    target: str | Array | None
    weight: str | Array | None

    def __post_init__(self) -> None:
        schema, where = self.given.schema, self.given.where
        refuse_duplicate_names(tuple(schema.names))
        for role, column in (("target", self.target), ("weight", self.weight)):
            if isinstance(column, str) and column not in schema.names:
                raise ValueError(
                    f"there is no column {column!r} for the {role} in {where}; its columns are {listed(schema.names)}"
                )
        if not self.names:
            raise ValueError(f"{where} has no columns besides labels and weights")
        is_training = self.target is not None  # a model to predict with may not need all columns
        self._refuse_nested((*self._roles, *(self.names if is_training else ())))
        if self.rows is not None:
            self._check_length(self.rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features: without the index of a data frame, which pandas stores as columns."""
        left_out = {*self._roles, *index_columns(self.given.schema)}
        return tuple(name for name in self.given.schema.names if name not in left_out)

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        empty = self.given.schema.empty_table()
        return tuple(stored_column(empty.column(name), name).dtype for name in self.names)

    @cached_property
    def origin(self) -> Origin:
        return self._origin(self.names)

    @property
    def rows(self) -> int | None:
        return self.given.rows

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Callable[[], Chunk]]:
        features = self.names if columns is None else tuple(columns)
        if unknown := names_beyond(features, self.names):
            raise ValueError(
                f"there is no column {unknown[0]!r} in {self.given.where}; its columns are {listed(self.names)}"
            )
        self._refuse_nested(features)
        fields = [self.given.schema.field(name).type for name in features]
        is_time = pyarrow().types.is_timestamp
        zones = {j: kind.tz for j, kind in enumerate(fields) if is_time(kind) and kind.tz is not None}
        empty = Table(features, (), (), self._origin(features) if features else self.origin, zones=zones)
        witness, total = self._witness, 0
        further = [] if witness is None or witness in features else [witness]
        needed = [*features, *self._roles, *further] or list(self.names[:1])
        for rows in self.given.tables(needed):
            total += rows.number
            self._check_length(total, is_all=False)
            yield partial(self._load, empty, rows, witness)
        self._check_length(total)

    def _load(self, empty: Table, rows: ArrowRows, witness: str | None) -> Chunk:
        """A chunk with the names, the kind of table and the time zones of an empty table."""
        read = rows.read()
        with place_named(rows.place):
            columns = tuple(stored_column(read.column(name), name) for name in empty.names)
            types, coded = tuple(column.dtype for column in columns), coded_columns(columns)
            table = replace(empty, content=columns, original_types=types, distinct_cache=coded)
            labels, weight = (self._role(role, read, rows.first) for role in (self.target, self.weight))
            chunk = Chunk(table, labels, weight, rows.first)
        if self.given.repetition is None:
            return chunk
        column = None if witness is None else stored_column(read.column(witness), witness)
        return self.given.repetition.check(chunk, column)

    def _role(self, role: str | Array | None, read: Any, first: int) -> Any:
        """The labels or weights of a chunk: a column of it, or those that were given for all rows."""
        if isinstance(role, str):
            return stored_column(read.column(role), role)
        return None if role is None else role[first : first + read.num_rows]

    @property
    def _roles(self) -> list[str]:
        """Names of the columns of labels and weights."""
        return list(dict.fromkeys(role for role in (self.target, self.weight) if isinstance(role, str)))

    @property
    def _witness(self) -> str | None:
        """The column by which another order of the rows is noticed, if labels or weights are not columns."""
        are_arrays = not self._roles and (self.target is not None or self.weight is not None)
        return self.names[0] if are_arrays and self.given.repetition is not None else None

    def _origin(self, names: Sequence[str]) -> Origin:
        return origin_of(nw.from_native(self.given.frame, eager_only=True).select(list(names)))

    def _refuse_nested(self, names: Sequence[str]) -> None:
        types = pyarrow().types
        for name in names:
            kind = self.given.schema.field(name).type
            if types.is_nested(kind) and not types.is_dictionary(kind):
                raise TypeError(SEVERAL_VALUES.format(name=name, kind=kind))

    def _check_length(self, rows: int, *, is_all: bool = True) -> None:
        """Raises ValueError if an array of labels or weights has not as many values as there are rows.

        Unless ``is_all``, further rows follow, and an array may have more.
        """
        for role, values in (("labels", self.target), ("weights", self.weight)):
            if values is None or isinstance(values, str):
                continue
            if len(values) < rows or (is_all and len(values) > rows):
                given = counted(len(values), "value")
                raise ValueError(f"{given} in the {role} of {rows}{'' if is_all else ' or more'} rows")


# -- Batches of any size as tables of one size ---------------------------------------------------------------


def tables_of(batches: Iterator[Any], size: int) -> Iterator[Any]:
    """Batches of any size as tables of ``size`` rows, the last one of fewer."""
    pa, waiting, rows = pyarrow(), [], 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= size:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, size)
            rows -= size
            waiting = table.slice(size).to_batches() if rows else []
    if rows:
        yield pa.Table.from_batches(waiting)


# -- Sources that are read from their beginning: readers of databases, lazy data frames, CSV files -----------


ReadBatches: TypeAlias = Callable[[Sequence[str], int], Iterator[Any]]
"""Function of the names of columns and a number of rows: batches of these columns, of about so many rows.

The columns may come in any order, perhaps among further ones.
"""


def sequential_rows(read: ReadBatches, size: int, where: str, columns: Sequence[str]) -> Iterator[ArrowRows]:
    """The named columns of batches that can be read again from the beginning, in tables of ``size`` rows."""
    first = 0
    with closing(_resumed(partial(read, columns, size))) as batches:
        for table in tables_of(batches, size):
            yield ArrowRows(first, table.num_rows, where, table.select(list(columns)).slice)
            first += table.num_rows
    if first == 0:
        raise ValueError(f"{where} has no rows")


def _resumed(read: Callable[[], Iterator[Any]]) -> Generator[Any]:
    """Batches; after the first OSError they are read again from the beginning, without the rows that came before."""
    done = 0
    try:
        for batch in read():
            yield batch
            done += batch.num_rows
    except OSError:
        for batch in read():
            if batch.num_rows > done:
                yield batch.slice(done)
            done = max(done - batch.num_rows, 0)


# -- Objects that give Arrow batches each time they are asked: DuckDB relations, polars lazy frames, functions, datasets


def sequential(schema: Any, read: ReadBatches, where: str, frame: Any = None) -> Readable:
    """What is read from beginning to end; ``frame`` is an empty data frame if it is of another library than pyarrow."""
    tables = partial(sequential_rows, read, chunk_rows(len(schema.names)), where)
    return Readable(schema, schema.empty_table() if frame is None else frame, tables, where)


def read_duckdb(relation: Any) -> Readable:
    """A relation of DuckDB: a table or a query, of which only the columns that are needed are computed.

    Instants (TIMESTAMPTZ) are those of UTC: DuckDB stores them without a time zone, and gives them that of the session.
    """
    where, duckdb = "the DuckDB relation", import_module("duckdb")

    def reader(select: Callable[[], Any], size: int) -> Any:
        try:
            selected = select()
            # the latter is its old name
            return (getattr(selected, "to_arrow_reader", None) or selected.fetch_arrow_reader)(size)
        except duckdb.Error as error:
            raise OSError(str(error)) from error  # as those of a reader

    def read(columns: Sequence[str], size: int) -> Iterator[Any]:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        with place_named(where):
            yield from reader(lambda: relation.project(quoted), size)

    with place_named(where):
        schema = reader(lambda: relation.limit(0), 1).schema
    return sequential(_in_utc(schema), read, where)


def _in_utc(schema: Any) -> Any:
    """A schema with UTC as the time zone of all columns that have one."""
    pa = pyarrow()
    for place, field in enumerate(schema):
        if pa.types.is_timestamp(field.type) and field.type.tz is not None:
            schema = schema.set(place, field.with_type(pa.timestamp(field.type.unit, "UTC")))
    return schema


def read_lazyframe(frame: Any) -> Readable:
    """A lazy frame of polars, of which only the columns that are needed are computed."""

    def read(columns: Sequence[str], size: int) -> Iterator[Any]:
        selected = frame.select(list(columns))
        if hasattr(selected, "collect_batches"):
            frames = selected.collect_batches(chunk_size=size, maintain_order=True)
        else:  # before polars 1.34
            frames = [selected.collect()]
        for rows in frames:
            yield from rows.to_arrow().to_batches(max_chunksize=size)

    empty = frame.head(0).collect()
    return sequential(empty.to_arrow().schema, read, "the polars LazyFrame", empty)


def read_exporter(source: Any) -> Readable:
    """An object with ``__arrow_c_stream__`` that can be exported again and again."""
    return read_factory(lambda: source, f"the {type(source).__name__}")


def read_factory(make: Callable[[], Any], where: str = "the reader") -> Readable:
    """A function that returns a fresh reader of Arrow batches each time: of a database driver (ADBC), of a query."""

    def read(columns: Sequence[str], size: int) -> Iterator[Any]:
        is_empty = True
        with place_named(where), _reader(make()) as reader:
            for batch in reader:
                is_empty = False
                yield batch.select(list(columns))
        if is_empty:
            raise ValueError(
                f"{where} has no rows; if it was read before and cannot be read again, pass a function that makes a new one"
            )

    with place_named(where), _reader(make()) as reader:
        schema = reader.schema
    return sequential(schema, read, where)


def _reader(made: Any) -> Any:
    """A reader of batches. Raises ValueError if the object is none."""
    pa = pyarrow()
    if isinstance(made, pa.RecordBatchReader):
        return made
    if nw.dependencies.is_polars_lazyframe(made):
        made = made.collect()
    if hasattr(made, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(made)
    raise ValueError(
        f"the function must return a reader of Arrow batches or an object with __arrow_c_stream__, it returned "
        f"{type(made).__name__}"
    )


def read_scanned(dataset: Any) -> Readable:
    """A dataset of pyarrow of any kind: with a filter, in memory, of other files than Parquet."""

    def read(columns: Sequence[str], size: int) -> Iterator[Any]:
        one_at_a_time = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
        with place_named("the dataset"):
            yield from dataset.scanner(columns=list(columns), batch_size=size, **one_at_a_time).to_batches()

    return sequential(dataset.schema, read, "the dataset")
