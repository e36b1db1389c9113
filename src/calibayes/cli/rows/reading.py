"""The rows of a table, block by block, for a model: read and used by several threads, given back in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from calibayes.cli.application import note
from calibayes.cli.interruption import raise_noted_interruption
from calibayes.cli.rows.in_order import in_order
from calibayes.tables.input.csv_blocks import RowError
from calibayes.tables.input.expected import Expected, Piece
from calibayes.tables.input.open import OpenTable
from calibayes.tables.text import listed

Result = TypeVar("Result")


def with_names_of(expected: Expected, piece: Piece) -> Piece:
    """The rows with the names that the model has for its columns."""
    names = tuple(column.name for column in expected.features)
    return piece._replace(table=replace(piece.table, names=names))


def each_block(
    table: OpenTable, expected: Expected, use: Callable[[Piece], Result], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Number of rows and result of ``use`` for each block, in order. Columns that are not read are noted first.

    Raises ValueError, naming the row, if one cannot be read.
    """
    if table.unused:
        note(f"columns of {table.where} that are not used: {listed(table.unused)}")
    if table.expected.by_position:
        note(f"the model has no names of columns: those of {table.where} are taken in their order")

    def work(load: Callable[[], Piece]) -> tuple[int, Result]:
        piece = load()
        return piece.table.n, use(with_names_of(expected, piece))

    rows = 0
    try:
        for number, result in in_order(work, table.blocks, jobs):
            raise_noted_interruption()
            yield number, result
            rows += number
    except RowError as error:
        raise ValueError(
            f"{table.where}: row {rows + error.row + 1} below the header {error.problem}"
        ) from None
