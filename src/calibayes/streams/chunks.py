"""What a stream of rows is: chunks of consecutive rows that can be read again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from threading import current_thread
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import most_threads
from calibayes.streams.raw_bytes import DAMAGED
from calibayes.tables.origin import Origin
from calibayes.tables.table import CodedColumn, Table, coded_columns, distinct_values, sorted_codes

if TYPE_CHECKING:
    from calibayes.backends.dask.collections import LazyParts

CHUNK_ROWS = 2**17
CHUNK_BYTES = 2**25
"""A chunk has at most so many rows, and about so many bytes with eight to a cell."""
FEWEST_CHUNK_ROWS = 2**10


class Chunk(NamedTuple):
    """Consecutive rows, as they were read."""

    table: Table
    """The columns that were asked for, without those of labels and weights."""
    labels: Array | CodedColumn | None
    """Labels as they are stored, (n,): an array, or a `CodedColumn` for text; None if no target was named."""
    weight: Array | None
    """Weights as they are stored, (n,); None if there are none."""
    first: int
    """Number of the first row in the stream."""

    @property
    def n(self) -> int:
        """Number of rows, also if no column was asked for."""
        return self.table.n if self.labels is None else len(self.labels)


class RowStream(Protocol):
    """Rows that can be read several times, chunk by chunk.

    A chunk has the types that its own rows have: integers are floats in a chunk with missing cells and integers in one
    without, booleans are objects in a chunk with missing cells. `ColumnTypes` finds the types of
    all rows.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without those of labels and weights."""

    @property
    def types(self) -> tuple[np.dtype[Any], ...]:
        """Types of the columns if no cell is missing, as far as they are known without reading rows."""

    @property
    def origin(self) -> Origin:
        """The kind of table that sampled rows are returned as."""

    @property
    def rows(self) -> int | None:
        """Number of rows; None if only reading tells."""

    def parts(self, columns: Sequence[str] | None = None) -> Iterable[Callable[[], Chunk]]:
        """Loaders of the chunks, in the order of the rows, the same chunks in every call.

        Only the named columns are read, all by default; an empty list reads labels and weights alone. Loaders of files
        that can be read at any place read when they are called, so several threads can call them at a time; those of
        sequential sources hold rows that were read while iterating. A loader can be called again.

        Raises ValueError or OSError, naming the file, if rows cannot be read.
        """


def chunk_rows(d: int) -> int:
    """Number of rows of a chunk of d columns."""
    return int(np.clip(CHUNK_BYTES // (8 * max(d, 1)), FEWEST_CHUNK_ROWS, CHUNK_ROWS))


# -- Tables of consecutive rows as one table -----------------------------------------------------------------


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of all tables, which have the same columns of the same types; text stays coded."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if not isinstance(first.content, tuple):
        content = np.concatenate([table.content for table in tables])
        return replace(first, content=content, distinct_cache={}, missing_cache={})
    columns = tuple(_concatenated_column(tables, j) for j in range(len(first.names)))
    originals = {j: np.concatenate([table.originals[j] for table in tables]) for j in first.originals}
    coded = coded_columns(columns)
    return replace(first, content=columns, originals=originals, distinct_cache=coded, missing_cache={})


def _concatenated_column(tables: Sequence[Table], j: int) -> Array | CodedColumn:
    if not all(isinstance(table.stored_column(j), CodedColumn) for table in tables):
        return np.concatenate([table.column(j) for table in tables])
    pairs = [distinct_values(table, j) for table in tables]
    values, codes = sorted_codes(chain.from_iterable(own for own, _ in pairs))
    parts = np.split(codes, np.cumsum([len(own) for own, _ in pairs])[:-1])
    own_codes = [np.append(part, len(values))[own] for part, (_, own) in zip(parts, pairs, strict=True)]
    return CodedColumn(values, np.concatenate(own_codes))


# -- Types of the columns of all rows, from those of the chunks, and chunks converted to them ----------------

OBJECT, FLOAT = np.dtype(object), np.dtype(np.float64)


@dataclass(frozen=True)
class ColumnTypes:
    """Types of the columns of some chunks; ``+`` gives those of more.

    A chunk with missing cells has other types than one without: floats instead of integers, objects instead of booleans.
    """

    types: tuple[np.dtype[Any], ...]
    has_values: tuple[bool, ...]
    """Whether a column of objects has a known cell; true for all others."""

    def __add__(self, other: ColumnTypes) -> ColumnTypes:
        types = tuple(_common(*pair) for pair in zip(self.types, other.types, strict=True))
        known = tuple(a or b for a, b in zip(self.has_values, other.has_values, strict=True))
        return ColumnTypes(types, known)

    def result(self, table: Table) -> tuple[np.dtype[Any], ...]:
        """The types that `read_frame` would find for all rows; ``table`` is any of the chunks.

        A column of objects without a known cell is one of NaN, unless the source declares it categorical.
        """
        return tuple(
            FLOAT if kind == OBJECT and not known and not table.is_categorical(j) else kind
            for j, (kind, known) in enumerate(zip(self.types, self.has_values, strict=True))
        )


def column_types(table: Table) -> ColumnTypes:
    """The types of one chunk."""
    d = range(len(table.names))
    return ColumnTypes(table.types(), tuple(table.types()[j] != OBJECT or _has_values(table, j) for j in d))


def _has_values(table: Table, j: int) -> bool:
    column = table.stored_column(j)
    return len(column.values) > 0 if isinstance(column, CodedColumn) else not table.missing_mask(j).all()


def _common(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    if one == other:
        return one
    return np.result_type(one, other) if one.kind in "iuf" and other.kind in "iuf" else OBJECT


def as_types(table: Table, types: Sequence[np.dtype[Any]]) -> Table:
    """A chunk with its columns converted to the types of all rows, numbers alone as one matrix: as `read_frame` does."""
    if not isinstance(table.content, tuple):
        return table
    columns = [_converted(column, kind) for column, kind in zip(table.content, types, strict=True)]
    coded = {j: entry for j, entry in table.distinct_cache.items() if columns[j].dtype == OBJECT}
    are_numbers = bool(columns) and all(kind.kind in "fiu" for kind in types)
    content: Any = np.stack(columns, axis=1) if are_numbers else tuple(columns)
    typed = replace(table, content=content, original_types=tuple(types))
    return replace(typed, distinct_cache=coded, missing_cache={})


def _converted(column: Array | CodedColumn, kind: np.dtype[Any]) -> Array | CodedColumn:
    if column.dtype == kind:
        return column
    if isinstance(column, CodedColumn):  # no cell is known
        return np.full(len(column), np.nan)
    return column.astype(kind)


# -- Tables some of whose columns were not read --------------------------------------------------------------


class StreamColumns(NamedTuple):
    """The columns of a stream, without its rows."""

    names: tuple[str, ...]
    types: tuple[np.dtype[Any], ...]
    origin: Origin


def with_unread(table: Table, stream: StreamColumns, read: Sequence[int], n: int) -> Table:
    """The columns of a table of n rows at their positions in the stream; those that were not read are all zero."""
    types = list(stream.types)
    columns: list[Any] = [np.broadcast_to(np.zeros((), dtype=kind), n) for kind in types]
    for number, (j, kind) in enumerate(zip(read, table.types(), strict=True)):
        columns[j], types[j] = table.stored_column(number), kind
    return replace(
        table,
        names=stream.names,
        origin=stream.origin,
        content=tuple(columns),
        original_types=tuple(types),
        distinct_cache={read[number]: entry for number, entry in table.distinct_cache.items()},
        missing_cache={},
        zones={read[number]: zone for number, zone in table.zones.items()},
    )


# -- Chunks that are read in the background, a bounded number at a time --------------------------------------

Item = TypeVar("Item")
END = object()
READ_AHEAD = "read-ahead"


def read_ahead(parts: Iterable[Callable[[], Item]], number: int = 1) -> Generator[Callable[[], Item]]:
    """The same loaders, of which the next ``number`` are called in a background thread while one is used.

    An error is raised by the loader whose rows could not be read. The thread ends when the iterator is closed, also by
    Ctrl-C.
    """
    iterator: Any = iter(parts)
    pool, owner = ThreadPoolExecutor(1, READ_AHEAD), current_thread()
    waiting: deque[Future[Any]] = deque(pool.submit(_next, iterator) for _ in range(number))
    try:
        while (ready := waiting.popleft()).exception() is not None or ready.result() is not END:
            waiting.append(pool.submit(_next, iterator))
            yield ready.result
    finally:
        for future in waiting:
            future.cancel()
        # After an error this may be run by any thread that collects garbage: by the reading one, or by one that it waits for.
        is_closed = current_thread() is owner
        pool.shutdown(wait=is_closed)
        if is_closed:
            getattr(iterator, "close", lambda: None)()


def _next(iterator: Iterator[Callable[[], Any]]) -> Any:
    """The result of the next loader, or END."""
    load = next(iterator, None)
    return END if load is None else load()


# -- Rows that cannot be read: a second attempt, then an error that names the place --------------------------

Result = TypeVar("Result")
READ_ERRORS = (OSError, MemoryError)
"""Errors that keep their type (a damaged file may state a size beyond the memory); those of pyarrow for invalid files and
those of decompressing become ValueError."""


@contextmanager
def place_named(place: str) -> Iterator[None]:
    """Inside, errors of reading are raised again with the place, such as "row group 3 of a.parquet".

    These are `READ_ERRORS`, ValueError, NotImplementedError, LookupError, those of decompressing, and DatabaseError of any
    database driver (PEP 249). Others, such as TypeError, are errors of a program and stay as they are.
    """
    try:
        yield
    except Exception as error:
        is_of_database = any(kind.__name__ == "DatabaseError" for kind in type(error).__mro__)
        of_reading = (*READ_ERRORS, ValueError, NotImplementedError, LookupError, *DAMAGED)
        if not (is_of_database or isinstance(error, of_reading)):
            raise
        kind = next((known for known in READ_ERRORS if isinstance(error, known)), ValueError)
        raise kind(f"{place} cannot be read: {_sentence(error)}") from error


def read_twice(read: Callable[[], Result], place: str) -> Result:
    """``read()``, tried again once if it raises OSError, as network file systems do now and then."""
    with place_named(place):
        try:
            return read()
        except OSError:
            return read()


def _sentence(error: Exception) -> str:
    """The first line of a message."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


# -- The chunks of a stream as what an engine adds up over ----------------------------------------------------


@runtime_checkable
class LazyStream(Protocol):
    """A stream whose chunks can be made by tasks of Dask."""

    def lazy_parts(self, columns: Sequence[str] | None = None) -> LazyParts:
        """Tasks that make the chunks, with the named columns only."""


@dataclass(frozen=True)
class ChunkSource:
    """The chunks of a stream, with the named columns only; all by default.

    A single thread computes with one chunk while the next one is read; several read and compute one each.
    """

    stream: RowStream
    columns: tuple[str, ...] | None = None

    is_read_once: ClassVar[bool] = True

    def parts(self) -> Iterator[Callable[[], Chunk]]:
        """Loaders of the chunks, in the order of the rows."""
        parts = self.stream.parts(self.columns)
        return iter(parts) if most_threads() > 1 else read_ahead(parts)

    @property
    def is_lazy(self) -> bool:
        """Whether the chunks can be made by tasks of Dask."""
        return isinstance(self.stream, LazyStream)

    def lazy_parts(self) -> LazyParts | None:
        """Tasks of Dask that make the chunks; None if the stream is read in this process."""
        return self.stream.lazy_parts(self.columns) if isinstance(self.stream, LazyStream) else None
