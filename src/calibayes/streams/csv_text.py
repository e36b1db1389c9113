"""How a CSV file is written, as its beginning shows: separator, header and ways to write numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from calibayes.core.protocols import Array
from calibayes.streams.expected_columns import DURATION, FLAG, NUMBER, Expected, Piece, piece_of
from calibayes.streams.raw_bytes import Chained
from calibayes.tables.arrow_text import module_of_pyarrow, pyarrow
from calibayes.tables.csv_file import (
    SEPARATOR_ROWS,
    Markers,
    NumberFormat,
    found_numbers,
    found_separator,
    markers,
    number_formats,
    plain_number,
)
from calibayes.tables.read import refuse_duplicate_names
from calibayes.tables.table import CodedColumn

# -- Distinct cells of a column of a CSV file as numbers, text, flags or durations ---------------------------
#
# What a cell means does not depend on the cells around it, so that the division of a file into blocks changes nothing.

FLAGS = {
    "true": True,
    "false": False,
    "1": True,
    "0": False,
    "1.0": True,
    "0.0": False,
    "yes": True,
    "no": False,
}
"""Ways to write a flag, in lower case."""


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a column are read.

    Attributes
    ----------
    name : str
    holds : str
        What the column holds.
    form : NumberFormat
        How numbers are written at the beginning of the file.
    decimal_comma : bool
        Whether a comma that can be both is a decimal comma rather than a thousands separator.
    missing : Markers
    """

    name: str
    holds: str
    form: NumberFormat
    decimal_comma: bool
    missing: Markers

    def column(self, cells: Sequence[str], places: Array) -> Array | CodedColumn:
        """The column whose row i has the text ``cells[places[i]]``; the last place, len(cells), is a missing value."""
        if self.holds == NUMBER:
            return np.array([*self._numbers(cells), np.nan])[places]
        if self.holds == DURATION:
            return np.array([*map(self._duration, cells), np.timedelta64("NaT", "us")], dtype="m8[us]")[
                places
            ]
        values = [self._flag(cell) if self.holds == FLAG else self._text(cell) for cell in cells]
        return _coded(values, places)

    def _numbers(self, cells: Sequence[str]) -> list[float]:
        """The cells as numbers, at once if all are plain ones."""
        if not self.form.meaning and not any("_" in cell for cell in cells):
            try:
                return [float(cell) if cell else np.nan for cell in cells]
            except ValueError:
                pass
        return [self._number(cell) for cell in cells]

    def _number(self, cell: str) -> float:
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return np.nan
        for form in (self.form, *number_formats(self.decimal_comma)):
            try:
                return form.parse(cell)
            except ValueError:
                continue
        raise self._unexpected(cell, "numbers", "number")

    def _text(self, cell: str) -> str | None:
        return None if cell.strip() in self.missing.always else cell

    def _flag(self, cell: str) -> bool | None:
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return None
        if text.lower() not in FLAGS:
            raise self._unexpected(cell, "true and false", "such value")
        return FLAGS[text.lower()]

    def _duration(self, cell: str) -> Any:
        """A duration as pandas writes it. Imports pandas only on use, because that import is slow."""
        if cell.strip() in self.missing.always:
            return np.timedelta64("NaT", "us")
        import pandas as pd

        try:
            return pd.Timedelta(cell.strip()).to_timedelta64()
        except ValueError:
            raise self._unexpected(cell, "durations", "duration") from None

    def _unexpected(self, cell: str, held: str, noun: str) -> ValueError:
        return ValueError(
            f"column {self.name!r} held {held} in training, but {cell!r} is no {noun}; if it stands for a missing value, "
            f"say so: --missing-value {cell.strip()!r}"
        )


def _coded(values: Sequence[Any], places: Array) -> CodedColumn:
    """A coded column of the values that occur; None is missing."""
    occurs = np.bincount(places, minlength=len(values) + 1)[: len(values)] > 0
    known = sorted({value for value, used in zip(values, occurs, strict=True) if used and value is not None})
    code = {value: number for number, value in enumerate(known)}
    codes = np.array([*(code.get(value, len(known)) for value in values), len(known)])
    distinct = np.empty(len(known), dtype=object)
    distinct[:] = known
    return CodedColumn(distinct, codes[places])


# -- Text of a CSV file in blocks that end where a record ends -----------------------------------------------

LARGEST_RECORD = 2**26
"""Bytes in which a record must end: otherwise a quotation mark is not closed."""


def record_pattern(separator: str) -> re.Pattern[bytes]:
    """Matches one record with its end of line. Cells that begin with a quotation mark may contain any character."""
    s = re.escape(separator.encode())
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+|[^"%s\n][^%s\n]*+)?+' % (s, s, s)
    return re.compile(rb"%s(?:%s%s)*+\n" % (cell, s, cell))


def record_blocks(file: BinaryIO, separator: str, size: int) -> Iterator[bytes]:
    """The text in blocks of whole records, of about ``size`` bytes.

    Raises ValueError if a quoted cell does not end.
    """
    records = re.compile(rb"(?:%s)*+" % record_pattern(separator).pattern)
    waiting = b""
    while more := file.read(size):
        waiting += more
        end = _end_of_records(waiting, records)
        if end:
            yield waiting[:end]
            waiting = waiting[end:]
        elif len(waiting) > LARGEST_RECORD:
            raise ValueError('a row has no end: a quotation mark (") that opens a cell is not closed')
    if waiting.strip(b"\r\n"):
        yield waiting


def _end_of_records(text: bytes, records: re.Pattern[bytes]) -> int:
    """Number of bytes of the records that end in a text."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    found = records.match(text)
    return found.end() if found else 0


# -- How a CSV file is written, as its beginning shows: separator, header and ways to write numbers ----------

LOOK_BYTES = 2**18
"""Bytes at the beginning that show how a file is written, whatever the size of the blocks that are read."""
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
STATED_SEPARATOR = re.compile(rb"sep=(.)\r?\n", flags=re.IGNORECASE)
"""A first line by which spreadsheets say what the separator is."""


@dataclass(frozen=True)
class CsvOptions:
    """What a user says about a CSV file; None where it is to be found."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.character) != 1:
            raise ValueError(
                f"--separator is {self.separator!r}; it must be one character, or one of "
                f"{', '.join(name for name in SEPARATOR_NAMES if name.isalpha())}"
            )
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal is {self.decimal!r}; it must be '.' or ','")
        if self.decimal == "," and self.character == ",":
            raise ValueError("--separator and --decimal are both a comma; give another separator")

    @property
    def character(self) -> str:
        """The separator as a character; empty where it is to be found."""
        given = self.separator or ""
        return SEPARATOR_NAMES.get(given.lower(), given)

    @property
    def missing(self) -> Markers:
        """Cells that are missing values."""
        return markers(self.missing_values)


@dataclass(frozen=True)
class CsvFormat:
    """How a file is written.

    Attributes
    ----------
    where : str
        What is read, for messages.
    separator : str
    header : bytes
        The line of names, as it is written.
    names : tuple of str
    decimal_comma : bool
        Whether commas in numbers are decimal commas, where they can be both.
    decimal : str
        The decimal mark with which most numbers can be read.
    forms : mapping
        Column -> how its numbers are written, for columns of numbers.
    missing : Markers
    """

    where: str
    separator: str
    header: bytes
    names: tuple[str, ...]
    decimal_comma: bool
    decimal: str
    forms: Mapping[str, NumberFormat]
    missing: Markers

    def cells(self, name: str, holds: str) -> CellFormat:
        """How the cells of a column are read."""
        form = self.forms.get(name, number_formats(self.decimal_comma)[0])
        return CellFormat(name, holds, form, self.decimal_comma, self.missing)

    @property
    def null_numbers(self) -> list[str]:
        """Cells that are missing values among numbers."""
        others = self.missing.among_numbers
        return sorted({*self.missing.always, *others, *map(str.upper, others), *map(str.capitalize, others)})


def look_at(file: BinaryIO, options: CsvOptions, where: str) -> tuple[CsvFormat, BinaryIO]:
    """How a file in UTF-8 is written, and the file from its first row of cells on.

    Raises ValueError if it is empty or not in UTF-8, or if two columns have the same name.
    """
    beginning = file.read(LOOK_BYTES)
    is_all = len(beginning) < LOOK_BYTES
    stated = STATED_SEPARATOR.match(beginning)
    text = (beginning[stated.end() :] if stated else beginning).lstrip(b"\r\n")
    found = options.character or (stated[1].decode("latin-1") if stated else "")
    shown = _text(text if is_all else text[: text.rfind(b"\n") + 1], where)
    separator = found or found_separator("".join(io.StringIO(shown, newline="").readlines()[:SEPARATOR_ROWS]))
    rows = _rows(shown, separator, where)
    if not rows or not any(cell.strip() for cell in rows[0]):
        raise ValueError(f"{where} is empty; a table with a header is expected")
    header = _header(text, separator)
    names = refuse_duplicate_names(tuple(rows[0]))
    form = _format(where, separator, header, names, rows[1:] if is_all else rows[1:-1], options)
    return form, io.BufferedReader(Chained(text[len(header) :], file), buffer_size=2**18)


def _text(text: bytes, where: str) -> str:
    if b"\x00" in text:
        raise ValueError(
            f"{where} is not a readable CSV file in UTF-8: it holds zero bytes; name its encoding with --encoding (such as utf-16-le)"
        )
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{where} is not a readable CSV file in UTF-8: {error}; name its encoding with --encoding (such as latin-1)"
        ) from error


def _rows(text: str, separator: str, where: str) -> list[list[str]]:
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    except csv.Error as error:
        raise ValueError(f"{where} is not a readable CSV file: {error}") from error


def _header(text: bytes, separator: str) -> bytes:
    found = record_pattern(separator).match(text)
    return found[0] if found else text


def _format(
    where: str,
    separator: str,
    header: bytes,
    names: tuple[str, ...],
    rows: Iterable[list[str]],
    options: CsvOptions,
) -> CsvFormat:
    missing = options.missing
    decimal_comma = options.decimal == "," or (options.decimal is None and separator == ";")
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    forms, marks = {}, set[str]()
    for name, cells in zip(names, columns, strict=False):
        known = [cell for cell in dict.fromkeys(cells) if cell.strip() not in missing.always]
        found = found_numbers(known, missing, decimal_comma=decimal_comma)
        if found is not None:
            forms[name] = found.form if options.decimal != "." else NumberFormat(plain_number)
            marks |= {mark for mark in ".," for cell in found.numbers if mark in cell}
    decimal = options.decimal or ("," if decimal_comma and "," in marks else ".")
    return CsvFormat(where, separator, header, names, decimal_comma, decimal, forms, missing)


def interpreted(form: CsvFormat, columns: Mapping[str, str]) -> dict[str, CellFormat]:
    """Column -> how its cells are read, from what each column holds."""
    return {name: form.cells(name, held) for name, held in columns.items()}


def are_numbers(columns: Mapping[str, str]) -> list[str]:
    """The columns that hold numbers."""
    return [name for name, held in columns.items() if held == NUMBER]


# -- Rows of a CSV file from blocks of its text: by pyarrow if it is installed, else by Python's own reader

FAILED_COLUMN = re.compile(r"In CSV column #(\d+)")
"""How pyarrow names a column with a cell that it cannot convert."""
UNEVEN_ROW = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
"""How pyarrow reports a row with too few or too many cells; the header is row 1."""


class RowError(ValueError):
    """A row of a block cannot be read; ``row`` is its number in the block, from 0."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row, self.problem = row, problem


@dataclass(frozen=True)
class CsvBlocks:
    """What the blocks of a file have in common: how it is written and what is read of it."""

    form: CsvFormat
    expected: Expected
    as_text: set[str] = field(default_factory=set)
    """Columns of numbers that pyarrow cannot convert, because of commas or marks of missing values."""

    @property
    def cell_formats(self) -> Mapping[str, CellFormat]:
        """Column -> how its cells are read."""
        return interpreted(self.form, self.expected.columns)

    def by_pyarrow(self, block: bytes) -> Piece:
        """The rows of a block. Raises ValueError if one cannot be read."""
        while True:
            try:
                return self._converted(self._arrow_table(block))
            except pyarrow().ArrowInvalid as error:
                self._note_failure(str(error))

    def _note_failure(self, message: str) -> None:
        """Have a column of numbers read as text. Raises ValueError if that does not help."""
        if uneven := UNEVEN_ROW.search(message):
            raise RowError(
                int(uneven[1] or 2) - 2, f"has {uneven[3]} cells, but the header has {uneven[2]}"
            ) from None
        found = FAILED_COLUMN.search(message)
        name = self.form.names[int(found[1])] if found else None
        if name is None or name in self.as_text or self.expected.columns.get(name) != NUMBER:
            advice = "; name its encoding with --encoding (such as latin-1)" if "UTF8" in message else ""
            raise ValueError(f"{self.form.where} is not a readable CSV file: {message}{advice}")
        self.as_text.add(name)

    def _arrow_table(self, block: bytes) -> Any:
        pa_csv, pa = module_of_pyarrow("csv"), pyarrow()
        coded, columns = pa.dictionary(pa.int32(), pa.string()), self.expected.columns
        as_numbers = {name for name, held in columns.items() if held == NUMBER} - self.as_text
        as_numbers -= {*self.expected.passed_on}  # whose text is needed, too
        types = {name: pa.float64() if name in as_numbers else coded for name in columns}
        further = {name: pa.string() for name in self.expected.passed_on if name not in columns}
        return pa_csv.read_csv(
            pa.BufferReader(self.form.header + block),
            read_options=pa_csv.ReadOptions(
                block_size=len(block) + len(self.form.header) + 1, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(delimiter=self.form.separator, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types={**types, **further},
                include_columns=[*types, *further],
                null_values=self.form.null_numbers,
                strings_can_be_null=False,
                decimal_point=self.form.decimal,
            ),
        )

    def _converted(self, rows: Any) -> Piece:
        formats = self.cell_formats
        columns = {name: _arrow_column(rows.column(name), form) for name, form in formats.items()}
        return piece_of(
            self.expected, columns, {name: _texts(rows, name) for name in self.expected.passed_on}
        )

    def by_python(self, block: bytes) -> Piece:
        """The rows of a block, without pyarrow. Raises ValueError if one cannot be read."""
        names, rows = self.form.names, list(self._rows(block))
        place = {name: j for j, name in enumerate(names)}
        columns = {
            name: _plain_column([row[place[name]] for row in rows], form)
            for name, form in self.cell_formats.items()
        }
        passed_on = {name: [row[place[name]] for row in rows] for name in self.expected.passed_on}
        return piece_of(self.expected, columns, passed_on)

    def _rows(self, block: bytes) -> Iterator[list[str]]:
        try:
            text = io.StringIO(block.decode("utf-8"), newline="")
            rows = [row for row in csv.reader(text, delimiter=self.form.separator) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{self.form.where} is not a readable CSV file: {error}") from error
        for number, row in enumerate(rows):
            if len(row) != len(self.form.names):
                raise RowError(number, f"has {len(row)} cells, but the header has {len(self.form.names)}")
        return iter(rows)


def _arrow_column(column: Any, form: CellFormat) -> Array | CodedColumn:
    """A column of Arrow as an array: numbers as they are, text by its distinct cells."""
    pa = pyarrow()
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # of no chunk
        whole = pa.array([], column.type)
    if not pa.types.is_dictionary(whole.type):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    return form.column(whole.dictionary.to_pylist(), whole.indices.to_numpy(zero_copy_only=False))


def _texts(rows: Any, name: str) -> list[str]:
    column = rows.column(name)
    is_coded = pyarrow().types.is_dictionary(column.type)
    if not is_coded and not pyarrow().types.is_string(column.type):
        column = column.cast(pyarrow().string())
    return column.to_pylist()


def _plain_column(cells: list[str], form: CellFormat) -> Array | CodedColumn:
    place = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
    return form.column(list(place), np.array([place[cell] for cell in cells], dtype=np.int64))
