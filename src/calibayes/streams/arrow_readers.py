"""Objects that give Arrow batches each time they are asked: DuckDB relations, polars lazy frames, functions, datasets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import narwhals.stable.v2 as nw

from calibayes.streams.arrow import Repetition, Rows
from calibayes.streams.chunks import chunk_rows, place_named
from calibayes.tables.arrow_text import pyarrow

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


@dataclass(frozen=True)
class SequentialSource:
    """`ArrowSource` of batches that can be read again from the beginning.

    Parameters
    ----------
    read : function of the names of columns
        Batches of these columns, in any order, perhaps among further columns.
    size : int
        Number of rows of a chunk.
    where : str
        What is read, for messages.
    """

    read: Callable[[Sequence[str]], Iterator[Any]]
    size: int
    where: str

    rows: ClassVar[None] = None

    @cached_property
    def repetition(self) -> Repetition:
        """Checks that rows are the same each time."""
        return Repetition(self.where)

    def tables(self, columns: Sequence[str]) -> Iterator[Rows]:
        first = 0
        with closing(_resumed(partial(self.read, columns))) as batches:
            for table in tables_of(batches, self.size):
                yield Rows(first, table.num_rows, self.where, partial(_same, table.select(list(columns))))
                first += table.num_rows
        if first == 0:
            raise ValueError(f"{self.where} has no rows")


def _same(table: Any) -> Any:
    return table


def _resumed(read: Callable[[], Iterator[Any]]) -> Generator[Any]:
    """Batches; after the first OSError they are read again from the beginning, without the rows that came before."""
    done = 0
    try:
        for batch in read():
            yield batch
            done += batch.num_rows
    except OSError:
        yield from _after(read(), done)


def _after(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches without their first rows."""
    for batch in batches:
        if batch.num_rows > rows:
            yield batch.slice(rows)
        rows = max(rows - batch.num_rows, 0)


# -- Objects that give Arrow batches each time they are asked: DuckDB relations, polars lazy frames, functions, datasets


@dataclass(frozen=True)
class Readable:
    """A schema, a data frame without rows of the kind to give back, and a source."""

    schema: Any
    frame: Any
    source: Any
    where: str


def read_duckdb(relation: Any) -> Readable:
    """A relation of DuckDB: a table or a query, of which only the columns that are needed are computed."""
    schema = _duckdb_reader(relation.limit(0), 1).schema
    read = partial(_duckdb_batches, relation, chunk_rows(len(schema.names)))
    return sequential(schema, schema.empty_table(), read, "the DuckDB relation")


def _duckdb_batches(relation: Any, size: int, columns: Sequence[str]) -> Iterator[Any]:
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    with place_named("the DuckDB relation"):
        yield from _duckdb_reader(relation.project(quoted), size)


def _duckdb_reader(relation: Any, size: int) -> Any:
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader  # its old name
    return read(size)


def read_lazyframe(frame: Any) -> Readable:
    """A lazy frame of polars, of which only the columns that are needed are computed."""
    empty = frame.head(0).collect()
    schema = empty.to_arrow().schema
    read = partial(_polars_batches, frame, chunk_rows(len(schema.names)))
    return sequential(schema, empty, read, "the polars LazyFrame")


def _polars_batches(frame: Any, size: int, columns: Sequence[str]) -> Iterator[Any]:
    selected = frame.select(list(columns))
    if hasattr(selected, "collect_batches"):
        frames = selected.collect_batches(chunk_size=size, maintain_order=True)
    else:  # before polars 1.34
        frames = [selected.collect()]
    for rows in frames:
        yield from rows.to_arrow().to_batches(max_chunksize=size)


def read_factory(make: Callable[[], Any]) -> Readable:
    """A function that returns a fresh reader of Arrow batches each time: of a database driver (ADBC), of a query."""
    return _read_made(make, "the reader")


def _read_made(make: Callable[[], Any], where: str) -> Readable:
    with place_named(where), _reader(make()) as reader:
        schema = reader.schema
    return sequential(schema, schema.empty_table(), partial(_made_batches, make, where), where)


def _made_batches(make: Callable[[], Any], where: str, columns: Sequence[str]) -> Iterator[Any]:
    is_empty = True
    with place_named(where), _reader(make()) as reader:
        for batch in reader:
            is_empty = False
            yield batch.select(list(columns))
    if is_empty:
        raise ValueError(
            f"{where} has no rows; if it was read before and cannot be read again, pass a function that makes a new one"
        )


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


def read_exporter(source: Any) -> Readable:
    """An object with ``__arrow_c_stream__`` that can be exported again and again."""
    return _read_made(lambda: source, f"the {type(source).__name__}")


def read_scanned(dataset: Any) -> Readable:
    """A dataset of pyarrow of any kind: with a filter, in memory, of other files than Parquet."""
    schema = dataset.schema
    read = partial(_scanned_batches, dataset, chunk_rows(len(schema.names)))
    return sequential(schema, schema.empty_table(), read, "the dataset")


def _scanned_batches(dataset: Any, size: int, columns: Sequence[str]) -> Iterator[Any]:
    scanner = dataset.scanner(
        columns=list(columns), batch_size=size, batch_readahead=1, fragment_readahead=1, use_threads=False
    )
    with place_named("the dataset"):
        yield from scanner.to_batches()


def sequential(
    schema: Any, frame: Any, read: Callable[[Sequence[str]], Iterator[Any]], where: str
) -> Readable:
    """What is read from beginning to end by ``read(columns)``."""
    return Readable(schema, frame, SequentialSource(read, chunk_rows(len(schema.names)), where), where)
