"""Rows of a CSV file from blocks of its text: by pyarrow if it is installed, else by Python's own reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from calibayes.core.protocols import Array
from calibayes.streams.chunks import place_named, read_twice
from calibayes.streams.raw_bytes import as_utf8, raw_table
from calibayes.tables import csv_parsing
from calibayes.tables.csv_parsing import NUMBER, TEXT, CellFormat, CsvFormat, CsvOptions
from calibayes.tables.read import module_of_pyarrow, one_array, pyarrow
from calibayes.tables.table import CodedColumn

# -- Text of a CSV file in blocks that end where a record ends -----------------------------------------------


def record_blocks(file: BinaryIO, separator: str, size: int) -> Iterator[bytes]:
    """The text in blocks of whole records, of about ``size`` bytes.

    Raises ValueError if a quoted cell does not end.
    """
    s = re.escape(separator.encode())  # a cell that begins with a quotation mark may contain any character
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%s\n]*+|[^"%s\n][^%s\n]*+)?+' % (s, s, s)
    records = re.compile(rb"(?:%s(?:%s%s)*+\n)*+" % (cell, s, cell))
    waiting = b""
    while more := file.read(size):
        waiting += more
        end = _end_of_records(waiting, records)
        if not end and len(waiting) > csv_parsing.LARGEST_RECORD:
            raise ValueError('a row has no end: a quotation mark (") that opens a cell is not closed')
        if waiting[:end].strip(b"\r\n"):
            yield waiting[:end]
        waiting = waiting[end:]
    if waiting.strip(b"\r\n"):
        yield waiting


def _end_of_records(text: bytes, records: re.Pattern[bytes]) -> int:
    """Number of bytes of the records that end in a text."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    found = records.match(text)
    return found.end() if found else 0


# -- Rows of a block of text ---------------------------------------------------------------------------------

FAILED_COLUMN = re.compile(r"In CSV column #(\d+)")
"""How pyarrow names a column with a cell that it cannot convert."""
UNEVEN_ROW = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
"""How pyarrow reports a row with too few or too many cells; the first row is row 1."""


class RowError(ValueError):
    """A row of a block cannot be read; ``row`` is its number in the block, from 0."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row, self.problem = row, problem

    def below(self, rows: int) -> str:
        """The message, if so many rows come before the block."""
        return f"row {rows + self.row} below the header (counted from 0) {self.problem}"


@dataclass(frozen=True)
class CsvBlocks:
    """What the blocks of a file have in common: how it is written, which columns are read, and as what."""

    form: CsvFormat
    cells: Mapping[str, CellFormat]
    """Column -> how its cells are read."""
    passed_on: Sequence[str] = ()
    """Columns whose cells are given back as they are written."""
    as_text: set[str] = field(default_factory=set)
    """Columns of numbers that pyarrow cannot convert, because of commas or marks of missing values."""

    def arrow_table(self, block: bytes) -> Any:
        """The rows of a block as a table of Arrow: numbers, and text as dictionaries.

        Raises ValueError if a row cannot be read.
        """
        while True:
            try:
                return self._parsed(block)
            except pyarrow().ArrowInvalid as error:
                self._note_failure(str(error))

    def _note_failure(self, message: str) -> None:
        """Have a column of numbers read as text. Raises ValueError if that does not help."""
        if uneven := UNEVEN_ROW.search(message):
            problem = f"has {uneven[3]} cells, but the header has {uneven[2]}"
            raise RowError(int(uneven[1] or 1) - 1, problem) from None
        found = FAILED_COLUMN.search(message)
        name = self.form.names[int(found[1])] if found else ""
        if name in self.as_text or name not in self.cells or self.cells[name].holds != NUMBER:
            advice = "; name its encoding with --encoding (such as latin-1)" if "UTF8" in message else ""
            raise ValueError(f"{self.form.where} is not a readable CSV file: {message}{advice}")
        self.as_text.add(name)

    def _parsed(self, block: bytes) -> Any:
        pa_csv, pa = module_of_pyarrow("csv"), pyarrow()
        coded, numbers = pa.dictionary(pa.int32(), pa.string()), pa.float64()
        form, as_text = self.form, {*self.as_text, *self.passed_on}  # text that is passed on is needed, too
        types = {}
        for name, cells in self.cells.items():
            is_number = cells.holds == NUMBER and form.has_decimal(name) and name not in as_text
            types[name] = numbers if is_number else coded
        types |= {name: pa.string() for name in self.passed_on if name not in types}
        return pa_csv.read_csv(
            pa.BufferReader(block),
            pa_csv.ReadOptions(block_size=len(block) + 1, use_threads=False, column_names=form.names),
            pa_csv.ParseOptions(delimiter=form.separator, newlines_in_values=True),
            pa_csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=form.null_numbers,
                strings_can_be_null=False,
                decimal_point=form.decimal,
            ),
        )

    def by_pyarrow(self, block: bytes) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The columns of a block, and those that are passed on. Raises ValueError if a row cannot be read."""
        rows = self.arrow_table(block)
        columns = {name: arrow_column(rows.column(name), cells) for name, cells in self.cells.items()}
        return columns, {name: rows.column(name).to_pylist() for name in self.passed_on}

    def by_python(self, block: bytes) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """`by_pyarrow`, without pyarrow."""
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.form.where} is not a readable CSV file: {error}") from error
        rows, d = csv_parsing.numbered_rows(text, self.form.separator, self.form.where), len(self.form.names)
        for number, (_, row) in enumerate(rows):
            if len(row) != d:
                raise RowError(number, f"has {len(row)} cells, but the header has {d}")
        written = {name: [row[j] for _, row in rows] for j, name in enumerate(self.form.names)}
        columns = {name: _coded_column(written[name], cells) for name, cells in self.cells.items()}
        return columns, {name: written[name] for name in self.passed_on}


def arrow_column(column: Any, cells: CellFormat) -> Array | CodedColumn:
    """A column of Arrow as an array: numbers as they are, text by its distinct cells."""
    pa = pyarrow()
    whole = one_array(column)
    if isinstance(whole, pa.ChunkedArray):  # of no chunk
        whole = pa.array([], column.type)
    if not pa.types.is_dictionary(whole.type):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    return cells.column(whole.dictionary.to_pylist(), whole.indices.to_numpy(zero_copy_only=False))


def _coded_column(written: list[str], cells: CellFormat) -> Array | CodedColumn:
    place = {cell: number for number, cell in enumerate(dict.fromkeys(written))}
    return cells.column(list(place), np.array([place[cell] for cell in written], dtype=np.int64))


# -- Files to train on, as batches of Arrow: what a column holds is found at their beginning -----------------

LOOK_BYTES = 2**22
"""Bytes at the beginning of a file in which the kinds of its columns are found."""
BLOCK_BYTES = 2**21
"""Bytes that are parsed at a time."""
COLUMN_BYTES = 2**8
"""At least so many for each column: however few rows a block has, every column takes time."""
OTHER_LATER = (
    "column {name!r} holds {held} at the beginning of the file, but {cell!r} further on is none; change the "
    "file, or give a dataset of pyarrow with the types of its columns "
    "(pyarrow.dataset.dataset(path, format=pyarrow.dataset.CsvFileFormat(convert_options=...)))"
)


@dataclass(frozen=True)
class CsvFile:
    """A CSV file and how it is written; columns without a form of numbers are text."""

    path: str
    filesystem: Any
    form: CsvFormat
    as_text: set[str] = field(default_factory=set)
    """Columns of numbers that pyarrow cannot convert."""

    @property
    def schema(self) -> Any:
        """Numbers are floats, everything else is text."""
        pa = pyarrow()
        types = [pa.float64() if name in self.form.forms else pa.string() for name in self.form.names]
        return pa.schema(zip(self.form.names, types, strict=True))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Batches of the named columns."""
        forms, missing = self.form.forms, self.form.missing
        cells = {name: CellFormat(name, TEXT, (), missing) for name in columns}
        for name in set(forms).intersection(columns):
            cells[name] = CellFormat(name, NUMBER, (forms[name],), missing, OTHER_LATER)
        blocks, rows = CsvBlocks(self.form, cells, as_text=self.as_text), 0
        with opened_text(self.path, self.filesystem) as file:
            file.read(self.form.start)
            size = max(BLOCK_BYTES, COLUMN_BYTES * len(self.form.names))
            for block in record_blocks(file, self.form.separator, size):
                try:
                    table = blocks.arrow_table(block)
                except RowError as error:
                    raise ValueError(error.below(rows)) from None
                if table.num_rows:
                    arrays = [_as_stored(table.column(name), cells[name]) for name in columns]
                    yield pyarrow().RecordBatch.from_arrays(arrays, names=list(columns))
                rows += table.num_rows

    def with_all_kinds(self) -> CsvFile:
        """The same file; a column without a known cell at its beginning is read to its end."""
        if not self.form.unknown:
            return self
        forms = {name: form for name, form in self.form.forms.items() if name not in self.form.unknown}
        as_text = replace(self, form=replace(self.form, forms=forms))
        known: dict[str, dict[str, None]] = {name: {} for name in sorted(self.form.unknown)}
        with place_named(self.path):
            for batch in as_text.batches(list(known)):
                for name, column in zip(known, batch.columns, strict=True):
                    known[name].update(dict.fromkeys(column.drop_null().unique().to_pylist()))
        missing, decimal_comma = self.form.missing, self.form.decimal_comma
        for name, cells in known.items():
            found = csv_parsing.found_numbers(list(cells), missing, decimal_comma=decimal_comma)
            if found is not None:
                forms[name] = found.form
        return as_text


def opened_text(path: str, filesystem: Any) -> BinaryIO:
    """A text file, decompressed and in UTF-8. Raises ValueError if it is a file of another kind."""
    raw = raw_table(filesystem.open_input_stream(path, compression=None), path)
    if raw.kind != "text":
        raise ValueError(f"{path} is a Parquet or Arrow file, though its name is that of a CSV file")
    return as_utf8(raw.file, None, path)


def _as_stored(column: Any, cells: CellFormat) -> Any:
    """A column without the marks of missing values in text, and with numbers as numbers."""
    pa, whole = pyarrow(), one_array(column)
    if not pa.types.is_dictionary(whole.type):
        return whole
    if cells.holds == NUMBER:
        return pa.array(arrow_column(column, cells))
    missing = np.array([text.strip() in cells.missing.always for text in whole.dictionary.to_pylist()])
    if not missing.any():
        return whole
    places = whole.indices.to_numpy()
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=missing[places]), whole.dictionary)


def opened_csv_files(files: Sequence[tuple[str, Any]]) -> list[CsvFile]:
    """Files of these paths and file systems, which have the same columns.

    What a column holds is found in the first file with a known cell of it.
    """
    forms = [read_twice(partial(_form_of, *place), place[0]) for place in files]
    for form in forms[1:]:
        if form.names != forms[0].names:
            raise ValueError(f"{form.where} has other columns than {forms[0].where}: their headers differ")
    names = forms[0].names
    shown = {name: next((form for form in forms if name not in form.unknown), forms[0]) for name in names}
    numbers = {name: form.forms[name] for name, form in shown.items() if name in form.forms}
    unknown = frozenset(name for name, form in shown.items() if name in form.unknown)
    first = CsvFile(*files[0], replace(forms[0], forms=numbers, unknown=unknown)).with_all_kinds()
    written = [replace(form, forms=first.form.forms) for form in forms]
    return [CsvFile(*file, form, first.as_text) for file, form in zip(files, written, strict=True)]


def _form_of(path: str, filesystem: Any) -> CsvFormat:
    with opened_text(path, filesystem) as file:
        beginning, is_all = csv_parsing.read_beginning(file, LOOK_BYTES)
    return csv_parsing.format_of(beginning, CsvOptions(), path, is_all=is_all)
