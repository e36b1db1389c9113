"""Data sets that need no download: in this package or in scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module, resources
from pathlib import Path

import numpy as np

from calibayes.datasets.dataset import Dataset, load_file
from calibayes.tables.read import read_array


def load_penguins(target: str = "species") -> Dataset:
    """Palmer penguins: species, island, sex, year and four measurements of 344 penguins, with missing values.

    Data of Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081, as in the package palmerpenguins of Horst, Hill
    and Gorman (2020); CC0.
    """
    with resources.as_file(resources.files("calibayes.datasets") / "penguins.csv") as path:
        return load_file(Path(path), target)


def _load_from_scikit_learn(name: str) -> Dataset:
    """Imports sklearn.datasets only on use, because that import is slow."""
    bunch = getattr(import_module("sklearn.datasets"), f"load_{name}")()
    names = [str(column).removesuffix(" (cm)").replace(" ", "_") for column in bunch.feature_names]
    return Dataset(
        name, read_array(bunch.data, names), np.asarray(bunch.target_names, dtype=object)[bunch.target]
    )


BUNDLED: Mapping[str, Callable[[], Dataset]] = {
    "iris": lambda: _load_from_scikit_learn("iris"),
    "penguins": load_penguins,
    "wine": lambda: _load_from_scikit_learn("wine"),
}
"""Name -> loader; iris and wine are read from scikit-learn."""
