"""A table of features and the target to predict, read from a file."""

from __future__ import annotations

from collections.abc import Iterable
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
    notes : tuple of str
        How cells of the file were read where that is not obvious, such as a "?" taken as a missing value.
    """

    name: str
    columns: Table
    target: Array
    unlabeled_rows: int = 0
    notes: tuple[str, ...] = ()


def load_file(path: str | Path, target: str, *, missing_values: Iterable[str] | None = None) -> Dataset:
    """Read a CSV or Parquet file; ``target`` is the column to predict. Rows without a label are dropped.

    The separator of a CSV file (comma, semicolon or tab) is found in its header. Numbers may have commas as thousands
    separators or, in files separated by semicolons, as decimal commas.

    Parameters
    ----------
    path : path
        A file that ends in .parquet or .pq, else a CSV file with a header in UTF-8, gzipped if it ends in .gz.
    target : str
    missing_values : list of str, optional
        Cells of a CSV file that are missing values, besides the empty one. By default those of pandas.read_csv ("NA",
        "null", ...), and "?", "-" and "unknown" in columns whose other cells are numbers.

    Raises
    ------
    ValueError
        If the file has no such column, no other column or no labeled row, or decompresses to more than 2 GiB.
    """
    path = Path(path)
    table, notes = read_file(path, missing_values)
    if target not in table.names:
        raise ValueError(f"{path.name} has no column {target!r}; its columns are {', '.join(table.names)}")
    if len(table.names) == 1:
        raise ValueError(f"{path.name} has only the target column {target!r}; at least one feature is needed")
    columns, labels = table.without(target)
    labeled = ~missing_mask(labels)
    if not labeled.any():
        raise ValueError(f"{path.name}: all values of the target column {target!r} are missing")
    name = path.stem.removesuffix(".csv")
    return Dataset(name, columns.rows(labeled), labels[labeled], int((~labeled).sum()), notes)
