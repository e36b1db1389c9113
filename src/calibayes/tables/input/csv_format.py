"""How a CSV file is written, as its beginning shows: separator, header and ways to write numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

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
from calibayes.tables.input.cells import CellFormat
from calibayes.tables.input.expected import NUMBER
from calibayes.tables.input.raw import Chained
from calibayes.tables.input.records import record_pattern
from calibayes.tables.read import refuse_duplicate_names

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
