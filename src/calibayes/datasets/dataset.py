"""A table and the column to predict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibayes.core.protocols import Array
from calibayes.tables.read import read_file
from calibayes.tables.table import Table, missing_mask


@dataclass(frozen=True)
class Dataset:
    """A table, the column to predict, and how many rows without a label were left out."""

    name: str
    columns: Table
    target: Array
    left_out: int = 0


def load_file(path: Path, target: str) -> Dataset:
    """A table from a CSV or Parquet file; rows without a label are left out."""
    table = read_file(path)
    if target not in table.names:
        raise ValueError(f"{path.name} has no column {target!r}; its columns are {', '.join(table.names)}")
    columns, labels = table.without(target)
    if not columns.names:
        raise ValueError(f"{path.name} has no column but the target {target!r}")
    labeled = ~missing_mask(labels)
    if not labeled.any():
        raise ValueError(f"{path.name}: no row has a {target!r}")
    name = path.stem.removesuffix(".csv")
    return Dataset(name, columns.rows(labeled), labels[labeled], int((~labeled).sum()))
