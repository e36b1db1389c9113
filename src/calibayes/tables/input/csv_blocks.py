"""Rows of a CSV file from blocks of its text: by pyarrow if it is installed, else by Python's own reader."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.input.cells import CellFormat
from calibayes.tables.input.csv_format import CsvFormat, interpreted
from calibayes.tables.input.expected import NUMBER, Expected, Piece, piece_of
from calibayes.tables.streams.arrow.modules import module_of_pyarrow, pyarrow

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
    texts: list[str] = column.to_pylist()
    return texts


def _plain_column(cells: list[str], form: CellFormat) -> Array | CodedColumn:
    place = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
    return form.column(list(place), np.array([place[cell] for cell in cells], dtype=np.int64))
