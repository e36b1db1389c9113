"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, ClassVar, Protocol

from calibayes.streams.arrow import Rows
from calibayes.streams.arrow_readers import tables_of
from calibayes.streams.chunks import read_twice
from calibayes.streams.found_files import with_partition
from calibayes.tables.arrow_text import is_text, module_of_pyarrow, pyarrow

BUFFER = 2**18
"""Bytes of a column of a local file that are read at a time, so that no column of a large row group is held compressed."""


@dataclass(frozen=True)
class ParquetFile:
    """`GroupedFile` of row groups."""

    path: str
    filesystem: Any
    schema: Any
    group_rows: tuple[int, ...]
    partition: Mapping[str, Any]

    group_name: ClassVar[str] = "row group"
    stages: ClassVar[int] = 4

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        text = [name for name in columns if is_text(self.schema.field(name).type)]
        with _opened(self.path, self.filesystem, text) as file:
            yield from file.iter_batches(
                size, row_groups=list(numbers), columns=list(columns), use_threads=False
            )


def opened_parquet(path: str, filesystem: Any, partition: Mapping[str, Any]) -> ParquetFile:
    """The description of a file, from its footer; its own columns take precedence over those of its partition."""

    def read() -> ParquetFile:
        with _opened(path, filesystem, ()) as file:
            metadata, schema = file.metadata, file.schema_arrow
            sizes = tuple(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
            further = {name: value for name, value in partition.items() if name not in schema.names}
            return ParquetFile(path, filesystem, schema, sizes, further)

    return read_twice(read, path)


def _opened(path: str, filesystem: Any, text: Sequence[str]) -> Any:
    """An open file whose columns of text are read as dictionaries."""
    is_local = isinstance(filesystem, module_of_pyarrow("fs").LocalFileSystem)
    return module_of_pyarrow("parquet").ParquetFile(
        filesystem.open_input_file(path),
        read_dictionary=list(text),
        buffer_size=BUFFER if is_local else 0,
        pre_buffer=not is_local,  # few large requests over a network
        page_checksum_verification=True,
    )


# -- Chunks of a row group that is too large for one chunk: read one after another, each decoded once --------


class RowGroup:
    """Consecutive rows that can only be read from their beginning.

    Threads that load neighboring chunks share one reading position. A chunk that lies before it is read by beginning
    again.
    """

    def __init__(self, read: Callable[[int], Iterator[Any]], rows: int, size: int) -> None:
        """``read(size)`` gives batches of about ``size`` of the ``rows``, from the first one on."""
        self._read, self.rows, self.size = read, rows, size
        self._lock, self._next = Lock(), 0
        self._tables: Iterator[Any] = iter(())

    def __reduce__(self) -> Any:
        return RowGroup, (self._read, self.rows, self.size)

    def __len__(self) -> int:
        """Number of chunks."""
        return (self.rows + self.size - 1) // self.size

    def chunk(self, number: int) -> Any:
        """A chunk as a table of Arrow."""
        with self._lock:
            try:
                return self._advanced_to(number)
            except BaseException:
                self._restart()
                raise

    def _advanced_to(self, number: int) -> Any:
        if number < self._next or self._next == 0:
            self._restart()
            self._tables = tables_of(self._read(self.size), self.size)
        while True:
            table = next(self._tables, None)
            if table is None:
                raise ValueError(f"fewer than the {self.rows} rows that its metadata promise")
            self._next += 1
            if self._next > number:
                break
        if self._next == len(self):
            self._restart()
        return table

    def _restart(self) -> None:
        """Let go of what was read."""
        self._tables, self._next = iter(()), 0


# -- Files whose rows come in groups that can be read in any order, by several threads: Parquet and Arrow IPC


class GroupedFile(Protocol):
    """A file of groups of rows."""

    @property
    def group_name(self) -> str:
        """What a group is called: "row group", "batch"."""

    @property
    def stages(self) -> int:
        """In how many parts the columns of a group are read that is cut into several chunks.

        Its chunks must be decoded one after another. With several parts, a thread can decode the first part of a chunk
        while another one decodes the second part of the chunk before.
        """

    @property
    def path(self) -> str: ...

    @property
    def schema(self) -> Any:
        """Schema of Arrow, without the columns of a partition."""

    @property
    def group_rows(self) -> tuple[int, ...]:
        """Number of rows of each group."""

    @property
    def partition(self) -> Mapping[str, Any]:
        """Columns that have one value in the whole file -> scalar of Arrow."""

    def batches(self, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
        """Batches of the named columns of some groups, of about ``size`` rows."""


@dataclass(frozen=True)
class GroupedSource:
    """`ArrowSource` of files with the same columns."""

    files: tuple[GroupedFile, ...]
    size: int
    """Number of rows of a chunk."""

    repetition: ClassVar[None] = None

    @property
    def rows(self) -> int:
        return sum(sum(file.group_rows) for file in self.files)

    def tables(self, columns: Sequence[str]) -> Iterator[Rows]:
        first = 0
        for file in self.files:
            for numbers in neighbors(file.group_rows, self.size):
                rows = sum(file.group_rows[i] for i in numbers)
                stages = file.stages if rows > self.size else 1
                read = [
                    RowGroup(partial(_batches, file, numbers, tuple(some)), rows, self.size)
                    for some in shares(columns, stages)
                ]
                place = f"{_named(file.group_name, numbers)} of {file.path}"
                for number in range(len(read[0])):
                    before = number * self.size
                    load = partial(_read_chunk, read, number, tuple(columns), place)
                    yield Rows(first + before, min(self.size, rows - before), place, load)
                first += rows


def shares(columns: Sequence[str], number: int) -> list[list[str]]:
    """The columns in so many parts, or as many as there are columns."""
    return [list(columns[start::number]) for start in range(min(number, len(columns)))]


def neighbors(group_rows: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """Numbers of groups that are read together: neighbors that have no more than ``size`` rows in all.

    >>> list(neighbors([3, 3, 9, 2], size=6))
    [(0, 1), (2,), (3,)]
    """
    together: list[int] = []
    rows = 0
    for number, more in enumerate(group_rows):
        if together and rows + more > size:
            yield tuple(together)
            together, rows = [], 0
        together.append(number)
        rows += more
    if together:
        yield tuple(together)


def _read_chunk(groups: Sequence[RowGroup], number: int, columns: Sequence[str], place: str) -> Any:
    """A chunk, from the parts of its columns."""
    tables = [read_twice(partial(group.chunk, number), place) for group in groups]
    if len(tables) == 1:
        return tables[0]
    arrays = {name: table.column(name) for table in tables for name in table.column_names}
    return pyarrow().table({name: arrays[name] for name in columns})


def _named(group_name: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{group_name} {numbers[0]}"
    return f"one of the {group_name}s {numbers[0]} to {numbers[-1]}"


def _batches(file: GroupedFile, numbers: Sequence[int], columns: Sequence[str], size: int) -> Iterator[Any]:
    """Batches of some groups, with the columns of the file's partition."""
    stored = [name for name in columns if name not in file.partition] or file.schema.names[:1]
    for batch in file.batches(numbers, stored, size):
        yield with_partition(batch, columns, file.partition)


def same_columns(files: Sequence[Any]) -> None:
    """Raises ValueError unless all files (with ``path`` and ``schema``) have columns of the same names and types."""
    first = files[0]
    expected = dict(zip(first.schema.names, first.schema.types, strict=True))
    for file in files[1:]:
        found = dict(zip(file.schema.names, file.schema.types, strict=True))
        if found != expected:
            raise ValueError(
                f"{file.path} has other columns than {first.path}: {_difference(found, expected)}"
            )


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first column that differs."""
    name = next(name for name in (*found, *expected) if found.get(name) != expected.get(name))
    if name not in expected:
        return f"{name!r} is only in the former"
    if name not in found:
        return f"{name!r} is only in the latter"
    return f"{name!r} holds {found[name]} in the former and {expected[name]} in the latter"
