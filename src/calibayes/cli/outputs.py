"""Output files that replace an older file only when they are complete."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from calibayes.cli.application import raise_noted_interruption
from calibayes.core.protocols import Array
from calibayes.core.replaced_file import replaced_file
from calibayes.tables.read import module_of_pyarrow, pyarrow

PLAIN_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
FORMATS: Mapping[str, str] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
"""Ending of a file -> format."""


def format_of(path: Path | None, given: str | None, as_json: bool = False) -> str:
    """The format of an output: as given, else by the ending of its file, else CSV.

    Raises ValueError if it is unknown, or if a binary format would be written to a terminal.
    """
    kind = _format_of(path, given, as_json)
    if path is None and kind in ("parquet", "arrow") and sys.stdout.isatty():
        raise ValueError(f"the format {kind} is not written to a terminal; give a file with -o FILE")
    return kind


def _format_of(path: Path | None, given: str | None, as_json: bool) -> str:
    names = list(dict.fromkeys(FORMATS.values()))
    if given is not None and given not in names:
        raise ValueError(f"unknown --format {given}; choose from {', '.join(names)}")
    if as_json and given not in (None, "jsonl"):
        raise ValueError(f"--json and --format {given} exclude each other")
    if given or as_json or path is None:
        return "jsonl" if as_json else given or "csv"
    ending = Path(path.stem).suffix if path.suffix in COMPRESSORS else path.suffix
    if not ending and path.exists() and not path.is_file():  # a device or a named pipe
        return "csv"
    if ending.lower() not in FORMATS:
        raise ValueError(
            f"the format of {path} cannot be told from its ending; choose from {', '.join(FORMATS)}, or give --format"
        )
    return FORMATS[ending.lower()]


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With which a cell of text begins that a spreadsheet takes for a formula; the last four are wide forms of the first."""


def require_csv(kind: str, escape: bool) -> None:
    """Raises ValueError if formulas are to be escaped in a format that no spreadsheet executes."""
    if escape and kind != "csv":
        raise ValueError(f"--escape-formulas is for CSV files, not for {kind}; leave it out")


def escaped(text: str) -> str:
    """Text that no spreadsheet executes: an apostrophe before what would be a formula; numbers are unchanged.

    >>> escaped("=1+1"), escaped("-1.5"), escaped("a=b")
    ("'=1+1", '-1.5', 'a=b')
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not PLAIN_NUMBER.fullmatch(text) else text


@contextmanager
def output_file(path: Path | None) -> Iterator[BinaryIO]:
    """A binary file to write to: standard output, or a file beside the path that takes its place at the end.

    After an error or an interruption there is no new file, and an older one is as it was. A device or a named pipe is
    written to directly.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} for the output {path.name}")
    if path.is_dir():
        raise ValueError(f"the output {path} is a folder; give the name of a file")
    is_special = path.exists() and not path.is_file()
    with path.open("wb") if is_special else replaced_file(path) as file:
        with COMPRESSORS.get(path.suffix, nullcontext)(file) as written:
            yield written
        raise_noted_interruption()


class _LeftOpen(io.RawIOBase):
    """A file that stays open when what writes to it is closed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)


def _zstd(file: Any) -> Any:
    pa = required_pyarrow("files that end in .zst")
    return pa.CompressedOutputStream(pa.PythonFile(_LeftOpen(file), mode="w"), "zstd")


COMPRESSORS: Mapping[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file, mode="wb", mtime=0),
    ".zst": _zstd,
}


# -- Rows of named columns as CSV, JSON lines, Parquet or Arrow: texts, labels and numbers -------------------

Columns = Mapping[str, Any]
"""Name -> texts (list), labels (`Labels`) or numbers (array)."""


class Labels:
    """A column of which every cell is one of few labels."""

    def __init__(self, classes: Array, codes: Array) -> None:
        self.classes, self.codes = classes, codes

    def tolist(self) -> list[Any]:
        """The label of each row."""
        return plain_labels(self.classes)[self.codes].tolist()


def plain_labels(classes: Array) -> Array:
    """Classes as they are written: whole numbers without a point."""
    array = np.asarray(classes)
    if array.dtype.kind == "f" and (array == np.rint(array)).all() and (np.abs(array) < 2**53).all():
        return array.astype(np.int64)
    return array


def label_texts(classes: Array) -> list[str]:
    """Classes as text."""
    return [str(label) for label in plain_labels(classes).tolist()]


class TextWriter:
    """Rows as CSV, or as JSON lines if ``as_json``; ``cell`` writes a text."""

    def __init__(self, file: BinaryIO, names: Sequence[str], *, as_json: bool, escape: bool = False) -> None:
        self.file, self.names, self.as_json = file, tuple(names), as_json
        written = (lambda text: csv_cell(escaped(text))) if escape else csv_cell
        self.cell: Callable[[Any], str] = _json_cell if as_json else lambda value: written(str(value))
        if not as_json:
            file.write(f"{','.join(map(written, names))}\n".encode())

    def encoded(self, columns: Columns) -> bytes:
        if find_spec("pyarrow") is None:
            return _lines_by_python(columns, self.cell, as_json=self.as_json).encode()
        return _lines_by_pyarrow(columns, self.cell, as_json=self.as_json)

    def write(self, rows: bytes) -> None:
        self.file.write(rows)


class ArrowWriter:
    """Rows as tables of Arrow, for Parquet and Arrow files; ``open_writer`` makes a writer for a schema."""

    def __init__(self, writer: Any, schema: Any) -> None:
        self.writer, self.schema = writer, schema

    def encoded(self, columns: Columns) -> Any:
        values = [value.tolist() if isinstance(value, Labels) else value for value in columns.values()]
        arrays = list(map(pyarrow().array, values, self.schema.types))
        return pyarrow().table(arrays, schema=self.schema)

    def write(self, rows: Any) -> None:
        self.writer.write_table(rows)


@contextmanager
def row_writer(
    file: BinaryIO, kind: str, example: Columns, *, escape: bool = False
) -> Iterator[TextWriter | ArrowWriter]:
    """A writer of rows in a format ("csv", "jsonl", "parquet", "arrow"); ``example`` has the names and types.

    With ``escape``, no text of a CSV file is a formula.

    `encoded` may be called by several threads, `write` takes its results in the order of the rows.

    Raises ValueError if the format needs pyarrow and it is not installed.
    """
    if kind in ("csv", "jsonl"):
        yield TextWriter(file, tuple(example), as_json=kind == "jsonl", escape=escape)
        return
    schema = _schema(required_pyarrow(kind), example)
    with arrow_writer(pyarrow().PythonFile(file, mode="w"), kind, schema) as writer:
        yield ArrowWriter(writer, schema)


def required_pyarrow(kind: str) -> Any:
    """The module pyarrow. Raises ValueError if it is not installed."""
    try:
        return pyarrow()
    except ImportError:
        raise ValueError(f"writing {kind} needs pyarrow: pip install pyarrow") from None


def arrow_writer(file: Any, kind: str, schema: Any) -> Any:
    """A writer of tables to a Parquet or an Arrow file."""
    if kind == "parquet":
        return module_of_pyarrow("parquet").ParquetWriter(file, schema)
    return module_of_pyarrow("ipc").new_file(file, schema)


def _schema(pa: Any, example: Columns) -> Any:
    types = {
        name: pa.array(plain_labels(value.classes).tolist()).type
        if isinstance(value, Labels)
        else (pa.string() if isinstance(value, list) else pa.from_numpy_dtype(value.dtype))
        for name, value in example.items()
    }
    return pa.schema(list(types.items()))


def csv_cell(text: str) -> str:
    """A cell of a CSV file, in quotation marks where it needs them."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow([text, ""])  # which quotes both characters
    return buffer.getvalue().removesuffix(",\r\n")


def _json_cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines_by_pyarrow(columns: Columns, cell: Callable[[Any], str], *, as_json: bool) -> bytes:
    """Lines, joined from the text of each column."""
    pa, compute = pyarrow(), module_of_pyarrow("compute")
    texts = [_arrow_texts(value, cell) for value in columns.values()]
    if not as_json:
        lines = compute.binary_join_element_wise(*texts, ",")
    else:
        keys = [f"{', ' if j else '{'}{_json_cell(name)}: " for j, name in enumerate(columns)]
        parts = [part for key, text in zip(keys, texts, strict=True) for part in (pa.scalar(key), text)]
        lines = compute.binary_join_element_wise(*parts, pa.scalar("}"), "")
    ended = compute.binary_join_element_wise(lines, "", "\n")
    return b"".join(_content(chunk) for chunk in getattr(ended, "chunks", [ended]))


def _content(texts: Any) -> bytes:
    """All texts of an array, one after another."""
    _, offsets, data = texts.buffers()
    places = np.frombuffer(offsets, dtype=np.int64 if "large" in str(texts.type) else np.int32)
    first, last = places[texts.offset], places[texts.offset + len(texts)]
    return bytes(memoryview(data)[first:last]) if data is not None else b""


def _arrow_texts(value: Any, cell: Callable[[Any], str]) -> Any:
    pa = pyarrow()
    if isinstance(value, np.ndarray):
        return pa.array(value).cast(pa.string())
    if isinstance(value, Labels):
        shown = pa.array(list(map(cell, plain_labels(value.classes).tolist())), pa.string())
        return shown.take(pa.array(value.codes))
    return pa.array(list(map(cell, value)), pa.string())


def _lines_by_python(columns: Columns, cell: Callable[[Any], str], *, as_json: bool) -> str:
    """The same lines without pyarrow."""
    values = [value if isinstance(value, list) else value.tolist() for value in columns.values()]
    if as_json:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return "".join(f"{','.join(map(cell, row))}\n" for row in zip(*values, strict=True))
