"""Open a table with the columns that a model expects, and read it block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from calibayes.tables.input.arrow_batches import arrow_schema, piece_of_batch
from calibayes.tables.input.csv_blocks import CsvBlocks
from calibayes.tables.input.csv_format import CsvOptions, look_at
from calibayes.tables.input.encoded_text import as_utf8
from calibayes.tables.input.expected import Expected, ExpectedColumn, Piece, require_columns
from calibayes.tables.input.raw import RawTable, open_raw, unreadable
from calibayes.tables.input.records import record_blocks
from calibayes.tables.read import refuse_duplicate_names
from calibayes.tables.text import counted

BLOCK_BYTES = 2**21
"""Bytes of text that are read at a time."""
BATCH_ROWS = 2**15
"""Rows of Parquet and Arrow files that are read at a time."""


@dataclass(frozen=True)
class OpenTable:
    """An open table: all names of its columns, what is read of it, and its blocks.

    Attributes
    ----------
    where : str
        What is read, for messages.
    names : tuple of str
    expected : Expected
    blocks : iterator of functions
        Each reads a block when it is called, so that several threads can read one each.
    """

    where: str
    names: tuple[str, ...]
    expected: Expected
    blocks: Iterator[Callable[[], Piece]]

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns that are not read."""
        used = {*self.expected.columns, *self.expected.passed_on}
        return () if self.expected.by_position else tuple(name for name in self.names if name not in used)


def open_table(
    source: str,
    expected: Expected,
    options: CsvOptions | None = None,
    *,
    block_bytes: int = BLOCK_BYTES,
    with_pyarrow: bool | None = None,
) -> OpenTable:
    """Open a CSV, Parquet or Arrow table, also compressed, from a file or from standard input ("-").

    The columns may be in any order. ``with_pyarrow`` says whether CSV files are read by pyarrow, by default if it is
    installed. Raises ValueError if the table cannot be read or lacks an expected column.
    """
    raw = open_raw(source)
    if raw.kind != "text":
        return _open_arrow(raw, expected, max(block_bytes * BATCH_ROWS // BLOCK_BYTES, 1))
    given = options or CsvOptions()
    form, rest = look_at(as_utf8(raw.file, given.encoding, raw.name), given, raw.name)
    matched = _matched(expected, form.names, raw.name)
    blocks = CsvBlocks(form, matched)
    by_pyarrow = find_spec("pyarrow") is not None if with_pyarrow is None else with_pyarrow
    read = blocks.by_pyarrow if by_pyarrow else blocks.by_python
    records = _readable(raw, record_blocks(rest, form.separator, block_bytes))
    return OpenTable(raw.name, form.names, matched, (partial(read, block) for block in records))


def _open_arrow(raw: RawTable, expected: Expected, rows: int) -> OpenTable:
    schema, batches = arrow_schema(raw)
    names = refuse_duplicate_names(tuple(schema.names))
    matched = _matched(expected, names, raw.name)
    wanted = list(dict.fromkeys((*matched.columns, *matched.passed_on)))
    read = _readable(raw, batches(wanted, rows))
    return OpenTable(raw.name, names, matched, (partial(piece_of_batch, matched, batch) for batch in read))


def _readable(raw: RawTable, blocks: Iterator[Any]) -> Iterator[Any]:
    """The blocks. Errors of reading and decompressing are raised as ValueError."""
    try:
        yield from blocks
    except (EOFError, OSError) as error:
        raise unreadable(raw, error) from error


def _matched(expected: Expected, names: tuple[str, ...], where: str) -> Expected:
    """What is read of a table with these columns; a model without names takes the columns by their position."""
    roles = [column.name for column in (expected.labels, expected.weight) if column is not None]
    if not expected.by_position or all(column.name in names for column in expected.features):
        require_columns(names, (*expected.columns, *expected.passed_on), where)
        return replace(expected, by_position=False)
    require_columns(names, (*roles, *expected.passed_on), where)
    left = [name for name in names if name not in (*roles, *expected.passed_on)]
    if len(left) != len(expected.features):
        raise ValueError(
            f"{where} has {counted(len(left), 'column')} to predict from, but the model, which has no names of columns, "
            f"was trained on {len(expected.features)}"
        )
    pairs = zip(left, expected.features, strict=True)
    return replace(expected, features=tuple(ExpectedColumn(name, column.holds) for name, column in pairs))
