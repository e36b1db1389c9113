"""Load data sets by name: from a folder, from the package, from earlier downloads or from OpenML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from calibayes.datasets.bundled import BUNDLED
from calibayes.datasets.dataset import Dataset, load_file, result_of
from calibayes.datasets.download import Opener, cached_file, download_dataset, open_url
from calibayes.datasets.sources import SOURCES

if TYPE_CHECKING:
    import pandas as pd

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
