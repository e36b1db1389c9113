"""Files of the repository MachineLearningBCAM/Datasets on GitHub, as the papers' group reads them.

An author of the two papers on risk-based calibration belongs to that group, and with its files, read in this way, the
tables come out to the last digit. The folder that the environment variable CALIBAYES_AUTHORS_DATA names is a clone of
the repository or has copies of its files, also compressed by gzip.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets import Dataset

FOLDER_VARIABLE = "CALIBAYES_AUTHORS_DATA"
"""Environment variable with the folder of the files."""
PREFIX = "authors/"
"""Begins the name of such a file among the inputs of a task."""
MISSING = ("", "nan", "?")


@dataclass(frozen=True)
class AuthorFile:
    """A file without named columns, and which of its lines and cells are rows, features and labels.

    Parameters
    ----------
    name : str
        Name of the file without its ending.
    columns : int
        Number of features. Lines with fewer cells are no rows, and further cells are ignored.
    first_line : int
        Number of lines before the first row. The group's loader skips two lines, one with sizes and one with names; where
        there are no names, the first row is lost.
    label_first : bool
        Whether the label stands before the features instead of after them.
    """

    name: str
    columns: int
    first_line: int = 0
    label_first: bool = False

    @property
    def input_name(self) -> str:
        """Name of the file among the inputs of a task."""
        return PREFIX + self.name

    def read(self) -> Dataset:
        """Features x1, x2, ... and the label; cells that are no numbers are text.

        Raises FileNotFoundError if the file is not on this computer.
        """
        import pandas as pd

        path = author_file(self.input_name)
        if path is None:
            raise FileNotFoundError(f"{self.name}.csv is not in the folder that {FOLDER_VARIABLE} names")
        lines = _lines(path)[self.first_line :]
        table = np.array(
            [line[: self.columns + 1] for line in lines if len(line) > self.columns], dtype=object
        )
        label = 0 if self.label_first else self.columns
        columns = np.delete(table, label, axis=1).T
        data = pd.DataFrame({f"x{j}": _values(column) for j, column in enumerate(columns, 1)})
        return Dataset(self.name, data, pd.Series(table[:, label], name="target"))


def author_file(input_name: str) -> Path | None:
    """The file of this name among the inputs of a task; None if it is not on this computer or of another kind.

    >>> print(author_file("iris"))
    None
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    return (
        _find(folder, input_name.removeprefix(PREFIX)) if folder and input_name.startswith(PREFIX) else None
    )


@cache
def _find(folder: str, name: str) -> Path | None:
    """The first file of this name in the folder and those below it, in the order of their paths."""
    if not Path(folder).is_dir():
        raise ValueError(
            f"the environment variable {FOLDER_VARIABLE} names the folder {folder!r}, which does not exist: create or "
            "correct it"
        )
    paths = (path for ending in (".csv", ".csv.gz") for path in Path(folder).rglob(name + ending))
    return min(paths, default=None)


def _lines(path: Path) -> list[list[str]]:
    """The cells of all lines that are not empty, without blanks around them."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8-sig")
    return [[cell.strip() for cell in line] for line in csv.reader(text.splitlines()) if line]


def _values(cells: Array) -> Array:
    """Numbers, with NaN where a value is missing; text if a cell is no number."""
    try:
        return np.array([np.nan if cell in MISSING else float(cell) for cell in cells])
    except ValueError:
        return np.array([None if cell in MISSING else cell for cell in cells], dtype=object)
