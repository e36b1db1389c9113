"""A data set as a paper uses it: rows, columns, target and preprocessing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from sklearn.preprocessing import StandardScaler

from calibayes.core.protocols import Array
from calibayes.datasets import Dataset, load, numeric_matrix


@dataclass(frozen=True)
class Above:
    """Binary target: whether a column is above a value. The column is removed from the features."""

    column: str
    value: float


@dataclass(frozen=True)
class DataEntry:
    """A data set and how the version of the paper differs from it.

    Parameters
    ----------
    name : str
        Name in `calibayes.datasets`.
    label : str
        Name in the paper.
    skip, rows : int, optional
        Number of leading rows to drop, and of rows to use after them.
    drop : names of columns to drop
    target : Above, optional
        Replaces the target of the file.
    missing_is_level : bool
        Whether a missing text is a level; by default rows with missing values are dropped.
    """

    name: str
    label: str
    skip: int = 0
    rows: int | None = None
    drop: tuple[str, ...] = ()
    target: Above | None = None
    missing_is_level: bool = False

    def read(self) -> Dataset:
        """The version of the paper."""
        data = load(self.name)
        columns, target = data.data.drop(columns=list(self.drop)), data.target
        if self.target is not None:
            target = columns[self.target.column] > self.target.value
            columns = columns.drop(columns=self.target.column)
        last = len(target) if self.rows is None else self.skip + self.rows
        used = slice(self.skip, last)
        return replace(data, data=columns.iloc[used], target=target.iloc[used])


@dataclass(frozen=True)
class Cleaning:
    """The preprocessing of a paper for a model; see `numeric_matrix`."""

    least_class_rows: int = 1
    within_classes: bool = False
    standardize: bool = False

    def apply(self, entry: DataEntry) -> tuple[Array, Array]:
        """Columns (n, d) and target (n,)."""
        numbers, target = numeric_matrix(
            _read(entry),
            missing_is_level=entry.missing_is_level,
            least_class_rows=self.least_class_rows,
            within_classes=self.within_classes,
        )
        return (StandardScaler().fit_transform(numbers) if self.standardize else numbers), target


@lru_cache(maxsize=2)
def _read(entry: DataEntry) -> Dataset:
    """Cached, because successive tasks mostly use the same data set."""
    return entry.read()
