"""Data sets that need no download: in this package or in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from calibayes.datasets.dataset import Dataset, data_frame, labels_series, load_file, result_of
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
