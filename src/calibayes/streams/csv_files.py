"""CSV files: read by pyarrow, with the kinds of columns and the missing values of `tables.csv_file`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from calibayes.streams.chunks import place_named, read_twice
from calibayes.streams.found_files import with_partition
from calibayes.tables.arrow_text import module_of_pyarrow, pyarrow
from calibayes.tables.csv_file import SEPARATOR_ROWS, Markers, NumberFormat, found_numbers, found_separator
from calibayes.tables.read import refuse_duplicate_names

# -- A first look at a CSV file: its separator, its header, and which columns hold numbers -------------------

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
        return file.read(LOOK_BYTES)


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


# -- CSV files: read by pyarrow, with the kinds of columns and the missing values of `tables.csv_file` -------

BLOCK_BYTES = 2**21
"""Bytes that pyarrow parses at a time."""
FAILED_COLUMN = re.compile(r"In CSV column #(\d+)")
"""How pyarrow names a column with a cell that it cannot convert."""


@dataclass(frozen=True)
class CsvFile:
    """A CSV file and what is known about its columns."""

    look: CsvLook
    partition: Mapping[str, Any]
    formats: Mapping[str, NumberFormat]
    """Column of numbers -> how they are written; all others are text."""
    missing: Markers = field(default_factory=Markers)
    as_text: set[str] = field(default_factory=set)
    """Columns of numbers that pyarrow cannot convert, because of commas, blanks or marks of missing values."""

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.look.path

    @property
    def schema(self) -> Any:
        """Numbers are floats, everything else is text, as `tables.csv_file` reads it."""
        pa = pyarrow()
        return pa.schema(
            [(name, pa.float64() if name in self.formats else pa.string()) for name in self.look.names]
        )

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Batches of the named columns, with those of the partition.

        If pyarrow cannot convert a cell, its column is read as text from there on, and converted here.
        """
        stored = [name for name in columns if name not in self.partition] or list(self.look.names[:1])
        done = 0
        with place_named(self.path):
            while True:
                try:
                    for batch in self._batches(stored, done):
                        yield with_partition(batch, columns, self.partition)
                        done += batch.num_rows
                    break
                except pyarrow().ArrowInvalid as error:
                    if not self._note_failure(str(error)):
                        raise

    def _note_failure(self, message: str) -> bool:
        """Note the column of an error; returns whether reading again helps."""
        found = FAILED_COLUMN.search(message)
        name = self.look.names[int(found[1])] if found else None
        if name is None or name in self.as_text:
            return False
        self.as_text.add(name)
        return True

    def _batches(self, columns: Sequence[str], done: int) -> Iterator[Any]:
        """Batches after so many rows."""
        with self.look.filesystem.open_input_stream(self.path) as file, self._reader(file, columns) as reader:
            for batch in reader:
                if batch.num_rows > done:
                    yield self._converted(batch.slice(done))
                done = max(done - batch.num_rows, 0)

    def _reader(self, file: Any, columns: Sequence[str]) -> Any:
        csv, pa = module_of_pyarrow("csv"), pyarrow()
        coded = pa.dictionary(pa.int32(), pa.string())
        numbers = self.formats.keys() - self.as_text
        types = {name: pa.float64() if name in numbers else coded for name in columns}
        return csv.open_csv(
            file,
            read_options=csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=self.look.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(columns),
                null_values=sorted(self.missing.always),
                strings_can_be_null=True,
            ),
        )

    def _converted(self, batch: Any) -> Any:
        """A batch whose columns of text have no marks of missing values, and whose numbers are numbers."""
        arrays = [
            self._converted_column(name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pyarrow().RecordBatch.from_arrays(arrays, names=batch.schema.names)

    def _converted_column(self, name: str, column: Any) -> Any:
        pa = pyarrow()
        if not pa.types.is_dictionary(column.type):
            return column
        cells = column.dictionary.to_pylist()
        if name in self.formats:
            numbers = pa.array([self._number(name, cell) for cell in cells], pa.float64())
            return pa.DictionaryArray.from_arrays(column.indices, numbers).dictionary_decode()
        if not any(cell.strip() in self.missing.always for cell in cells):
            return column
        texts = [None if cell.strip() in self.missing.always else cell for cell in cells]
        return pa.DictionaryArray.from_arrays(column.indices, pa.array(texts, pa.string()))

    def _number(self, name: str, cell: str) -> float:
        """A cell of a column of numbers. Raises ValueError if it is none, and no mark of a missing value."""
        text = cell.strip()
        if text in self.missing.always or text.lower() in self.missing.among_numbers:
            return np.nan
        try:
            return self.formats[name].parse(cell)
        except ValueError as error:
            raise ValueError(
                f"column {name!r} holds numbers at the beginning of the file, but {cell!r} further on is none; change the "
                "file, or give a dataset of pyarrow with the types of its columns "
                "(pyarrow.dataset.dataset(path, format=pyarrow.dataset.CsvFileFormat(convert_options=...)))"
            ) from error


def opened_csv(look: CsvLook, partition: Mapping[str, Any], missing: Markers) -> CsvFile:
    """A file with the kinds of its columns; a column without a known cell at the beginning is read to its end."""
    file = CsvFile(look, partition, look.formats, missing, set(look.unusual))
    if not look.empty:
        return file
    searched = replace(
        file, formats={name: form for name, form in look.formats.items() if name not in look.empty}
    )
    found = {name: found_numbers(cells, missing) for name, cells in _distinct(searched).items()}
    formats = {**searched.formats, **{name: one.form for name, one in found.items() if one is not None}}
    unusual = {name for name, one in found.items() if one is not None and (one.form.meaning or one.others)}
    return replace(file, formats=formats, as_text=file.as_text | unusual)


def _distinct(file: CsvFile) -> dict[str, list[str]]:
    """The distinct cells of the columns that were empty at the beginning of a file."""
    cells: dict[str, dict[str, None]] = {name: {} for name in sorted(file.look.empty)}
    for batch in file.batches(list(cells)):
        for name, column in zip(cells, batch.columns, strict=True):
            cells[name].update(
                dict.fromkeys(cell for cell in column.unique().to_pylist() if cell is not None)
            )
    return {name: list(found) for name, found in cells.items()}
