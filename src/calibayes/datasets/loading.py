"""Data sets by name: from a folder, from the package, from the net."""

from __future__ import annotations

import os
from pathlib import Path

from calibayes.datasets.dataset import Dataset, load_file
from calibayes.datasets.download import Opener, plain_opener
from calibayes.datasets.published import cached, download_dataset
from calibayes.datasets.shipped import SHIPPED
from calibayes.datasets.sources import SOURCES

FOLDER = "CALIBAYES_DATA"


def load(name: str, data_home: str | Path | None = None, *, opener: Opener | None = plain_opener) -> Dataset:
    """A data set by its name.

    It is looked for as ``NAME.csv.gz`` (last column ``target``) in the folder, then among those that ship, then among
    earlier downloads, and is at last downloaded from its public source and kept.

    Parameters
    ----------
    name : str
        One of `list_datasets`, or of a file in the folder.
    data_home : path, optional
        The folder; by default the one that the variable CALIBAYES_DATA names.
    opener : function, optional
        What answers requests to the net; None never asks it.

    Examples
    --------
    >>> from calibayes.datasets import load
    >>> load("penguins").columns.n
    344
    """
    path = find(name, data_home)
    if path is not None:
        return load_file(path, "target")
    if name in SHIPPED:
        return SHIPPED[name]()
    if name not in SOURCES:
        raise ValueError(
            f"unknown data set {name!r}; known are {', '.join(list_datasets(data_home))}. "
            f"A file {name}.csv.gz in the folder that {FOLDER} names is found too"
        )
    return load_file(_downloaded(name, opener), "target")


def _downloaded(name: str, opener: Opener | None) -> Path:
    path = cached(name, cache_folder())
    if path is not None:
        return path
    hint = f"put {name}.csv.gz (last column target) into the folder that {FOLDER} names"
    if opener is None:
        raise ConnectionError(f"{name!r} is not at hand and was not to be downloaded: {hint}")
    try:
        return download_dataset(name, SOURCES[name], cache_folder(), opener)
    except ConnectionError as error:
        raise ConnectionError(f"{name!r} is not at hand: {error}; or {hint}") from error


def find(name: str, data_home: str | Path | None = None, *, ending: str = ".csv.gz") -> Path | None:
    """The file of a data set in the folder, if it is there."""
    folder = data_home if data_home is not None else os.environ.get(FOLDER)
    path = None if folder is None else Path(folder) / f"{name}{ending}"
    return path if path is not None and path.exists() else None


def at_hand(name: str, data_home: str | Path | None = None) -> bool:
    """Whether `load` needs no download."""
    return (
        find(name, data_home) is not None or name in SHIPPED or (cache_folder() / f"{name}.csv.gz").exists()
    )


def list_datasets(data_home: str | Path | None = None) -> list[str]:
    """Names that `load` knows: those that ship, files of the folder, public ones.

    >>> "vehicle" in list_datasets()
    True
    """
    folder = data_home if data_home is not None else os.environ.get(FOLDER)
    files = Path(folder).glob("*.csv.gz") if folder is not None else ()
    return sorted({*SHIPPED, *SOURCES, *(path.name.removesuffix(".csv.gz") for path in files)})


def cache_folder() -> Path:
    """Where downloads are kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "calibayes"
