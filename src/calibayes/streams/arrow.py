"""A stream of rows from a source of Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.streams.chunks import Chunk, place_named
from calibayes.tables.arrow_text import coded_text, holds_text, one_array, pyarrow
from calibayes.tables.origin import Origin, origin_of
from calibayes.tables.read import refuse_duplicate_names, series_values
from calibayes.tables.table import CodedColumn, Table
from calibayes.tables.text import counted, listed

# -- Columns of Arrow as arrays: the same values and types that `tables.read.read_frame` finds, without an object per row


def stored_column(column: Any, name: str) -> Array | CodedColumn:
    """A chunked array of Arrow as an array, or as a `CodedColumn` if it holds text, or booleans with missing cells."""
    types, kind = pyarrow().types, column.type
    if holds_text(kind):
        return coded_text(column)
    if types.is_boolean(kind):
        return _booleans(column)
    if types.is_float64(kind) or (types.is_integer(kind) and not column.null_count):
        return one_array(column).to_numpy(zero_copy_only=False)
    return series_values(nw.from_native(column, series_only=True).alias(name))


def _booleans(column: Any) -> Array | CodedColumn:
    if not column.null_count:
        return one_array(column).to_numpy(zero_copy_only=False)
    places = column.cast(pyarrow().int8()).fill_null(2).to_numpy()
    return _used(np.array([False, True], dtype=object), places)


def _used(values: Array, places: Array) -> CodedColumn:
    """A coded column from places in sorted values (v where missing), without the values that do not occur."""
    occurs = np.bincount(places, minlength=len(values) + 1)[:-1] > 0
    new_codes = np.append(np.cumsum(occurs) - 1, occurs.sum())
    return CodedColumn(values[occurs], new_codes[places])


# -- Which columns of an Arrow schema are features, labels and weights, and how chunks are made from rows ----


@dataclass(frozen=True)
class Layout:
    """Roles of the columns of a stream.

    Parameters
    ----------
    schema : pyarrow.Schema
    frame : data frame without rows
        Tells the kind of table that sampled rows are returned as.
    target, weight : str, array or None
        The name of a column, or values for all rows.
    where : str
        What is read, for messages.
    """

    schema: Any
    frame: Any
    target: str | Array | None
    weight: str | Array | None
    where: str

    def __post_init__(self) -> None:
        refuse_duplicate_names(tuple(self.schema.names))
        for role, column in (("target", self.target), ("weight", self.weight)):
            if isinstance(column, str) and column not in self.schema.names:
                raise ValueError(
                    f"there is no column {column!r} for the {role} in {self.where}; its columns are "
                    f"{listed(self.schema.names)}"
                )
        if not self.names:
            raise ValueError(f"{self.where} has no columns besides labels and weights")
        is_training = self.target is not None  # a model to predict with may not need all columns
        for name in (*self._roles, *(self.names if is_training else ())):
            _refuse_nested(name, self.schema.field(name).type)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features: without the index of a data frame, which pandas stores as columns."""
        left_out = {*self._roles, *_index_columns(self.schema)}
        return tuple(name for name in self.schema.names if name not in left_out)

    @property
    def _roles(self) -> list[str]:
        """Names of the columns of labels and weights."""
        return list(dict.fromkeys(role for role in (self.target, self.weight) if isinstance(role, str)))

    @property
    def witness(self) -> str | None:
        """The column by which another order of the rows is noticed, if labels or weights are not columns."""
        are_arrays = not self._roles and (self.target is not None or self.weight is not None)
        return self.names[0] if are_arrays else None

    @cached_property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Types of the features if no cell is missing."""
        empty = self.schema.empty_table()
        return tuple(stored_column(empty.column(name), name).dtype for name in self.names)

    @cached_property
    def origin(self) -> Origin:
        """The kind of table of the features."""
        return self._origin(self.names)

    def _origin(self, names: Sequence[str]) -> Origin:
        return origin_of(nw.from_native(self.frame, eager_only=True).select(list(names)))

    def checked(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The features to read. Raises ValueError if one is unknown."""
        if columns is None:
            return self.names
        unknown = [name for name in columns if name not in self.names]
        if unknown:
            raise ValueError(
                f"there is no column {unknown[0]!r} in {self.where}; its columns are {listed(self.names)}"
            )
        for name in columns:
            _refuse_nested(name, self.schema.field(name).type)
        return tuple(columns)

    def needed(self, columns: Sequence[str], witness: str | None = None) -> list[str]:
        """The columns of the schema that are read for these features: with labels, weights and a witness, at least one."""
        further = [] if witness is None or witness in columns else [witness]
        return [*columns, *self._roles, *further] or list(self.names[:1])

    def check_length(self, rows: int, *, is_all: bool = True) -> None:
        """Raises ValueError if an array of labels or weights has not as many values as there are rows.

        Unless ``is_all``, further rows follow, and an array may have more.
        """
        for role, values in (("labels", self.target), ("weights", self.weight)):
            if values is None or isinstance(values, str):
                continue
            if len(values) < rows or (is_all and len(values) > rows):
                given = counted(len(values), "value")
                raise ValueError(f"{given} in the {role} of {rows}{'' if is_all else ' or more'} rows")

    def table_of(self, columns: Sequence[str]) -> EmptyTable:
        """What all chunks of these columns share."""
        fields = [self.schema.field(name).type for name in columns]
        is_time = pyarrow().types.is_timestamp
        zones = {j: kind.tz for j, kind in enumerate(fields) if is_time(kind) and kind.tz is not None}
        return EmptyTable(tuple(columns), self._origin(columns) if columns else self.origin, zones)

    def chunk(self, shared: EmptyTable, rows: Any, first: int) -> Chunk:
        """The chunk of a table of Arrow."""
        labels = _values(self.target, rows, first)
        weight = _values(self.weight, rows, first)
        return Chunk(shared.filled(rows), labels, weight, first)


@dataclass(frozen=True)
class EmptyTable:
    """Names, kind and time zones of the columns of every chunk."""

    names: tuple[str, ...]
    origin: Origin
    zones: dict[int, str]

    def filled(self, rows: Any) -> Table:
        """The table with the rows of a table of Arrow."""
        columns = tuple(stored_column(rows.column(name), name) for name in self.names)
        coded = {
            j: (column.values, column.codes)
            for j, column in enumerate(columns)
            if isinstance(column, CodedColumn)
        }
        types = tuple(column.dtype for column in columns)
        return Table(self.names, columns, types, self.origin, distinct_cache=coded, zones=self.zones)


def _values(role: str | Array | None, rows: Any, first: int) -> Any:
    """The column of a name, or these rows of an array."""
    if isinstance(role, str):
        return stored_column(rows.column(role), role)
    return None if role is None else role[first : first + rows.num_rows]


def _index_columns(schema: Any) -> list[str]:
    """The columns that hold the index of the data frame that a file was written from."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str)]  # others describe a range


def _refuse_nested(name: str, kind: Any) -> None:
    types = pyarrow().types
    if types.is_nested(kind) and not types.is_dictionary(kind):
        raise TypeError(
            f"column {name!r} holds several values in a cell ({kind}): leave it out, or make a column of each value"
        )


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


class Rows(NamedTuple):
    """Consecutive rows."""

    first: int
    """Number of the first one."""
    number: int
    """How many they are."""
    place: str
    """Where they are, for messages."""
    read: Callable[[], Any]
    """Reads them as a table of Arrow."""


class ArrowSource(Protocol):
    """Tables of Arrow in the order of the rows."""

    @property
    def rows(self) -> int | None:
        """Number of rows; None if only reading tells."""

    @property
    def repetition(self) -> Repetition | None:
        """Checks that rows are the same each time; None for a source whose rows are stored."""

    def tables(self, columns: Sequence[str]) -> Iterable[Rows]:
        """The named columns of the rows, at least one column; the same tables in every call."""


@dataclass(frozen=True)
class ArrowStream:
    """`RowStream` of a source of Arrow tables."""

    layout: Layout
    source: ArrowSource

    def __post_init__(self) -> None:
        if self.rows is not None:
            self.layout.check_length(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        return self.layout.names

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        return self.layout.types

    @property
    def origin(self) -> Origin:
        return self.layout.origin

    @property
    def rows(self) -> int | None:
        return self.source.rows

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[Callable[[], Chunk]]:
        features = self.layout.checked(columns)
        shared = self.layout.table_of(features)
        total = 0
        repetition = self.source.repetition
        witness = None if repetition is None else self.layout.witness
        for rows in self.source.tables(self.layout.needed(features, witness)):
            total += rows.number
            self.layout.check_length(total, is_all=False)
            yield partial(_load, self.layout, shared, rows, repetition, witness)
        self.layout.check_length(total)


def _load(
    layout: Layout, shared: EmptyTable, rows: Rows, repetition: Repetition | None, witness: str | None
) -> Chunk:
    table = rows.read()
    with place_named(rows.place):
        chunk = layout.chunk(shared, table, rows.first)
    if repetition is None:
        return chunk
    return repetition.check(chunk, None if witness is None else stored_column(table.column(witness), witness))
