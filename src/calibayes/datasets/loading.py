"""Load data sets by name: from a folder, from the package, from earlier downloads or from OpenML."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from calibayes.core.notices import counted, listed
from calibayes.core.protocols import Array
from calibayes.datasets.download import SOURCES, Opener, cached_file, download_dataset, open_url
from calibayes.streams.text_input import read_whole
from calibayes.tables.csv_parsing import CsvOptions
from calibayes.tables.read import read_array, read_frame
from calibayes.tables.table import Table, missing_mask

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
        raise ValueError(f"{where} has no column {target!r}; its columns are {listed(table.names)}")
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
    least_variance: float = 0.0,
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
    least_variance : float, default=0
        Columns whose variance (within one class, if ``within_classes``) is not above this are dropped as constant ones are.

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
    varying = np.all(
        [(np.ptp(group, axis=0) > 0) & _varies(group, least_variance) for group in groups], axis=0
    )
    return numbers[:, varying], target


def _varies(group: Array, least_variance: float) -> Array:
    """Whether the variance of each column is above the least one; 0 admits any, however small."""
    return (group.var(axis=0) > least_variance) | (least_variance == 0.0)


def _codes(column: Array) -> Array:
    """Numbers unchanged, anything else as its position among the sorted distinct values; missing values sort first."""
    if column.dtype.kind in "fiub":
        return column.astype(np.float64)
    text = np.where(missing_mask(column), "", column).astype(str)
    return np.unique(text, return_inverse=True)[1].astype(np.float64)


@overload
def load_penguins(target: str = ..., *, return_X_y: Literal[False] = ...) -> Dataset: ...
@overload
def load_penguins(target: str = ..., *, return_X_y: Literal[True]) -> tuple[pd.DataFrame, pd.Series]: ...
def load_penguins(target: str = "species", *, return_X_y: bool = False) -> Any:
    """Palmer penguins: species, island, sex, year and four measurements of 344 penguins, with missing values.

    Data of Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081, as in the package palmerpenguins of Horst, Hill
    and Gorman (2020); CC0.

    Parameters
    ----------
    target : str, default="species"
        The column to predict.
    return_X_y : bool, default=False
        Return (data, target) instead of a `Dataset`.

    Examples
    --------
    >>> from calibayes.datasets import load_penguins
    >>> X, y = load_penguins(return_X_y=True)
    >>> X.shape
    (344, 7)
    """
    with resources.as_file(resources.files("calibayes.datasets") / "penguins.csv") as path:
        return result_of(load_file(Path(path), target), return_X_y)


def _load_from_scikit_learn(name: str) -> Dataset:
    """Imports sklearn.datasets only on use, because that import is slow."""
    bunch = getattr(import_module("sklearn.datasets"), f"load_{name}")()
    names = [str(column).removesuffix(" (cm)").replace(" ", "_") for column in bunch.feature_names]
    labels = np.asarray(bunch.target_names, dtype=object)[bunch.target]
    return Dataset(name, data_frame(read_array(bunch.data, names)), labels_series(labels, "target"))


BUNDLED: Mapping[str, Callable[[], Dataset]] = {
    "iris": lambda: _load_from_scikit_learn("iris"),
    "penguins": load_penguins,
    "wine": lambda: _load_from_scikit_learn("wine"),
}
"""Name -> loader; iris and wine are read from scikit-learn."""


FOLDER_VARIABLE = "CALIBAYES_DATA"
"""Environment variable with the folder of data sets."""


@overload
def load(
    name: str,
    data_home: str | Path | None = None,
    *,
    opener: Opener | None = open_url,
    return_X_y: Literal[False] = False,
) -> Dataset: ...
@overload
def load(
    name: str,
    data_home: str | Path | None = None,
    *,
    opener: Opener | None = open_url,
    return_X_y: Literal[True],
) -> tuple[pd.DataFrame, pd.Series]: ...
def load(
    name: str,
    data_home: str | Path | None = None,
    *,
    opener: Opener | None = open_url,
    return_X_y: bool = False,
) -> Any:
    """Load a data set by its name.

    Searched in this order: a file ``NAME.csv.gz`` (last column ``target``) in the folder ``data_home``, the data sets
    in the package, earlier downloads. A data set that is in none of them is downloaded from OpenML and cached.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    data_home : path, optional
        The folder; by default the value of the environment variable CALIBAYES_DATA.
    opener : function, optional
        Opens requests to OpenML; None forbids downloads.
    return_X_y : bool, default=False
        Return (data, target) instead of a `Dataset`.

    Raises
    ------
    ValueError
        If the name is unknown or has a path separator, or if the folder does not exist.
    ConnectionError
        If the data set must be downloaded and cannot be, or downloads are forbidden.

    Examples
    --------
    >>> from calibayes.datasets import load
    >>> load("penguins").data.shape
    (344, 7)
    """
    return result_of(_loaded(name, data_home, opener), return_X_y)


def _loaded(name: str, data_home: str | Path | None, opener: Opener | None) -> Dataset:
    path = find_file(name, data_home)
    if path is not None:
        return load_file(path, "target")
    if name in BUNDLED:
        return BUNDLED[name]()
    if name not in SOURCES:
        raise ValueError(
            f"unknown data set {name!r}; available are {', '.join(list_datasets(data_home))}. "
            f"To add one, put {name}.csv.gz (last column target) into the folder given by {FOLDER_VARIABLE}"
        )
    return load_file(_downloaded(name, opener), "target")


def _downloaded(name: str, opener: Opener | None) -> Path:
    path = cached_file(name, cache_folder())
    if path is not None:
        return path
    hint = f"put {name}.csv.gz (last column target) into the folder given by {FOLDER_VARIABLE}"
    if opener is None:
        raise ConnectionError(f"data set {name!r} is not on this computer and downloads are off: {hint}")
    try:
        return download_dataset(name, SOURCES[name], cache_folder(), opener)
    except ConnectionError as error:
        raise ConnectionError(f"data set {name!r} is not on this computer: {error}; or {hint}") from error


def find_file(name: str, data_home: str | Path | None = None, *, ending: str = ".csv.gz") -> Path | None:
    """The file of a data set in the folder (`load`), None if there is none.

    Raises ValueError if the name would lead out of the folder, or if the folder does not exist.

    Examples
    --------
    >>> print(find_file("no-such-table"))
    None
    """
    if not name or ".." in name or "/" in name or "\\" in name:
        raise ValueError(
            f"{name!r} is not a name of a data set: it must not be empty and must not contain '/', '\\' or '..'; "
            "read a file at another place with load_file"
        )
    folder = _data_folder(data_home)
    path = None if folder is None else folder / f"{name}{ending}"
    return path if path is not None and path.exists() else None


def _data_folder(data_home: str | Path | None) -> Path | None:
    """The folder of data sets, None if there is none. Raises ValueError if it does not exist."""
    folder = data_home if data_home is not None else os.environ.get(FOLDER_VARIABLE) or None
    if folder is None or Path(folder).is_dir():
        return None if folder is None else Path(folder)
    source = "data_home" if data_home is not None else f"the environment variable {FOLDER_VARIABLE}"
    raise ValueError(f"{source} names the folder {str(folder)!r}, which does not exist: create or correct it")


def is_local(name: str, data_home: str | Path | None = None) -> bool:
    """Whether `load` needs no download.

    Examples
    --------
    >>> is_local("penguins")
    True
    """
    cached = cache_folder() / f"{name}.csv.gz"
    return find_file(name, data_home) is not None or name in BUNDLED or cached.exists()


def list_datasets(data_home: str | Path | None = None) -> list[str]:
    """Names that `load` accepts: data sets in the package, files in the folder, data sets of OpenML.

    >>> "vehicle" in list_datasets()
    True
    """
    folder = _data_folder(data_home)
    files = folder.glob("*.csv.gz") if folder is not None else ()
    return sorted({*BUNDLED, *SOURCES, *(path.name.removesuffix(".csv.gz") for path in files)})


def cache_folder() -> Path:
    """Folder of downloaded data sets."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "calibayes"
