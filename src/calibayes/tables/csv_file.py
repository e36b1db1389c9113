"""Read CSV files: find the separator, parse numbers, recognize missing values, and note what is not obvious."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.dates import formats_of
from calibayes.tables.text import counted

SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_ROWS = 20
"""Rows at the beginning of a file that must have as many cells as its header, if they are divided by a separator."""
ALWAYS_MISSING = frozenset(
    [
        "",
        "NA",
        "N/A",
        "n/a",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "<NA>",
        "NaN",
        "nan",
        "-NaN",
        "-nan",
        "null",
        "NULL",
        "None",
        "1.#IND",
        "1.#QNAN",
        "-1.#IND",
        "-1.#QNAN",
    ]
)
"""Cells that are missing values in any column: the empty one and those of pandas.read_csv."""
MISSING_AMONG_NUMBERS = frozenset({"?", "-", "unknown"})
"""Cells, in upper or lower case, that are missing values if all others of the column are numbers; otherwise levels."""
MOSTLY_NUMBERS = 0.9
"""A column of text is noted if at least this share of its known cells are numbers."""
LARGEST_DECOMPRESSED = 2**31
"""Largest size in bytes of a decompressed file, so that a small file cannot fill the memory."""
LARGEST_RATIO = 1032
"""Largest ratio of decompressed to compressed size of gzip: smaller files need no check."""
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?")


class ParsedColumn(NamedTuple):
    """A column of a CSV file and notes on how it was read."""

    values: Array
    notes: tuple[str, ...] = ()


class CSVContent(NamedTuple):
    """Names and columns of a CSV file, and notes on how they were read."""

    names: tuple[str, ...]
    columns: tuple[Array, ...]
    notes: tuple[str, ...]


class NumberFormat(NamedTuple):
    """A way to write numbers: ``parse`` raises ValueError for a cell that is not written so."""

    parse: Callable[[str], float]
    meaning: str = ""
    """What the commas mean, for the note; empty if nothing is to be noted."""


class Markers(NamedTuple):
    """Cells that are missing values: in any column, and among numbers only (in lower case)."""

    always: frozenset[str] = ALWAYS_MISSING
    among_numbers: frozenset[str] = MISSING_AMONG_NUMBERS


def markers(missing_values: Iterable[str] | None) -> Markers:
    """The markers of missing values: by default the usual ones, else the given ones and the empty cell, in any column."""
    if missing_values is None:
        return Markers()
    given = [missing_values] if isinstance(missing_values, str) else list(missing_values)
    if isinstance(missing_values, str) or not all(isinstance(value, str) for value in given):
        raise ValueError(
            f"missing_values must be a list of strings, got {missing_values!r}; for example ['NA', '?']"
        )
    return Markers(frozenset({"", *(value.strip() for value in given)}), frozenset())


def read_csv(path: Path, missing_values: Iterable[str] | None = None) -> CSVContent:
    """A CSV file with a header, gzipped if it ends in .gz; the separator is found in the header.

    Raises ValueError if it is empty or not readable, has no rows or rows of different lengths, or if a gzipped file is
    larger than ``LARGEST_DECOMPRESSED``.
    """
    missing = markers(missing_values)
    try:
        if path.suffix == ".gz":
            _refuse_large(path)
        separator, numbered_rows = _numbered_rows(path)
    except (UnicodeDecodeError, csv.Error, EOFError, OSError) as error:
        raise ValueError(f"{path} is not a readable CSV file in UTF-8: {error}") from error
    return content_of(str(path), numbered_rows, missing, decimal_comma=separator == ";")


def content_of(
    where: str, numbered_rows: Sequence[tuple[int, list[str]]], missing: Markers, *, decimal_comma: bool
) -> CSVContent:
    """Names and columns from the rows of a file with their line numbers, of which the first is the header.

    Raises ValueError if there are no rows below the header or they have different lengths.
    """
    if not numbered_rows:
        raise ValueError(f"{where} is empty")
    if len(numbered_rows) < 2:
        raise ValueError(f"{where} has no rows below its header")
    header, body = numbered_rows[0][1], numbered_rows[1:]
    uneven = [(line, len(row)) for line, row in body if len(row) != len(header)]
    if uneven:
        line, size = uneven[0]
        raise ValueError(f"{where}: row {line} has {counted(size, 'cell')}, but the header has {len(header)}")
    columns = zip(*(row for _, row in body), strict=True)
    parsed = [
        parsed_column(name, cells, missing, decimal_comma=decimal_comma)
        for name, cells in zip(header, columns, strict=True)
    ]
    notes = tuple(note for column in parsed for note in column.notes)
    return CSVContent(tuple(header), tuple(column.values for column in parsed), notes)


def _numbered_rows(path: Path) -> tuple[str, list[tuple[int, list[str]]]]:
    """The separator, and the rows that are not empty with their line numbers."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        separator = found_separator("".join(islice(file, SEPARATOR_ROWS)))
        file.seek(0)
        reader = csv.reader(file, delimiter=separator)
        return separator, [(reader.line_num, row) for row in reader if row]


def found_separator(beginning: str) -> str:
    """The separator that divides the header into most cells; a comma if none does.

    ``beginning`` is the header, perhaps with rows below it: a separator that divides these into as many cells as the
    header comes first.
    """
    rows = {separator: _first_rows(beginning, separator) for separator in SEPARATORS}
    even = [
        separator for separator, found in rows.items() if len(found[0]) > 1 and len({*map(len, found)}) == 1
    ]
    return max(even or SEPARATORS, key=lambda separator: len(rows[separator][0]))


def _first_rows(beginning: str, separator: str) -> list[list[str]]:
    """Rows at the beginning of a file that are not empty; one empty row if there are none."""
    rows = (row for row in csv.reader(io.StringIO(beginning, newline=""), delimiter=separator) if row)
    return list(islice(rows, SEPARATOR_ROWS)) or [[]]


def _refuse_large(path: Path) -> None:
    """Raise ValueError if a gzipped file is too large, in constant memory."""
    if path.stat().st_size * LARGEST_RATIO <= LARGEST_DECOMPRESSED:
        return
    size = 0
    with gzip.open(path, "rb") as file:
        while block := file.read(2**20):
            size += len(block)
            if size > LARGEST_DECOMPRESSED:
                raise ValueError(
                    f"{path} decompresses to more than {_in_units(LARGEST_DECOMPRESSED)}, the limit for compressed "
                    "files: if you trust it, decompress it first and give the .csv file"
                )


def _in_units(size: int) -> str:
    """A number of bytes as text: 2 GiB."""
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:g} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


def parsed_column(
    name: str, cells: Sequence[str], missing: Markers, *, decimal_comma: bool = False
) -> ParsedColumn:
    """Strings as floats if all that are not missing are numbers, else as strings with None where missing.

    ``decimal_comma`` says that commas are decimal commas rather than thousands separators, where they can be both.
    """
    counts = Counter(cells)
    known = [cell for cell in counts if cell.strip() not in missing.always]
    if found := found_numbers(known, missing, decimal_comma=decimal_comma):
        form, numbers, others = found
        notes = (*_format_notes(name, numbers, form), *_missing_notes(name, counts, numbers, others))
        return ParsedColumn(np.array([numbers.get(cell, np.nan) for cell in cells], dtype=np.float64), notes)
    text = set(known)
    values = np.array([cell if cell in text else None for cell in cells], dtype=object)
    return ParsedColumn(values, _text_notes(name, counts, known))


class FoundNumbers(NamedTuple):
    """How numbers are written, the number of each cell that is one, and the cells that mark missing values."""

    form: NumberFormat
    numbers: Mapping[str, float]
    others: Sequence[str]


def found_numbers(
    known: Sequence[str], missing: Markers, *, decimal_comma: bool = False
) -> FoundNumbers | None:
    """The numbers of a column, from its distinct cells without those that are missing in any column; None for text."""
    for form in number_formats(decimal_comma):
        numbers = _numbers(known, form)
        others = [cell for cell in known if cell not in numbers]
        are_missing = all(cell.strip().lower() in missing.among_numbers for cell in others)
        if (numbers or not known) and are_missing:
            return FoundNumbers(form, numbers, others)
    return None


def number_formats(decimal_comma: bool) -> list[NumberFormat]:
    """The ways to write numbers, in the order in which they are tried: ``1,250`` may be 1.25 or 1250."""
    commas = [
        NumberFormat(_with_thousands, "thousands separators"),
        NumberFormat(_with_decimal_comma, "decimal commas"),
    ]
    return [NumberFormat(plain_number), *(reversed(commas) if decimal_comma else commas)]


def _numbers(cells: Iterable[str], form: NumberFormat) -> dict[str, float]:
    """The numbers among the cells."""
    numbers = {}
    for cell in cells:
        try:
            numbers[cell] = form.parse(cell)
        except ValueError:
            continue
    return numbers


def plain_number(cell: str) -> float:
    """A string as a number; Python's underscores (1_000) are refused with ValueError."""
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _with_thousands(cell: str) -> float:
    """A number that may have commas between groups of three digits."""
    is_grouped = THOUSANDS.fullmatch(cell.strip()) is not None
    return float(cell.replace(",", "")) if is_grouped else plain_number(cell)


def _with_decimal_comma(cell: str) -> float:
    """A number with a decimal comma, and perhaps points between groups of three digits."""
    if DECIMAL_COMMA.fullmatch(cell.strip()) is None:
        raise ValueError(cell)
    return float(cell.replace(".", "").replace(",", "."))


def _format_notes(name: str, numbers: Mapping[str, float], form: NumberFormat) -> tuple[str, ...]:
    example = next((cell for cell in numbers if "," in cell), None)
    if not form.meaning or example is None:
        return ()
    text = f"{example.strip()!r} as {numbers[example]:.15g}"
    return (f"column {name!r}: commas read as {form.meaning}, such as {text}",)


def _missing_notes(
    name: str, counts: Mapping[str, int], numbers: Mapping[str, float], others: Sequence[str]
) -> tuple[str, ...]:
    if not others:
        return ()
    marks = Counter[str]()
    for cell in others:
        marks[cell.strip()] += counts[cell]
    taken = ", ".join(f"{count} {mark!r}" for mark, count in marks.items())
    count = sum(counts[cell] for cell in numbers)
    return (
        f"column {name!r}: {count} of {sum(counts.values())} cells are numbers; {taken} taken as missing",
    )


def _text_notes(name: str, counts: Mapping[str, int], known: Sequence[str]) -> tuple[str, ...]:
    """A note on a column of text all of whose cells are dates, or most of whose cells are numbers."""
    forms = formats_of([cell.strip() for cell in known])
    if len(forms) == 1:
        return (f"column {name!r} holds dates, written as {forms[0].name}; estimators read them as such",)
    numbers = _numbers(known, NumberFormat(plain_number))
    count, total = sum(counts[cell] for cell in numbers), sum(counts[cell] for cell in known)
    if count < MOSTLY_NUMBERS * total:
        return ()
    others = [repr(cell) for cell in known if cell not in numbers]
    listed = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    text = (
        f"column {name!r} was read as text: {count} of {sum(counts.values())} cells are numbers, but {listed} "
        f"{'is' if len(others) == 1 else 'are'} not; if such a cell is a missing value, say so by missing_values "
        "(--missing-value)"
    )
    return (text,)
