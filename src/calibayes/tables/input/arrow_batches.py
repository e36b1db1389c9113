"""Rows of Parquet and Arrow files, converted to what is expected of each column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.arrow_text import is_text
from calibayes.tables.coded_column import CodedColumn
from calibayes.tables.csv_file import markers, number_formats
from calibayes.tables.input.cells import CellFormat
from calibayes.tables.input.expected import FLAG, NUMBER, TEXT, Expected, Piece, piece_of
from calibayes.tables.input.raw import RawTable
from calibayes.tables.streams.arrow.columns import stored_column
from calibayes.tables.streams.arrow.modules import module_of_pyarrow, pyarrow


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
    is_text_column = isinstance(stored, CodedColumn) and not types.is_boolean(kind)
    if is_text_column and held != TEXT:
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


def _from_cells(form: CellFormat, numbers: Array) -> Array | CodedColumn:
    """Numbers as they are written in a CSV file."""
    values, places = np.unique(numbers, return_inverse=True)
    texts = [f"{value:.17g}" if float(value).is_integer() else repr(value.item()) for value in values]
    return form.column(texts, places)
