"""Files of the repository MachineLearningBCAM/Datasets on GitHub, as the papers' group reads them.

An author of the two papers on risk-based calibration belongs to that group, and with its files, read in this way, the
tables come out to the last digit. The folder that the environment variable CALIBAYES_AUTHORS_DATA names is a clone of
the repository or has copies of its files, also compressed by gzip.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias
from warnings import warn

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets import Dataset

FOLDER_VARIABLE = "CALIBAYES_AUTHORS_DATA"
"""Environment variable with the folder of the files."""
PREFIX = "authors/"
"""Begins the name of such a file among the inputs of a task."""
MISSING = ("", "nan", "?")
ENDINGS = (".csv", ".csv.gz", ".csv.zip")


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

    def input_names(self) -> tuple[str, ...]:
        """Name of the file among the inputs of a task; none if it is not on this computer."""
        name = PREFIX + self.name
        return () if author_file(name) is None else (name,)

    def read(self) -> Dataset:
        """Features x1, x2, ... and the label; cells that are no numbers are text.

        Raises FileNotFoundError if the file is not on this computer.
        """
        import pandas as pd

        path = author_file(PREFIX + self.name)
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


FEATURES_ABSENT = (
    "The 512 features of each image, of a ResNet18, are in files of MachineLearningBCAM/Datasets and of the release of "
    f"MachineLearningBCAM/MRCpy: put those named NAME_features_resnet18... into the folder that {FOLDER_VARIABLE} names."
)


@dataclass(frozen=True)
class ImageFeatures:
    """Features of images by a pre-trained network, in several files without header.

    A line has the number of the row, the features and the label; the files of MRCpy have no number. The files are all that
    are named ``NAME_features_resnet18...``, ending in .csv, .csv.gz or .csv.zip, the test images last.

    Parameters
    ----------
    name : str
    rows : int
        Number of rows of all files together.
    columns : int
        Number of features.
    """

    name: str
    rows: int
    columns: int = 512

    def input_names(self) -> tuple[str, ...]:
        """Names of the files among the inputs of a task; none if they are not on this computer."""
        folder = os.environ.get(FOLDER_VARIABLE)
        return tuple(PREFIX + name for name in _parts(folder, self.name)) if folder else ()

    def read(self) -> Dataset:
        """Features x1, x2, ... and the label.

        Raises ValueError if the files do not have the expected number of columns, or all together of rows.
        """
        import pandas as pd

        paths = [path for path in map(author_file, self.input_names()) if path is not None]
        table = pd.concat([self._read_part(path) for path in paths], ignore_index=True)
        if len(table) != self.rows:
            files = ", ".join(path.name for path in paths)
            raise ValueError(
                f"{files} have {len(table)} rows, expected {self.rows}: a file is missing, or they are of two releases"
            )
        names = {label: f"x{j}" for j, label in enumerate(table.columns, 1)}
        return Dataset(
            self.name, table.iloc[:, :-1].rename(columns=names), table.iloc[:, -1].rename("target")
        )

    def _read_part(self, path: Path) -> Any:
        """Features and label of one file, without the number of the row."""
        import pandas as pd

        part = pd.read_csv(path, header=None)
        numbered = part.shape[1] == self.columns + 2
        if not numbered and part.shape[1] != self.columns + 1:
            raise ValueError(
                f"{path.name} has {part.shape[1]} columns; expected {self.columns} features and the label, with or without "
                "the number of the row before them"
            )
        if numbered and path.suffix == ".csv":
            _warn_of_another_file(path)
        return part.iloc[:, int(numbered) :].set_axis(range(self.columns + 1), axis=1)


def _warn_of_another_file(path: Path) -> None:
    """Warn if a file is not that of the repository Datasets, whose git blobs are known."""
    text = (resources.files("calibayes.reproduction") / "published" / "resnet18-files.csv").read_text("utf-8")
    known = dict(line.split(",") for line in text.splitlines()[1:])
    content = path.read_bytes()
    checksum = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if path.stem in known and checksum != known[path.stem]:
        problem = f"{path.name} is not the file of MachineLearningBCAM/Datasets: its git blob is {checksum}"
        warn(f"{problem}, expected {known[path.stem]}", UserWarning, stacklevel=2)


@cache
def _parts(folder: str, name: str) -> tuple[str, ...]:
    """Names, without endings, of the files of some features, the test images last."""
    paths = [p for p in Path(folder).rglob(f"{name}_features_resnet18*") if p.name.endswith(ENDINGS)]
    return tuple(sorted({p.name.split(".")[0] for p in paths}, key=lambda stem: ("test" in stem, stem)))


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
    paths = (path for ending in ENDINGS for path in Path(folder).rglob(name + ending))
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


AuthorData: TypeAlias = AuthorFile | ImageFeatures
"""What the papers' group keeps of a data set."""
IMAGE_FEATURES = tuple(
    ImageFeatures(name, rows)
    for name, rows in (
        ("catsvsdogs", 23262),
        ("yearbook", 37921),
        ("cifar10", 60000),
        ("fashion_mnist", 70000),
        ("mnist", 70000),
    )
)
"""The five data sets of images, with the published numbers of rows."""
