"""Small tables that ship with the package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from calibayes.core.protocols import Array
from calibayes.tables.read import Table, missing, read_file


@dataclass(frozen=True)
class Dataset:
    """A table, the column to predict, and how many rows without a label were left out."""

    name: str
    columns: Table
    target: Array
    left_out: int = 0


def load_penguins(target: str = "species") -> Dataset:
    """Palmer penguins: three species from four measurements, island, sex and year; some cells are missing.

    Data of Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081, as in the package palmerpenguins of Horst, Hill
    and Gorman (2020); CC0.
    """
    with resources.as_file(resources.files(__name__) / "penguins.csv") as path:
        return load_file(Path(path), target)


def load_file(path: Path, target: str) -> Dataset:
    """A table from a CSV or Parquet file; rows without a label are left out."""
    table = read_file(path)
    if target not in table.names:
        raise ValueError(f"{path.name} has no column {target!r}; its columns are {', '.join(table.names)}")
    columns, labels = table.without(target)
    if not columns.names:
        raise ValueError(f"{path.name} has no column but the target {target!r}")
    labelled = ~missing(labels)
    if not labelled.any():
        raise ValueError(f"{path.name}: no row has a {target!r}")
    name = path.stem.removesuffix(".csv")
    return Dataset(name, columns.rows(labelled), labels[labelled], int((~labelled).sum()))
