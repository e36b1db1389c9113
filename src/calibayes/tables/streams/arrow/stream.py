"""A stream of rows from a source of Arrow tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibayes.tables.origin import Origin
from calibayes.tables.streams.arrow.columns import stored_column
from calibayes.tables.streams.arrow.layout import EmptyTable, Layout
from calibayes.tables.streams.arrow.repetition import Repetition
from calibayes.tables.streams.chunk import Chunk
from calibayes.tables.streams.faults import place_named


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
