"""A table of features and the target to predict, read from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibayes.core.protocols import Array
from calibayes.tables.read import read_file
from calibayes.tables.table import Table, missing_mask


@dataclass(frozen=True)
class Dataset:
    """A table of features and its target.

    Attributes
    ----------
    name : str
    columns : Table
        The features.
    target : (n,) array
        The label of each row.
    unlabeled_rows : int
        How many rows were dropped because their label is missing.
    """

    name: str
    columns: Table
    target: Array
    unlabeled_rows: int = 0


def load_file(path: Path, target: str) -> Dataset:
    """Read a CSV or Parquet file; ``target`` is the column to predict. Rows without a label are dropped.

    Raises ValueError if the file has no such column, no other column or no labeled row.
    """
    table = read_file(path)
    if target not in table.names:
        raise ValueError(f"{path.name} has no column {target!r}; its columns are {', '.join(table.names)}")
    if len(table.names) == 1:
        raise ValueError(f"{path.name} has only the target column {target!r}; at least one feature is needed")
    columns, labels = table.without(target)
    labeled = ~missing_mask(labels)
    if not labeled.any():
        raise ValueError(f"{path.name}: all values of the target column {target!r} are missing")
    name = path.stem.removesuffix(".csv")
    return Dataset(name, columns.rows(labeled), labels[labeled], int((~labeled).sum()))
