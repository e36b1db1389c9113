"""A data frame of features and the target to predict, read from a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from calibayes.core.protocols import Array
from calibayes.streams.text_input import read_whole
from calibayes.tables.csv_file import CsvOptions
from calibayes.tables.read import read_frame
from calibayes.tables.table import Table, missing_mask
from calibayes.tables.text import counted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features and target as pandas objects, as in scikit-learn's loaders with ``as_frame=True``.

    Attributes
    ----------
    name : str
    data : pandas.DataFrame of shape (n, d)
        The features.
    target : pandas.Series of shape (n,)
        The label of each row.
    frame : pandas.DataFrame of shape (n, d + 1)
        Features and target together.
    unlabeled_rows : int
        How many rows were dropped because their label is missing.
    notes : tuple of str
        How cells of the file were read where that is not obvious, such as a "?" taken as a missing value.

    Examples
    --------
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.data.shape, penguins.target.name
    ((344, 7), 'species')
    """

    name: str
    data: pd.DataFrame
    target: pd.Series
    unlabeled_rows: int = 0
    notes: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """Features and target together."""
        return self.data.assign(**{str(self.target.name): self.target})

    def __repr__(self) -> str:
        n, d = self.data.shape
        size = f"{counted(n, 'row')}, {counted(d, 'column')}"
        classes = counted(self.target.nunique(), "class", "classes")
        return f"Dataset {self.name!r}: {size}, target {self.target.name!r} with {classes}"


def data_frame(table: Table) -> pd.DataFrame:
    """A table as a pandas data frame. Imports pandas only on use, because that import is slow."""
    import pandas as pd

    frame = pd.DataFrame({name: table.column(j) for j, name in enumerate(table.names)})
    zones = {table.names[j]: zone for j, zone in table.zones.items()}
    local = {name: frame[name].dt.tz_localize("UTC").dt.tz_convert(zone) for name, zone in zones.items()}
    return frame.assign(**local)


def labels_series(labels: Array, name: str) -> pd.Series:
    """Labels as a pandas series."""
    import pandas as pd

    return pd.Series(labels, name=name)


def result_of(data: Dataset, return_X_y: bool) -> Any:
    """What a loader returns: the data set, or its features and target."""
    return (data.data, data.target) if return_X_y else data


@overload
def load_file(
    path: str | Path,
    target: str,
    *,
    missing_values: Iterable[str] | None = None,
    return_X_y: Literal[False] = False,
) -> Dataset: ...
@overload
def load_file(
    path: str | Path, target: str, *, missing_values: Iterable[str] | None = None, return_X_y: Literal[True]
) -> tuple[pd.DataFrame, pd.Series]: ...
def load_file(
    path: str | Path,
    target: str,
    *,
    missing_values: Iterable[str] | None = None,
    return_X_y: bool = False,
) -> Any:
    """Read a CSV or Parquet file; ``target`` is the column to predict. Rows without a label are dropped.

    The separator of a CSV file (comma, semicolon or tab) is found in its header. Numbers may have decimal commas,
    or commas as thousands separators; where they can be both, they are decimal commas in files separated by semicolons.

    Parameters
    ----------
    path : path
        A CSV file with a header in UTF-8, a Parquet or an Arrow file, also compressed (gzip, zstd, bzip2, xz); the kind is
        found in the first bytes.
    target : str
    missing_values : list of str, optional
        Cells of a CSV file that are missing values, besides the empty one. By default those of pandas.read_csv ("NA",
        "null", ...), and "?", "-" and "unknown" in columns whose other cells are numbers.
    return_X_y : bool, default=False
        Return (data, target) instead of a `Dataset`.

    Raises
    ------
    ValueError
        If the file has no such column, no other column or no labeled row, or decompresses to more than 2 GiB.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     _ = path.write_text("size,kind\\n1,a\\n2,b\\n")
    ...     load_file(path, "kind").data.shape
    (2, 1)
    """
    path = Path(path)
    if missing_values is not None and not isinstance(missing_values, str):
        missing_values = tuple(missing_values)
    table, notes = read_whole(path, CsvOptions(missing_values=missing_values))
    data = labeled_data(table, target, path.name, path.stem.removesuffix(".csv"), notes)
    return result_of(data, return_X_y)


def labeled_data(table: Table, target: str, where: str, name: str, notes: tuple[str, ...] = ()) -> Dataset:
    """The labeled rows of a table; ``where`` is what was read, for messages.

    Raises ValueError if there is no column ``target``, no other column or no labeled row.
    """
    if target not in table.names:
        raise ValueError(f"{where} has no column {target!r}; its columns are {', '.join(table.names)}")
    if len(table.names) == 1:
        raise ValueError(f"{where} has only the target column {target!r}; at least one feature is needed")
    columns, labels = table.without(target)
    labeled = ~missing_mask(labels)
    if not labeled.any():
        raise ValueError(f"{where}: all values of the target column {target!r} are missing")
    data, series = data_frame(columns.rows(labeled)), labels_series(labels[labeled], target)
    return Dataset(name, data, series, int((~labeled).sum()), notes)


# -- The preprocessing of the papers: a numeric matrix of complete rows and non-constant columns -------------


def numeric_matrix(
    data: Dataset,
    *,
    missing_is_level: bool = False,
    least_class_rows: int = 1,
    within_classes: bool = False,
) -> tuple[Array, Array]:
    """Columns as numbers (n, d) and the target (n,), without missing values, constant columns and small classes.

    Text becomes integer codes in alphabetical order.

    Parameters
    ----------
    data : Dataset
    missing_is_level : bool, default=False
        Treat a missing text as a level of its own. By default its row is dropped, as where a number is missing.
    least_class_rows : int, default=1
        Classes with fewer rows are dropped.
    within_classes : bool, default=False
        Drop columns that are constant within at least one class, not only those that are constant in all rows.

    Examples
    --------
    >>> from calibayes.datasets import load, numeric_matrix
    >>> numeric_matrix(load("penguins"))[0].shape
    (333, 7)
    """
    table = read_frame(data.data)
    columns = [table.column(j) for j in range(len(table.names))]
    absent = [missing_mask(column) & ~(missing_is_level & (column.dtype.kind == "O")) for column in columns]
    complete = ~np.any(absent, axis=0)
    numbers = np.stack([_codes(column[complete]) for column in columns], axis=1)
    target = np.asarray(data.target)[complete]
    classes, sizes = np.unique(target, return_counts=True)
    in_large_class = np.isin(target, classes[sizes >= least_class_rows])
    numbers, target = numbers[in_large_class], target[in_large_class]
    groups = [numbers[target == label] for label in np.unique(target)] if within_classes else [numbers]
    varying = np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)
    return numbers[:, varying], target


def _codes(column: Array) -> Array:
    """Numbers unchanged, anything else as its position among the sorted distinct values; missing values sort first."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    text = np.where(missing_mask(column), "", column).astype(str)
    return np.unique(text, return_inverse=True)[1].astype(np.float64)
