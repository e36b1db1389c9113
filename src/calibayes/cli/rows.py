"""The rows of a table, block by block, for a model: read and used by several threads, given back in order."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from calibayes.cli.application import note, raise_noted_interruption
from calibayes.cli.outputs import arrow_writer, escaped, required_pyarrow
from calibayes.core.notices import counted, listed
from calibayes.datasets.loading import Dataset, labeled_data
from calibayes.streams.csv_blocks import RowError
from calibayes.streams.stream_input import open_stream
from calibayes.streams.text_input import ExpectedTable, OpenTable, Piece, read_whole, require_columns
from calibayes.tables.csv_parsing import CsvOptions

# -- A function of many items in several threads, with the results in order and a bounded number of items in memory

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(function: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """The results for the items, in their order; at most ``jobs`` + 2 items are worked on or wait at a time."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(jobs, "calibayes") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= jobs + 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


# -- The rows of a table, block by block, for a model: read and used by several threads, given back in order


def each_block(
    table: OpenTable, expected: ExpectedTable, use: Callable[[Piece], Result], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Number of rows and result of ``use`` for each block, in order. Columns that are not read are noted first.

    Raises ValueError, naming the row, if one cannot be read.
    """
    if table.unused:
        note(f"columns of {table.where} that are not used: {listed(table.unused)}")
    if table.expected.by_position:
        note(f"the model has no names of columns: those of {table.where} are taken in their order")

    names = tuple(column.name for column in expected.features)  # those that the model has for its columns

    def work(load: Callable[[], Piece]) -> tuple[int, Result]:
        piece = load()
        return piece.table.n, use(piece._replace(table=replace(piece.table, names=names)))

    rows = 0
    try:
        for number, result in in_order(work, table.blocks, jobs):
            raise_noted_interruption()
            yield number, result
            rows += number
    except RowError as error:
        raise ValueError(f"{table.where}: {error.below(rows)}") from None


# -- Data frames as CSV, JSON lines, Parquet or Arrow --------------------------------------------------------


class _Lines(io.StringIO):
    """Lines of CSV that end in a line feed; cells with any kind of line break are in quotation marks."""

    def write(self, line: str) -> int:
        return super().write(f"{line.removesuffix(CRLF)}\n")


CRLF = "\r\n"
"""The end of lines for the writer of CSV, which quotes cells that have a character of it."""


def write_frame(frame: Any, kind: str, file: BinaryIO, *, escape: bool = False) -> None:
    """Write a pandas data frame in a format; with ``escape``, no text of a CSV file is a formula.

    Raises ValueError if the format needs pyarrow and it is not installed.
    """
    frame = _escaped(_with_integers(frame)) if escape else _with_integers(frame)
    if kind in ("csv", "jsonl"):
        text = _Lines(newline="") if kind == "csv" else io.StringIO()
        if kind == "csv":
            frame.to_csv(text, index=False, lineterminator=CRLF)
        else:
            frame.to_json(text, orient="records", lines=True, date_format="iso")
        file.write(text.getvalue().encode())
        return
    table = required_pyarrow(kind).Table.from_pandas(frame, preserve_index=False)
    with arrow_writer(file, kind, table.schema) as writer:
        writer.write_table(table)


def _escaped(frame: Any) -> Any:
    """The data frame with names and texts that no spreadsheet executes."""
    texts = frame.apply(
        lambda column: column.map(lambda cell: escaped(cell) if isinstance(cell, str) else cell)
    )
    return texts.rename(columns=lambda name: escaped(str(name)))


def _with_integers(frame: Any) -> Any:
    """The data frame with columns of whole numbers as integers: 2007 rather than 2007.0."""
    whole = {
        name: frame[name].astype("Int64")
        for name in frame.columns
        if frame[name].dtype.kind == "f" and frame[name].notna().any() and _are_whole(frame[name].dropna())
    }
    return frame.assign(**whole)


def _are_whole(numbers: Any) -> bool:
    return bool(((numbers.round() == numbers) & (numbers.abs() < 2**53)).all())


# -- Labeled rows to train on, of a file or of standard input: in memory, or read in passes if the file is large

LARGE_FILE = 2**25
"""Bytes of a file from which on it is read in passes."""
STREAMED_ENDINGS = (".csv", ".parquet", ".pq", ".arrow", ".feather")


@dataclass(frozen=True)
class TrainingData:
    """What `fit` is given.

    Attributes
    ----------
    rows : data frame or path
    labels, weights : series, name of a column, or None
    names : tuple of str
        Columns to learn from.
    notes : tuple of str
        How cells of the file were read where that is not obvious.
    """

    rows: Any
    labels: Any
    weights: Any
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def training_data(
    source: str, target: str, weights: str | None, ignored: Sequence[str], options: CsvOptions
) -> TrainingData:
    """The rows with a label. Raises ValueError if a column is missing or the table cannot be read."""
    if target == weights:
        raise ValueError(f"--target and --weights are both {target!r}; name two columns")
    if target in ignored or weights in ignored:
        raise ValueError("--ignore names the column of the target or of the weights")
    if not ignored and options == CsvOptions() and is_large(source):
        stream = open_stream(Path(source), target, weights)
        return TrainingData(Path(source), target, weights, tuple(stream.names))
    return _in_memory(source, target, weights, ignored, options)


def is_large(source: str) -> bool:
    """Whether a file is read in passes."""
    path = Path(source)
    if path.suffix not in STREAMED_ENDINGS or not path.is_file() or find_spec("pyarrow") is None:
        return False
    return path.stat().st_size >= LARGE_FILE


def _in_memory(
    source: str, target: str, weights: str | None, ignored: Sequence[str], options: CsvOptions
) -> TrainingData:
    data = labeled_table(source, target, options)
    roles = [*ignored, *([] if weights is None else [weights])]
    require_columns([*data.data.columns, target], roles, "the table")
    rows = data.data.drop(columns=roles)
    if rows.shape[1] == 0:
        raise ValueError("no column is left to learn from")
    weight = None if weights is None else data.data[weights]
    if weight is not None and weight.dtype.kind not in "fiu":
        raise ValueError(f"column {weights!r} of the weights does not hold numbers")
    dropped = f"{counted(data.unlabeled_rows, 'row')} without a label left out"
    notes = (*data.notes, *([dropped] if data.unlabeled_rows else []))
    return TrainingData(rows, data.target, weight, tuple(rows.columns), notes)


def labeled_table(source: str, target: str, options: CsvOptions) -> Dataset:
    """The labeled rows of a table; labels that are whole numbers are integers.

    Raises ValueError if the table cannot be read or has no such column.
    """
    table, notes = read_whole(source, options)
    where = "standard input" if source == "-" else Path(source).name
    data = labeled_data(table, target, where, Path(where).stem.removesuffix(".csv"), notes)
    labels = data.target
    is_whole = labels.dtype.kind == "f" and _are_whole(labels)
    return replace(data, target=labels.astype("int64")) if is_whole else data
