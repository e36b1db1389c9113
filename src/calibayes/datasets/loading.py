"""Load data sets by name: from a folder, from the package, from earlier downloads or from OpenML."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from calibayes.datasets.dataset import Dataset, data_frame, labels_series, load_file, result_of
from calibayes.datasets.download import SOURCES, Opener, cached_file, download_dataset, open_url
from calibayes.tables.read import read_array

if TYPE_CHECKING:
    import pandas as pd


@overload
def load_penguins(target: str = "species", *, return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_penguins(
    target: str = "species", *, return_X_y: Literal[True]
) -> tuple[pd.DataFrame, pd.Series]: ...
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
    return (
        find_file(name, data_home) is not None
        or name in BUNDLED
        or (cache_folder() / f"{name}.csv.gz").exists()
    )


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
