"""A first look at a CSV file: its separator, its header, and which columns hold numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from calibayes.tables.csv_file import (
    SEPARATOR_ROWS,
    Markers,
    NumberFormat,
    found_numbers,
    found_separator,
)
from calibayes.tables.read import refuse_duplicate_names
from calibayes.tables.streams.faults import read_twice

LOOK_BYTES = 2**22
"""Bytes at the beginning of a file in which the kinds of its columns are found."""


@dataclass(frozen=True)
class CsvLook:
    """What the beginning of a file shows."""

    path: str
    filesystem: Any
    separator: str
    names: tuple[str, ...]
    formats: Mapping[str, NumberFormat]
    """Column of numbers -> how they are written."""
    unusual: frozenset[str]
    """Columns of numbers with commas in them, or with marks of missing values that would be levels in text."""
    unknown: frozenset[str]
    """Columns without a known cell among the rows that were looked at."""
    is_all: bool
    """Whether these are all rows."""

    @property
    def empty(self) -> frozenset[str]:
        """Columns without a known cell, if there are more rows than were looked at."""
        return frozenset() if self.is_all else self.unknown


def looked_at(path: str, filesystem: Any, missing: Markers) -> CsvLook:
    """Look at the beginning of a file. Raises ValueError if it is empty or not in UTF-8."""
    beginning = read_twice(lambda: _beginning(path, filesystem), path)
    is_all = len(beginning) < LOOK_BYTES
    separator, rows = _rows(path, beginning, is_all=is_all)
    if not rows:
        raise ValueError(f"{path} is empty")
    names = refuse_duplicate_names(tuple(rows[0]))
    _refuse_uneven(path, rows)
    columns = dict(zip(names, zip(*rows[1:], strict=True), strict=False))
    known = {name: _known(columns.get(name, ()), missing) for name in names}
    found = {
        name: found_numbers(cells, missing, decimal_comma=separator == ";") for name, cells in known.items()
    }
    numbers = {name: one for name, one in found.items() if one is not None}
    unusual = frozenset(name for name, one in numbers.items() if one.form.meaning or one.others)
    unknown = frozenset(name for name in names if not known[name])
    formats = {name: one.form for name, one in numbers.items()}
    return CsvLook(path, filesystem, separator, names, formats, unusual, unknown, is_all)


def together(looks: Sequence[CsvLook]) -> CsvLook:
    """The look at the first of several files, with kinds of columns from the first file that has a known cell of them."""
    shown = {
        name: next((look for look in looks if name not in look.unknown), looks[0]) for name in looks[0].names
    }
    return replace(
        looks[0],
        formats={name: look.formats[name] for name, look in shown.items() if name in look.formats},
        unusual=frozenset(name for name, look in shown.items() if name in look.unusual),
        unknown=frozenset(name for name, look in shown.items() if name in look.unknown),
    )


def _beginning(path: str, filesystem: Any) -> bytes:
    """The first bytes of a file, decompressed."""
    with filesystem.open_input_stream(path) as file:
        content: bytes = file.read(LOOK_BYTES)
        return content


def _rows(path: str, beginning: bytes, *, is_all: bool) -> tuple[str, list[list[str]]]:
    """The separator, and the rows that are not empty; the last one may be incomplete and is left out unless all is read."""
    whole = beginning if is_all else beginning[: beginning.rfind(b"\n") + 1]
    try:
        text = whole.decode("utf-8-sig")
        separator = found_separator("".join(islice(io.StringIO(text, newline=""), SEPARATOR_ROWS)))
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a readable CSV file in UTF-8: {error}") from error
    return separator, rows if is_all else rows[:-1]


def _refuse_uneven(path: str, rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path}: row {number} has {len(row)} cells, but the header has {len(rows[0])}")


def _known(cells: Sequence[str], missing: Markers) -> list[str]:
    """Distinct cells that are not missing in any column."""
    return [cell for cell in dict.fromkeys(cells) if cell.strip() not in missing.always]
