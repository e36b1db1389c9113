"""Small fitted models of every public estimator, as files, with rows to predict."""

import tempfile
import warnings
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import calibayes as cb
from tests.files.cases import VARIANTS

MIXED_TYPES = (
    *(cb.BayesClassifier, cb.CalibratedTrees, cb.GenerativeClassifier, cb.JointKernelClassifier),
    *(cb.KernelNB, cb.NaiveBayes, cb.TreeAugmentedNB, cb.KDependenceBayes, cb.AODE),
)
"""Estimators for tables with columns of mixed types and missing values."""


class Sample(NamedTuple):
    """A model file and the rows that its model was fitted to."""

    content: bytes
    rows: Any


def counts(rows: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """A table that every estimator accepts, with its classes."""
    return np.random.default_rng(0).poisson(2.0, (rows, 3)).astype(float), np.arange(rows) % 2


def mixed_types(rows: int = 30) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, levels, dates and missing cells, with classes that are texts."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "length": rng.normal(size=rows),
            "island": pd.Categorical(rng.choice(["a", "b", "c"], rows)),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "sex": rng.choice(["f", "m", None], rows),
        }
    )
    table.loc[3, "length"] = np.nan
    return table, np.array(["x", "y", "z"])[np.arange(rows) % 3]


def saved(model: Any) -> bytes:
    """The bytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        cb.save(model, path)
        return path.read_bytes()


def _fitted(model: Any, rows: Any, classes: Any) -> Sample:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Sample(saved(deepcopy(model).fit(rows, classes)), rows)


@cache
def small_model() -> Sample:
    """The smallest file that has all parts of a generative model."""
    rows, classes = counts(8)
    return _fitted(cb.GaussianNB(rule="ml"), rows[:, :2], classes)


@cache
def sample(name: str) -> Sample:
    """The file of an estimator by the name of its class; ``NAME mixed`` is fitted to columns of mixed types.

    Names of `VARIANTS` are files of other parameters.
    """
    if name in VARIANTS:
        return _fitted(VARIANTS[name].estimator, *VARIANTS[name].table())
    cls = getattr(cb, name.removesuffix(" mixed"))
    model = cls(cb.GaussianNB()) if cls is cb.TradeOffCV else cls()
    return _fitted(model, *(mixed_types() if name.endswith(" mixed") else counts()))


def _names() -> list[str]:
    public = [getattr(cb, name) for name in cb.__all__]
    classes = [cls for cls in public if isinstance(cls, type) and issubclass(cls, BaseEstimator)]
    plain = [cls.__name__ for cls in classes if cls is not cb.TrainingOptions]
    return [*plain, *(f"{cls.__name__} mixed" for cls in MIXED_TYPES)]


NAMES = _names()
"""The names of all samples but the variants."""
