"""The summary of a table: the only thing that encoders are fitted to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.row_weights import weight_of_one
from calibayes.tables.origin import Origin
from calibayes.tables.summaries.column import ColumnSummary
from calibayes.tables.summaries.sample import Sample
from calibayes.tables.table import Conversion, Table, refuse_other_kind

Result = TypeVar("Result")


class Moments(NamedTuple):
    """A point near most rows, and the variance of the known values, of columns of numbers, (d,) each."""

    center: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class TableSummary(ABC):
    """What encoders learn from: summaries of single columns, a sample of the rows, labels and weights.

    It is made of a table in memory (`InMemory`), or of sums over the blocks of a table (`Streamed`).
    """

    head: Table
    """A table with the same columns, of any number of rows."""
    weight: Array
    """Weight of each row, (n,)."""
    codes: Array | None
    """Class code of each row, (n,), -1 for a row without a label; None if the classes are not known."""

    @property
    @abstractmethod
    def sample(self) -> Sample:
        """All rows of a table with at most `SAMPLE_ROWS`, else about as many, by row number: for encoders of several columns."""

    @abstractmethod
    def column(self, j: int) -> ColumnSummary:
        """The summary of column j."""

    @abstractmethod
    def missing_rows(self, j: int) -> int:
        """Number of rows whose value of column j is missing."""

    @abstractmethod
    def missing_weight(self, j: int) -> float:
        """Total weight of the rows whose value of column j is missing."""

    @abstractmethod
    def levels(self, indices: Sequence[int], *, weights_needed: bool) -> list[tuple[Array, Array]]:
        """For each column its distinct values, ascending, in the type of the column, and their total weights.

        If the weights are not needed, they may be any positive numbers. Raises ValueError if a column is all missing.
        """

    @abstractmethod
    def moments(self, indices: Sequence[int]) -> Moments:
        """Centers and variances of columns of numbers. Raises ValueError if a column holds none."""

    @abstractmethod
    def check_numbers(self, indices: Sequence[int]) -> None:
        """Raises ValueError if a column holds neither numbers nor booleans, or is all missing."""

    @abstractmethod
    def contents(self, j: int) -> Array:
        """Values of column j that show what it contains: all that are distinct, or all."""

    @abstractmethod
    def encoded(self, encoder: Any) -> Any:
        """All rows, encoded by a fitted encoder."""

    @abstractmethod
    def cached(self, key: Any, compute: Callable[[], Result]) -> Result:
        """``compute()``, or its stored result if it was called before with this key."""

    def numbers(self, j: int) -> ColumnSummary:
        """`column`. Raises ValueError if it does not hold numbers, or is all missing."""
        refuse_other_kind(self.head, [j], "fiu")
        self.refuse_all_missing([j])
        return self.column(j)

    def refuse_all_missing(self, indices: Sequence[int]) -> None:
        """Raises ValueError if a column has no known value."""
        for j in indices:
            if self.missing_rows(j) == self.n:
                raise ValueError(f"column {self.names[j]!r} is all missing: leave it out")

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.weight)

    @cached_property
    def k(self) -> int:
        """Number of classes: one more than the largest code; 0 if the classes are not known."""
        return 0 if self.codes is None else int(self.codes.max(initial=0)) + 1

    @cached_property
    def unit(self) -> float:
        """The weight of one row."""
        return weight_of_one(self.weight)

    @cached_property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.weight.sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.head.names

    @property
    def source_names(self) -> tuple[str, ...]:
        """Names of the columns as they were read, without those that a conversion has added."""
        return self.head.source_names

    @property
    def used(self) -> Sequence[int]:
        """Positions of all columns but identifiers."""
        return self.head.used

    @property
    def origin(self) -> Origin:
        """The kind of table that was passed."""
        return self.head.origin

    @property
    def conversion(self) -> Conversion | None:
        """How the columns were made from those that were read."""
        return self.head.conversion

    def types(self) -> tuple[np.dtype[Any], ...]:
        """The type of each column."""
        return self.head.types()

    def dtype_kind(self, j: int) -> str:
        """NumPy's one-letter code of the type of column j."""
        return self.head.dtype_kind(j)

    def is_numeric(self, j: int) -> bool:
        """Whether column j contains numbers."""
        return self.head.is_numeric(j)

    def is_derived(self, j: int) -> bool:
        """Whether column j was derived from another one."""
        return self.head.is_derived(j)
