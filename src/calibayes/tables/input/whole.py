"""A whole table in memory, from a file of any kind or from standard input."""

from __future__ import annotations

import csv
import io
from typing import Any

from calibayes.tables.csv_file import LARGEST_DECOMPRESSED, content_of
from calibayes.tables.input.arrow_batches import arrow_schema
from calibayes.tables.input.csv_format import CsvOptions, look_at
from calibayes.tables.input.encoded_text import as_utf8
from calibayes.tables.input.raw import RawTable, open_raw, unreadable
from calibayes.tables.read import TableFile, read_frame, refuse_duplicate_names
from calibayes.tables.streams.arrow.modules import pyarrow
from calibayes.tables.table import Table

BATCH_ROWS = 2**16


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
    table = pyarrow().Table.from_batches(batches(names, BATCH_ROWS), schema=_only(schema, names))
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
