"""Data sets that are there without a download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, load_wine

from calibayes.datasets.dataset import Dataset, load_file
from calibayes.tables.read import read_array


def load_penguins(target: str = "species") -> Dataset:
    """Palmer penguins: three species from four measurements, island, sex and year; some cells are missing.

    Data of Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081, as in the package palmerpenguins of Horst, Hill
    and Gorman (2020); CC0.
    """
    with resources.as_file(resources.files("calibayes.datasets") / "penguins.csv") as path:
        return load_file(Path(path), target)


def _of_scikit_learn(name: str, loader: Callable[[], Any]) -> Dataset:
    bunch = loader()
    names = [str(column).removesuffix(" (cm)").replace(" ", "_") for column in bunch.feature_names]
    return Dataset(
        name, read_array(bunch.data, names), np.asarray(bunch.target_names, dtype=object)[bunch.target]
    )


SHIPPED: Mapping[str, Callable[[], Dataset]] = {
    "iris": lambda: _of_scikit_learn("iris", load_iris),
    "penguins": load_penguins,
    "wine": lambda: _of_scikit_learn("wine", load_wine),
}
"""Name -> loader; iris and wine come with scikit-learn."""
