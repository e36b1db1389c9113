"""Data sets that are there without a download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module, resources
from pathlib import Path

import numpy as np

from calibayes.datasets.dataset import Dataset, load_file
from calibayes.tables.read import read_array


def load_penguins(target: str = "species") -> Dataset:
    """Palmer penguins: three species from four measurements, island, sex and year; some cells are missing.

    Data of Gorman, Williams and Fraser (2014), PLoS ONE 9(3): e90081, as in the package palmerpenguins of Horst, Hill
    and Gorman (2020); CC0.
    """
    with resources.as_file(resources.files("calibayes.datasets") / "penguins.csv") as path:
        return load_file(Path(path), target)


def _of_scikit_learn(name: str) -> Dataset:
    """Imported when it is asked for: it brings much that nothing else needs."""
    bunch = getattr(import_module("sklearn.datasets"), f"load_{name}")()
    names = [str(column).removesuffix(" (cm)").replace(" ", "_") for column in bunch.feature_names]
    return Dataset(
        name, read_array(bunch.data, names), np.asarray(bunch.target_names, dtype=object)[bunch.target]
    )


SHIPPED: Mapping[str, Callable[[], Dataset]] = {
    "iris": lambda: _of_scikit_learn("iris"),
    "penguins": load_penguins,
    "wine": lambda: _of_scikit_learn("wine"),
}
"""Name -> loader; iris and wine come with scikit-learn."""
