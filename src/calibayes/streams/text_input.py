"""Open a table with the columns that a model expects, and read it block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.streams.arrow import stored_column
from calibayes.streams.csv_text import CellFormat, CsvBlocks, CsvOptions, look_at, record_blocks
from calibayes.streams.expected_columns import (
    FLAG,
    NUMBER,
    TEXT,
    Expected,
    ExpectedColumn,
    Piece,
    piece_of,
    require_columns,
)
from calibayes.streams.raw_bytes import RawTable, as_utf8, open_raw, unreadable
from calibayes.tables.arrow_text import is_text, module_of_pyarrow, pyarrow
from calibayes.tables.csv_file import LARGEST_DECOMPRESSED, content_of, markers, number_formats
from calibayes.tables.read import TableFile, read_frame, refuse_duplicate_names
from calibayes.tables.table import CodedColumn, Table
from calibayes.tables.text import counted

# -- Rows of Parquet and Arrow files, converted to what is expected of each column ---------------------------


def arrow_schema(raw: RawTable) -> tuple[Any, Callable[[list[str], int], Iterator[Any]]]:
    """The schema of a file, and a function of names of columns and a number of rows that gives its batches."""
    try:
        if raw.kind == "parquet":
            parquet = module_of_pyarrow("parquet").ParquetFile(
                raw.whole(), buffer_size=2**18, pre_buffer=False
            )
            return parquet.schema_arrow, partial(_parquet_batches, parquet)
        ipc = module_of_pyarrow("ipc")
        if raw.kind == "ipc file":
            file = ipc.open_file(raw.whole())
            return file.schema, partial(_sliced, (file.get_batch(i) for i in range(file.num_record_batches)))
        reader = ipc.open_stream(pyarrow().PythonFile(raw.file, mode="r"))
        return reader.schema, partial(_sliced, reader)
    except ImportError:
        raise ValueError(
            f"{raw.name} is a Parquet or Arrow file, which needs pyarrow: pip install 'calibayes[parquet]'"
        ) from None
    except (pyarrow().ArrowException, OSError) as error:
        raise ValueError(f"{raw.name} is damaged: {error}") from error


def _parquet_batches(file: Any, columns: list[str], rows: int) -> Iterator[Any]:
    return iter(file.iter_batches(rows, columns=columns, use_threads=False))


def _sliced(batches: Iterator[Any], columns: list[str], rows: int) -> Iterator[Any]:
    for batch in batches:
        chosen = batch.select(columns)
        chosen.validate(full=True)
        yield from (chosen.slice(start, rows) for start in range(0, chosen.num_rows, rows))


def piece_of_batch(expected: Expected, batch: Any) -> Piece:
    """The rows of a batch. Raises ValueError if a column holds something else than expected."""
    rows = pyarrow().Table.from_batches([batch])
    columns = {name: _column(rows.column(name), name, held) for name, held in expected.columns.items()}
    passed_on = {
        name: [_shown(cell) for cell in rows.column(name).to_pylist()] for name in expected.passed_on
    }
    return piece_of(expected, columns, passed_on)


def _shown(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _column(column: Any, name: str, held: str) -> Array | CodedColumn:
    """A column; text where numbers or flags are expected is read, and numbers where text is expected are written."""
    types, kind = pyarrow().types, column.type
    if types.is_dictionary(kind) and not is_text(kind.value_type):
        column = column.cast(kind.value_type)
    stored = stored_column(column, name)
    if isinstance(stored, CodedColumn) and not types.is_boolean(kind) and held != TEXT:
        return _form(name, held).column(list(stored.values), stored.codes)
    if held == NUMBER and stored.dtype.kind in "iub":
        return np.asarray(stored, dtype=np.float64)
    if held == FLAG and stored.dtype.kind in "iuf":
        return _from_cells(_form(name, held), stored)
    if held == TEXT and stored.dtype.kind in "iuf":
        return _from_cells(_form(name, held), stored)
    return stored


def _form(name: str, held: str) -> CellFormat:
    return CellFormat(name, held, number_formats(False)[0], False, markers(None))


def _from_cells(form: CellFormat, numbers: Array | CodedColumn) -> Array | CodedColumn:
    """Numbers as they are written in a CSV file."""
    values, places = np.unique(numbers, return_inverse=True)
    texts = [f"{value:.17g}" if float(value).is_integer() else repr(value.item()) for value in values]
    return form.column(texts, places)


# -- Open a table with the columns that a model expects, and read it block by block --------------------------

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


# -- A whole table in memory, from a file of any kind or from standard input ---------------------------------

WHOLE_BATCH_ROWS = 2**16


def read_whole(source: str, options: CsvOptions | None = None) -> TableFile:
    """A CSV, Parquet or Arrow table, also compressed, from a file or from standard input ("-"), with notes.

    What a column of a CSV file holds is found in all of its cells. Raises ValueError if the table cannot be read, has no
    rows, or if a compressed one is larger than two gibibytes.
    """
    raw = open_raw(source)
    try:
        return _read_text(raw, options or CsvOptions()) if raw.kind == "text" else _read_arrow(raw)
    except (EOFError, OSError) as error:
        raise unreadable(raw, error) from error


def _read_arrow(raw: RawTable) -> TableFile:
    schema, batches = arrow_schema(raw)
    refuse_duplicate_names(tuple(schema.names))
    index = _index_columns(schema)
    names = [name for name in schema.names if name not in index]
    table = pyarrow().Table.from_batches(batches(names, WHOLE_BATCH_ROWS), schema=_only(schema, names))
    if table.num_rows == 0:
        raise ValueError(f"{raw.name} has no rows")
    return TableFile(read_frame(table))


def _index_columns(schema: Any) -> list[str]:
    """The columns that hold the index of the data frame that a file was written from."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in stored if isinstance(name, str)]


def _only(schema: Any, names: list[str]) -> Any:
    return pyarrow().schema([schema.field(name) for name in names])


def _read_text(raw: RawTable, options: CsvOptions) -> TableFile:
    form, rest = look_at(as_utf8(raw.file, options.encoding, raw.name), options, raw.name)
    names, columns, notes = content_of(
        raw.name,
        [(1, list(form.names)), *_numbered_rows(_limited(raw, rest), form.separator, raw.name)],
        form.missing,
        decimal_comma=form.decimal_comma,
    )
    return TableFile(Table(refuse_duplicate_names(names), columns), notes)


def _limited(raw: RawTable, file: Any) -> str:
    """The text. Raises ValueError if that of a compressed file is too large, or if it is not in UTF-8."""
    content = file.read() if raw.path is not None else file.read(LARGEST_DECOMPRESSED + 1)
    if raw.path is None and len(content) > LARGEST_DECOMPRESSED:
        raise ValueError(
            f"{raw.name} is larger than 2 GiB: decompress it into a file first and give that file"
        )
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{raw.name} is not a readable CSV file in UTF-8: {error}; name its encoding with --encoding (such as latin-1)"
        ) from error


def _numbered_rows(text: str, separator: str, where: str) -> list[tuple[int, list[str]]]:
    """Rows that are not empty, with their line numbers; the header was line 1."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [(reader.line_num + 1, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{where} is not a readable CSV file: {error}") from error
