"""A data set as a paper has it: which rows, which columns, which target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from calibayes.core.protocols import Array
from calibayes.datasets import Dataset, complete_varying_numbers, load


@dataclass(frozen=True)
class Above:
    """A target that asks whether a column is above a value; the column is no feature then."""

    column: str
    value: float


@dataclass(frozen=True)
class DataEntry:
    """A data set, by its name in `calibayes.datasets` and in the paper, and what the paper's version of it lacks.

    Parameters
    ----------
    name, label : str
    skip, rows : int, optional
        Rows left out at the beginning, and how many are taken.
    drop : names of columns
    target : Above, optional
        Another target than the one of the file.
    missing_is_level : bool
        Whether a missing text is a value; else incomplete rows are left out.
    """

    name: str
    label: str
    skip: int = 0
    rows: int | None = None
    drop: tuple[str, ...] = ()
    target: Above | None = None
    missing_is_level: bool = False

    def read(self) -> Dataset:
        """The paper's version."""
        data = load(self.name)
        columns, target = data.columns, data.target
        for name in self.drop:
            columns, _ = columns.without(name)
        if self.target is not None:
            columns, numbers = columns.without(self.target.column)
            target = numbers > self.target.value
        last = len(target) if self.rows is None else self.skip + self.rows
        place = np.arange(len(target))
        chosen = (place >= self.skip) & (place < last)
        return replace(data, columns=columns.rows(chosen), target=target[chosen])


@dataclass(frozen=True)
class Cleaning:
    """How a paper cleans data sets for a model; see `complete_varying_numbers`."""

    least_class_rows: int = 1
    within_classes: bool = False
    standardize: bool = False

    def apply(self, entry: DataEntry) -> tuple[Array, Array]:
        """Columns (n, d) and target (n,)."""
        numbers, target = complete_varying_numbers(
            _read(entry),
            missing_is_level=entry.missing_is_level,
            least_class_rows=self.least_class_rows,
            within_classes=self.within_classes,
        )
        return (StandardScaler().fit_transform(numbers) if self.standardize else numbers), target


@lru_cache(maxsize=2)
def _read(entry: DataEntry) -> Dataset:
    """The cells of a data set follow each other, so that a file is read once for most of them."""
    return entry.read()
