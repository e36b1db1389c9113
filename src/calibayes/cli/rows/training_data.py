"""Labeled rows to train on, of a file or of standard input: in memory, or read in passes if the file is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.datasets.dataset import Dataset, labeled_data
from calibayes.tables.input.csv_format import CsvOptions
from calibayes.tables.input.expected import require_columns
from calibayes.tables.input.whole import read_whole
from calibayes.tables.streams.open import open_stream
from calibayes.tables.text import counted

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
    weight = None if weights is None else _weights(data, weights)
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
    if labels.dtype.kind == "f" and (labels == np.rint(labels)).all() and (labels.abs() < 2**53).all():
        labels = labels.astype("int64")
    return Dataset(data.name, data.data, labels, data.unlabeled_rows, data.notes)


def _weights(data: Dataset, name: str) -> Any:
    column = data.data[name]
    if column.dtype.kind not in "fiu":
        raise ValueError(f"column {name!r} of the weights does not hold numbers")
    return column
