"""Files whose rows come in groups that can be read in any order, by several threads: Parquet and Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

from calibayes.tables.streams.arrow.modules import pyarrow
from calibayes.tables.streams.arrow.stream import Rows
from calibayes.tables.streams.faults import read_twice
from calibayes.tables.streams.files.partitions import with_partition
from calibayes.tables.streams.files.row_groups import RowGroup


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
