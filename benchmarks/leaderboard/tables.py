"""The tables of the leaderboard: files of a folder, tables of R packages, and the penguins that ship with calibayes."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from leaderboard.r_tables import R_TABLES

FOLDS = 3
ONE_FOLD = 50_000
"""Only the first fold is measured on tables of more rows."""
MIN_CLASS_ROWS = 20
"""Classes of fewer rows are left out, since the log loss of boosted trees is erratic if a class has a few training rows."""
ENDING = ".csv.gz"
DEVELOPMENT = ("kr-vs-kp", "mushroom", "optdigits", "pulsar", "ringnorm", "satellite")
"""Larger tables on which defaults of BayesClassifier were chosen: the development tables of docs/accuracy.md."""


@dataclass(frozen=True)
class Table:
    """Columns, and the number of each row's class."""

    name: str
    frame: pd.DataFrame
    target: np.ndarray

    @property
    def size(self):
        """Rows, columns, classes."""
        return len(self.frame), self.frame.shape[1], int(self.target.max()) + 1

    def folds(self):
        """Training and test rows of each fold that is measured."""
        splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
        splits = list(splitter.split(np.zeros(len(self.target)), self.target))
        return splits[:1] if len(self.target) > ONE_FOLD else splits


def table_of(name, data):
    """The last column is the class; rare classes are left out."""
    labels = data.iloc[:, -1]
    data = data[labels.map(labels.value_counts()) >= MIN_CLASS_ROWS].reset_index(drop=True)
    _, target = np.unique(data.iloc[:, -1].astype(str), return_inverse=True)
    return Table(name, data.iloc[:, :-1], target)


def read_table(path):
    """A file NAME.csv.gz: a header, missing cells empty, the last column the class."""
    data = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return table_of(path.name.removesuffix(ENDING), data)


def penguins():
    from calibayes.datasets import load_penguins

    return table_of("penguins", load_penguins().frame)


def file_loaders(folders, min_rows=0):
    """Name -> function that loads the table, for the files in some folders with at least so many rows."""
    paths = [path for folder in folders for path in sorted(Path(folder).glob(f"*{ENDING}"))]
    return {
        path.name.removesuffix(ENDING): lambda path=path: read_table(path)
        for path in paths
        if not min_rows or count_rows(path) >= min_rows
    }


def count_rows(path):
    """Lines below the header."""
    with gzip.open(path) as file:
        return sum(1 for _ in file) - 1


def r_loaders():
    """The same for tables of R packages."""
    return {name: lambda s=source: table_of(s.name, s.read()) for name, source in R_TABLES.items()}


def chosen(found, names):
    """The named ones of some loaders, in that order; all if no names are given."""
    if missing := [name for name in names or () if name not in found]:
        raise SystemExit(f"no table is named {', '.join(missing)}; there are: {', '.join(found) or 'none'}")
    return {name: found[name] for name in names} if names else found
