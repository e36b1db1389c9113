"""Rows of named columns as CSV, JSON lines, Parquet or Arrow: texts, labels and numbers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, BinaryIO, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.streams.arrow.modules import module_of_pyarrow, pyarrow

Columns = Mapping[str, Any]
"""Name -> texts (list), labels (`Labels`) or numbers (array)."""


class Labels:
    """A column of which every cell is one of few labels."""

    def __init__(self, classes: Array, codes: Array) -> None:
        self.classes, self.codes = classes, codes

    def tolist(self) -> list[Any]:
        """The label of each row."""
        labels: list[Any] = plain_labels(self.classes)[self.codes].tolist()
        return labels


def plain_labels(classes: Array) -> Array:
    """Classes as they are written: whole numbers without a point."""
    array = np.asarray(classes)
    if array.dtype.kind == "f" and (array == np.rint(array)).all() and (np.abs(array) < 2**53).all():
        return array.astype(np.int64)
    return array


def label_texts(classes: Array) -> list[str]:
    """Classes as text."""
    return [str(label) for label in plain_labels(classes).tolist()]


class RowWriter(Protocol):
    """Writes rows in a format. `encoded` may be called by several threads, `write` is called in the order of the rows."""

    def encoded(self, columns: Columns) -> Any:
        """Rows as `write` takes them."""

    def write(self, rows: Any) -> None:
        """Write encoded rows."""


class TextWriter:
    """Rows as CSV, or as JSON lines if ``as_json``."""

    def __init__(self, file: BinaryIO, names: Sequence[str], *, as_json: bool) -> None:
        self.file, self.names, self.as_json = file, tuple(names), as_json
        if not as_json:
            file.write(f"{','.join(map(csv_cell, names))}\n".encode())

    def encoded(self, columns: Columns) -> bytes:
        if find_spec("pyarrow") is None:
            return _lines_by_python(columns, as_json=self.as_json).encode()
        return _lines_by_pyarrow(columns, as_json=self.as_json)

    def write(self, rows: bytes) -> None:
        self.file.write(rows)


class ArrowWriter:
    """Rows as tables of Arrow, for Parquet and Arrow files; ``open_writer`` makes a writer for a schema."""

    def __init__(self, writer: Any, schema: Any) -> None:
        self.writer, self.schema = writer, schema

    def encoded(self, columns: Columns) -> Any:
        arrays = [value.tolist() if isinstance(value, Labels) else value for value in columns.values()]
        return pyarrow().table(
            [pyarrow().array(array, kind) for array, kind in zip(arrays, self.schema.types, strict=True)],
            schema=self.schema,
        )

    def write(self, rows: Any) -> None:
        self.writer.write_table(rows)


@contextmanager
def row_writer(file: BinaryIO, kind: str, example: Columns) -> Iterator[RowWriter]:
    """A writer of rows in a format ("csv", "jsonl", "parquet", "arrow"); ``example`` has the names and types.

    Raises ValueError if the format needs pyarrow and it is not installed.
    """
    if kind in ("csv", "jsonl"):
        yield TextWriter(file, tuple(example), as_json=kind == "jsonl")
        return
    try:
        schema = _schema(example)
    except ImportError:
        raise ValueError(f"writing {kind} needs pyarrow: pip install 'calibayes[parquet]'") from None
    sink = pyarrow().PythonFile(file, mode="w")
    if kind == "parquet":
        opened = module_of_pyarrow("parquet").ParquetWriter(sink, schema)
    else:
        opened = module_of_pyarrow("ipc").new_file(sink, schema)
    with opened as writer:
        yield ArrowWriter(writer, schema)


def _schema(example: Columns) -> Any:
    pa = pyarrow()
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


def _lines_by_pyarrow(columns: Columns, *, as_json: bool) -> bytes:
    """Lines, joined from the text of each column."""
    pa, compute = pyarrow(), module_of_pyarrow("compute")
    texts = [_arrow_texts(value, as_json=as_json) for value in columns.values()]
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


def _arrow_texts(value: Any, *, as_json: bool) -> Any:
    pa = pyarrow()
    if isinstance(value, np.ndarray):
        return pa.array(value).cast(pa.string())
    if isinstance(value, Labels):
        shown = pa.array(_cells(plain_labels(value.classes).tolist(), as_json=as_json), pa.string())
        return shown.take(pa.array(value.codes))
    return pa.array(_cells(value, as_json=as_json), pa.string())


def _cells(values: Sequence[Any], *, as_json: bool) -> list[str]:
    return [_json_cell(value) if as_json else csv_cell(str(value)) for value in values]


def _lines_by_python(columns: Columns, *, as_json: bool) -> str:
    """The same lines without pyarrow."""
    values = [value if isinstance(value, list) else value.tolist() for value in columns.values()]
    if as_json:
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    return "".join(f"{','.join(csv_cell(str(cell)) for cell in row)}\n" for row in zip(*values, strict=True))
