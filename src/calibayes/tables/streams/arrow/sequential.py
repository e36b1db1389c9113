"""Sources that are read from their beginning: readers of databases, lazy data frames, CSV files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

from calibayes.tables.streams.arrow.batches import tables_of
from calibayes.tables.streams.arrow.repetition import Repetition
from calibayes.tables.streams.arrow.stream import Rows


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
