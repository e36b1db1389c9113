"""Open a table with the columns that a model expects, and read it block by block, or as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.notices import counted, listed
from calibayes.core.protocols import Array
from calibayes.streams.arrow import index_columns, stored_column
from calibayes.streams.csv_blocks import CsvBlocks, record_blocks
from calibayes.streams.raw_bytes import RawTable, as_utf8, chained, open_raw
from calibayes.streams.table_files import open_ipc, open_ipc_stream, open_parquet, sliced
from calibayes.tables import csv_parsing
from calibayes.tables.csv_parsing import DURATION, FLAG, NUMBER, TEXT, CellFormat, CsvOptions, TableFile
from calibayes.tables.read import is_text, names_beyond, pyarrow, read_frame, refuse_duplicate_names
from calibayes.tables.table import NUMBER_KINDS, CodedColumn, Table, coded_columns

# -- The columns that are expected of a table, and what they hold --------------------------------------------


@dataclass(frozen=True)
class ExpectedColumn:
    """Name of a column, and what it holds."""

    name: str
    holds: str


@dataclass(frozen=True)
class ExpectedTable:
    """What is read of a table.

    Attributes
    ----------
    features : tuple of ExpectedColumn
        The columns of the model, in its order.
    labels, weight : ExpectedColumn, optional
    passed_on : tuple of str
        Names of columns that are given back as they are written.
    """

    features: tuple[ExpectedColumn, ...]
    labels: ExpectedColumn | None = None
    weight: ExpectedColumn | None = None
    passed_on: tuple[str, ...] = ()
    by_position: bool = False
    """Whether the model has no names of columns: its columns are those of the table, in their order."""

    @property
    def columns(self) -> dict[str, str]:
        """Name -> what it holds, of all columns that are read and interpreted."""
        roles = [column for column in (self.labels, self.weight) if column is not None]
        return {column.name: column.holds for column in (*self.features, *roles)}


class Piece(NamedTuple):
    """Consecutive rows."""

    table: Table
    labels: Any
    """An array or a `CodedColumn`, (n,); None if there is no column of labels."""
    weight: Array | None
    passed_on: dict[str, list[str]]


def holds(kind: str) -> str:
    """What a column of a kind of `TrainingTable` holds; dates are text, which the model converts itself."""
    return NUMBER if kind in NUMBER_KINDS else {"boolean": FLAG, "duration": DURATION}.get(kind, TEXT)


def holds_labels(classes: Array) -> str:
    """What a column of labels holds, from the classes of a model."""
    return {"b": FLAG, "i": NUMBER, "u": NUMBER, "f": NUMBER}.get(np.asarray(classes).dtype.kind, TEXT)


def require_columns(names: Sequence[str], needed: Iterable[str], where: str) -> None:
    """Raises ValueError if a table lacks columns."""
    if lacking := names_beyond(dict.fromkeys(needed), names):
        named = f"{'column' if len(lacking) == 1 else 'columns'} {', '.join(map(repr, lacking))}"
        raise ValueError(f"{where} has no {named}; its columns are {listed(names)}")


def piece_of(expected: ExpectedTable, columns: dict[str, Any], passed_on: dict[str, list[str]]) -> Piece:
    """Rows from the arrays of their columns."""
    names = tuple(column.name for column in expected.features)
    content = tuple(columns[name] for name in names)
    table = Table(names, content, tuple(c.dtype for c in content), distinct_cache=coded_columns(content))
    labels = None if expected.labels is None else columns[expected.labels.name]
    weight = None if expected.weight is None else columns[expected.weight.name]
    return Piece(table, labels, weight, passed_on)


# -- Rows of Parquet and Arrow files, converted to what is expected of each column ---------------------------


def arrow_schema(raw: RawTable) -> tuple[Any, Callable[[list[str], int], Iterator[Any]]]:
    """The schema of a file, and a function of names of columns and a number of rows that gives its batches."""
    try:
        if raw.kind == "parquet":
            parquet = open_parquet(raw.anywhere())
            batches = lambda columns, rows: parquet.iter_batches(rows, columns=columns, use_threads=False)
            return parquet.schema_arrow, batches
        if raw.kind == "ipc file":
            file = open_ipc(raw.anywhere())
            return file.schema, partial(sliced, map(file.get_batch, range(file.num_record_batches)))
        reader = open_ipc_stream(pyarrow().PythonFile(raw.file, mode="r"))
        return reader.schema, partial(sliced, reader)
    except ImportError:
        raise ValueError(
            f"{raw.name} is a Parquet or Arrow file, which needs pyarrow: pip install pyarrow"
        ) from None
    except (pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"{raw.name} is damaged: {error}") from error


def piece_of_batch(expected: ExpectedTable, batch: Any) -> Piece:
    """The rows of a batch. Raises ValueError if a column holds something else than expected."""
    rows = pyarrow().Table.from_batches([batch])
    columns = {name: _column(rows.column(name), name, held) for name, held in expected.columns.items()}
    passed_on = {
        name: ["" if cell is None else str(cell) for cell in rows.column(name).to_pylist()]
        for name in expected.passed_on
    }
    return piece_of(expected, columns, passed_on)


def _column(column: Any, name: str, held: str) -> Array | CodedColumn:
    """A column; text where numbers or flags are expected is read, and numbers where text is expected are written."""
    types, kind = pyarrow().types, column.type
    if types.is_dictionary(kind) and not is_text(kind.value_type):
        column = column.cast(kind.value_type)
    stored = stored_column(column, name)
    cells = CellFormat(name, held, csv_parsing.number_formats(False), csv_parsing.Markers())
    if isinstance(stored, CodedColumn) and not types.is_boolean(kind) and held != TEXT:
        return cells.column(list(stored.values), stored.codes)
    if held == NUMBER and stored.dtype.kind in "iub":
        return np.asarray(stored, dtype=np.float64)
    if held in (FLAG, TEXT) and stored.dtype.kind in "iuf":  # numbers as they are written in a CSV file
        values, places = np.unique(stored, return_inverse=True)
        texts = [f"{value:.17g}" if float(value).is_integer() else repr(value.item()) for value in values]
        return cells.column(texts, places)
    return stored


# -- A table block by block ----------------------------------------------------------------------------------

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
    expected : ExpectedTable
    blocks : iterator of functions
        Each reads a block when it is called, so that several threads can read one each.
    """

    where: str
    names: tuple[str, ...]
    expected: ExpectedTable
    blocks: Iterator[Callable[[], Piece]]

    @property
    def unused(self) -> tuple[str, ...]:
        """Columns that are not read."""
        used = {*self.expected.columns, *self.expected.passed_on}
        return () if self.expected.by_position else tuple(name for name in self.names if name not in used)


def open_table(
    source: str,
    expected: ExpectedTable,
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
    text = as_utf8(raw.file, given.encoding, raw.name)
    beginning, is_all = csv_parsing.read_beginning(text, csv_parsing.LOOK_BYTES)
    form = csv_parsing.format_of(beginning, given, raw.name, is_all=is_all)
    matched = _matched(expected, form.names, raw.name)
    cells = {name: form.cells(name, held) for name, held in matched.columns.items()}
    blocks = CsvBlocks(form, cells, matched.passed_on)
    by_pyarrow = find_spec("pyarrow") is not None if with_pyarrow is None else with_pyarrow
    read = blocks.by_pyarrow if by_pyarrow else blocks.by_python
    rest = chained(beginning[form.start :], text)
    records = _named(raw, record_blocks(rest, form.separator, block_bytes))
    pieces = (lambda block=block: piece_of(matched, *read(block)) for block in records)
    return OpenTable(raw.name, form.names, matched, pieces)


def _open_arrow(raw: RawTable, expected: ExpectedTable, rows: int) -> OpenTable:
    schema, batches = arrow_schema(raw)
    names = refuse_duplicate_names(tuple(schema.names))
    matched = _matched(expected, names, raw.name)
    wanted = list(dict.fromkeys((*matched.columns, *matched.passed_on)))
    read = _named(raw, batches(wanted, rows))
    return OpenTable(raw.name, names, matched, (partial(piece_of_batch, matched, batch) for batch in read))


def _named(raw: RawTable, blocks: Iterator[Any]) -> Iterator[Any]:
    with raw.named():
        yield from blocks


def _matched(expected: ExpectedTable, names: tuple[str, ...], where: str) -> ExpectedTable:
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


# -- A whole table in memory, from a file of any kind or from standard input ---------------------------------

WHOLE_BATCH_ROWS = 2**16


def read_whole(source: str | Path, options: CsvOptions | None = None) -> TableFile:
    """A CSV, Parquet or Arrow table, also compressed, from a file or from standard input ("-"), with notes.

    What a column of a CSV file holds is found in all of its cells. Raises ValueError if the table cannot be read, has no
    rows, or if a compressed one is larger than two gibibytes.
    """
    given, raw = options or CsvOptions(), open_raw(source)
    with raw.named():
        if raw.kind != "text":
            return TableFile(read_frame(_arrow_table(raw)))
        text = replace(raw, file=as_utf8(raw.file, given.encoding, raw.name))
        return csv_parsing.table_of_text(text.limited(), given, raw.name)


def _arrow_table(raw: RawTable) -> Any:
    schema, batches = arrow_schema(raw)
    refuse_duplicate_names(tuple(schema.names))
    index = index_columns(schema)
    fields = [field for field in schema if field.name not in index]
    read = batches([field.name for field in fields], WHOLE_BATCH_ROWS)
    table = pyarrow().Table.from_batches(read, schema=pyarrow().schema(fields))
    if table.num_rows == 0:
        raise ValueError(f"{raw.name} has no rows")
    return table
