"""Recognize how a CSV file is written: separator, header, decimal marks, missing values and what columns hold."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.tables.dates import formats_of
from calibayes.tables.read import refuse_duplicate_names
from calibayes.tables.table import CodedColumn, Table, sorted_codes

# -- Missing values, and ways to write numbers ---------------------------------------------------------------

SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_ROWS = 20
"""Rows at the beginning of a file that must have as many cells as its header, if they are divided by a separator."""
ALWAYS_MISSING = frozenset(
    (
        *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
        *("null", "NULL", "None", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
    )
)
"""Cells that are missing values in any column: the empty one and those of pandas.read_csv."""
MISSING_AMONG_NUMBERS = frozenset({"?", "-", "unknown"})
"""Cells, in upper or lower case, that are missing values if all others of the column are numbers; otherwise levels."""
LOOK_BYTES = 2**18
"""Bytes at the beginning that show how a file is written, or more if the header and some rows take more."""
LARGEST_RECORD = 2**26
"""Bytes in which a row must end: otherwise a quotation mark is not closed."""
MOSTLY_NUMBERS = 0.9
"""A column of text is noted if at least this share of its known cells are numbers."""
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
DECIMAL_COMMAS = "decimal commas"
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?")


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
    thousands = NumberFormat(_with_thousands, "thousands separators")
    decimals = NumberFormat(_with_decimal_comma, DECIMAL_COMMAS)
    return [NumberFormat(plain_number), *((decimals, thousands) if decimal_comma else (thousands, decimals))]


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


# -- How a file is written, as its beginning shows -----------------------------------------------------------

SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
STATED_SEPARATOR = re.compile(rb"sep=(.)\r?\n", flags=re.IGNORECASE)
"""A first line by which spreadsheets say what the separator is."""


@dataclass(frozen=True)
class CsvOptions:
    """What a user says about a CSV file; None where it is to be found."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_values: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and len(self.character) != 1:
            keys = ", ".join(filter(str.isalpha, SEPARATOR_NAMES))
            raise ValueError(f"--separator is {self.separator!r}; it must be one character, or one of {keys}")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal is {self.decimal!r}; it must be '.' or ','")
        if self.decimal == "," and self.character == ",":
            raise ValueError("--separator and --decimal are both a comma; give another separator")
        markers(self.missing_values)  # raises ValueError

    @property
    def character(self) -> str:
        """The separator as a character; empty where it is to be found."""
        given = self.separator or ""
        return SEPARATOR_NAMES.get(given.lower(), given)


@dataclass(frozen=True)
class CsvFormat:
    """How a file is written.

    Attributes
    ----------
    where : str
        What is read, for messages.
    start : int
        Number of bytes before the first row below the header.
    separator : str
    names : tuple of str
    decimal_comma : bool
        Whether commas in numbers are decimal commas, where they can be both.
    decimal : str
        The decimal mark with which most numbers can be read.
    forms : mapping
        Column -> how its numbers are written, for columns of numbers.
    unknown : frozenset of str
        Columns without a known cell among the rows that were looked at.
    missing : Markers
    """

    where: str
    start: int
    separator: str
    names: tuple[str, ...]
    decimal_comma: bool
    decimal: str
    forms: Mapping[str, NumberFormat]
    unknown: frozenset[str]
    missing: Markers

    def cells(self, name: str, holds: str) -> CellFormat:
        """How the cells of a column are read."""
        forms = number_formats(self.decimal_comma)
        return CellFormat(name, holds, (self.forms.get(name, forms[0]), *forms), self.missing)

    def has_decimal(self, name: str) -> bool:
        """Whether the numbers of a column need no more than the decimal mark to be read."""
        meaning = self.forms[name].meaning if name in self.forms else ""
        return not meaning or (meaning == DECIMAL_COMMAS and self.decimal == ",")

    @property
    def null_numbers(self) -> list[str]:
        """Cells that are missing values among numbers."""
        others = self.missing.among_numbers
        return sorted({*self.missing.always, *others, *map(str.upper, others), *map(str.capitalize, others)})


def read_beginning(file: BinaryIO, size: int) -> tuple[bytes, bool]:
    """The first ``size`` bytes of a file, or as many as the header and some rows take; and whether these are all."""
    beginning = more = file.read(size)
    while len(more) == size and beginning.count(b"\n") <= SEPARATOR_ROWS and len(beginning) <= LARGEST_RECORD:
        more = file.read(size)
        beginning += more
    return beginning, len(more) < size


def format_of(beginning: bytes, options: CsvOptions, where: str, *, is_all: bool) -> CsvFormat:
    """How a file in UTF-8 is written, from its beginning, or from all of it.

    Raises ValueError if it is empty or not in UTF-8, or if two columns have the same name.
    """
    stated = STATED_SEPARATOR.match(beginning)
    text = (beginning[stated.end() :] if stated else beginning).lstrip(b"\r\n")
    shown = _decoded(text if is_all else text[: text.rfind(b"\n") + 1], where)
    if text and not shown:
        raise ValueError(
            f"{where} is not a readable CSV file: its first line does not end within {len(text)} bytes"
        )
    lines = io.StringIO(shown, newline="").readlines()
    given = options.character or (stated[1].decode("latin-1") if stated else "")
    separator = given or found_separator("".join(lines[:SEPARATOR_ROWS]))
    numbered = numbered_rows(shown, separator, where)
    if not numbered or not any(cell.strip() for cell in numbered[0][1]):
        raise ValueError(f"{where} is empty; a table with a header is expected")
    start = len(beginning) - len(text) + len("".join(lines[: numbered[0][0]]).encode())
    names = refuse_duplicate_names(tuple(numbered[0][1]))
    rows = [row for _, row in (numbered[1:] if is_all else numbered[1:-1]) if len(row) == len(names)]
    missing = markers(options.missing_values)
    decimal_comma = options.decimal == "," or (options.decimal is None and separator == ";")
    forms, unknown, marks = {}, set[str](), set[str]()
    for name, cells in zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True):
        known = [cell for cell in dict.fromkeys(cells) if cell.strip() not in missing.always]
        if not known:
            unknown.add(name)
        if found := found_numbers(known, missing, decimal_comma=decimal_comma):
            forms[name] = found.form if options.decimal != "." else NumberFormat(plain_number)
            marks |= {mark for mark in ".," for cell in found.numbers if mark in cell}
    decimal = options.decimal or ("," if decimal_comma and "," in marks else ".")
    return CsvFormat(
        where, start, separator, names, decimal_comma, decimal, forms, frozenset(unknown), missing
    )


def _decoded(text: bytes, where: str) -> str:
    try:
        if b"\x00" not in text:
            return text.decode("utf-8")
        problem, encoding = "it holds zero bytes", "utf-16-le"
    except UnicodeDecodeError as error:
        problem, encoding = str(error), "latin-1"
    raise ValueError(
        f"{where} is not a readable CSV file in UTF-8: {problem}; convert it to UTF-8, or name its encoding with --encoding "
        f"(such as {encoding})"
    )


def numbered_rows(text: str, separator: str, where: str) -> list[tuple[int, list[str]]]:
    """Rows that are not empty, with the numbers of the lines on which they end."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        problem = f"{error}; is a quotation mark not closed?" if "limit" in str(error) else error
        raise ValueError(f"{where} is not a readable CSV file: line {reader.line_num}: {problem}") from error


def found_separator(beginning: str) -> str:
    """The separator that divides the header into most cells; a comma if none does.

    ``beginning`` is the header, perhaps with rows below it: a separator that divides these into as many cells as the
    header comes first.
    """
    rows = {separator: _first_rows(beginning, separator) for separator in SEPARATORS}
    even = [mark for mark, found in rows.items() if len(found[0]) > 1 and len({*map(len, found)}) == 1]
    return max(even or SEPARATORS, key=lambda separator: len(rows[separator][0]))


def _first_rows(beginning: str, separator: str) -> list[list[str]]:
    """Rows at the beginning of a file that are not empty; one empty row if there are none, or if a cell is too long."""
    rows = (row for row in csv.reader(io.StringIO(beginning, newline=""), delimiter=separator) if row)
    try:
        return list(islice(rows, SEPARATOR_ROWS)) or [[]]
    except csv.Error:
        return [[]]


# -- Distinct cells of a column as numbers, text, flags or durations -----------------------------------------
#
# What a cell means does not depend on the cells around it, so that the division of a file into blocks changes nothing.

NUMBER, TEXT, FLAG, DURATION = "number", "text", "flag", "duration"
"""What a column holds."""
FLAGS = dict.fromkeys(("true", "1", "1.0", "yes"), True) | dict.fromkeys(("false", "0", "0.0", "no"), False)
"""Ways to write a flag, in lower case."""


OTHER_IN_TRAINING = (
    "column {name!r} held {held} in training, but {cell!r} is no {noun}; if it stands for a missing value, "
    "say so: --missing-value {text!r}"
)


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a column are read.

    Attributes
    ----------
    name : str
    holds : str
        What the column holds.
    forms : sequence of NumberFormat
        How numbers are written; the first that fits is taken.
    missing : Markers
    problem : str
        The message about a cell that is something else, with fields for the column, the cell and what it should be.
    """

    name: str
    holds: str
    forms: Sequence[NumberFormat]
    missing: Markers
    problem: str = OTHER_IN_TRAINING

    def column(self, cells: Sequence[str], places: Array) -> Array | CodedColumn:
        """The column whose row i has the text ``cells[places[i]]``; the last place, len(cells), is a missing value."""
        if self.holds == NUMBER:
            return np.array([*self._numbers(cells), np.nan])[places]
        if self.holds == DURATION:
            durations = [*map(self._duration, cells), np.timedelta64("NaT", "us")]
            return np.array(durations, dtype="m8[us]")[places]
        values = [self._flag(cell) if self.holds == FLAG else self._text(cell) for cell in cells]
        return _coded(values, places)

    def _numbers(self, cells: Sequence[str]) -> list[float]:
        """The cells as numbers, at once if all are plain ones."""
        if not self.forms[0].meaning and not any("_" in cell for cell in cells):
            try:
                return [float(cell) if cell else np.nan for cell in cells]
            except ValueError:
                pass
        return [self._number(cell) for cell in cells]

    def _number(self, cell: str) -> float:
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return np.nan
        for form in self.forms:
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
            self.problem.format(name=self.name, held=held, noun=noun, cell=cell, text=cell.strip())
        )


def _coded(values: Sequence[Any], places: Array) -> CodedColumn:
    """A coded column of the values that occur; None is missing."""
    occurs = np.bincount(places, minlength=len(values) + 1)[: len(values)] > 0
    used = [value if is_used else None for value, is_used in zip(values, occurs, strict=True)]
    distinct, codes = sorted_codes(used)
    return CodedColumn(distinct, np.append(codes, len(distinct))[places])


# -- A whole file, with notes on what is not obvious ---------------------------------------------------------


class TableFile(NamedTuple):
    """The table of a file, and notes on how it was read."""

    table: Table
    notes: tuple[str, ...] = ()


def table_of_text(content: bytes, options: CsvOptions, where: str) -> TableFile:
    """The table of a file in UTF-8; what a column holds is found in all of its cells.

    Raises ValueError if there are no rows below the header or they have different lengths.
    """
    beginning, is_all = read_beginning(io.BytesIO(content), LOOK_BYTES)
    form = format_of(beginning, options, where, is_all=is_all)
    above = len(content[: form.start].splitlines())
    body = numbered_rows(_decoded(content[form.start :], where), form.separator, where)
    if not body:
        raise ValueError(f"{where} has no rows below its header")
    for line, row in body:
        if len(row) != len(form.names):
            size = counted(len(row), "cell")
            raise ValueError(f"{where}: row {above + line} has {size}, but the header has {len(form.names)}")
    columns = zip(form.names, zip(*(row for _, row in body), strict=True), strict=True)
    parsed = [parsed_column(*pair, form.missing, decimal_comma=form.decimal_comma) for pair in columns]
    values, notes = zip(*parsed, strict=True)
    return TableFile(Table(form.names, values), tuple(chain.from_iterable(notes)))


def parsed_column(
    name: str, cells: Sequence[str], missing: Markers, *, decimal_comma: bool = False
) -> tuple[Array, tuple[str, ...]]:
    """Strings as floats if all that are not missing are numbers, else as strings with None where missing; and notes.

    ``decimal_comma`` says that commas are decimal commas rather than thousands separators, where they can be both.
    """
    counts = Counter(cells)
    known = [cell for cell in counts if cell.strip() not in missing.always]
    if found := found_numbers(known, missing, decimal_comma=decimal_comma):
        notes = tuple(_number_notes(name, counts, found))
        return np.array([found.numbers.get(cell, np.nan) for cell in cells], dtype=np.float64), notes
    text = set(known)
    values = np.array([cell if cell in text else None for cell in cells], dtype=object)
    return values, _text_notes(name, counts, known)


def _number_notes(name: str, counts: Mapping[str, int], found: FoundNumbers) -> Iterator[str]:
    """Notes on what commas mean, and on cells that were taken as missing."""
    form, numbers, others = found
    example = next((cell for cell in numbers if "," in cell), None)
    if form.meaning and example is not None:
        text = f"{example.strip()!r} as {numbers[example]:.15g}"
        yield f"column {name!r}: commas read as {form.meaning}, such as {text}"
    if others:
        marks = Counter[str]()
        for cell in others:
            marks[cell.strip()] += counts[cell]
        taken = ", ".join(f"{count} {mark!r}" for mark, count in marks.items())
        count = sum(counts[cell] for cell in numbers)
        yield f"column {name!r}: {count} of {sum(counts.values())} cells are numbers; {taken} taken as missing"


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
