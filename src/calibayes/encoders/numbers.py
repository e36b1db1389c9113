"""Columns in the form that a family reads.

An encoder is fitted to training columns and then frozen; it encodes any table with the same columns, and decodes what
a family has sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.independent import variances
from calibayes.kernels.numbers.sparse import columns_where, is_sparse
from calibayes.tables.read import Table, holds_booleans, is_missing

LARGEST = 1e100
"""Numbers beyond this overflow when squared."""


class Encoder(Protocol):
    """Encodes columns. One that reads sparse tables too says so by an attribute ``sparse``."""

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Encoder:
        """This encoder for given columns of a table.

        The codes of the rows' classes (-1 without a label) are for encoders that are shaped by the classes.
        """

    def encode(self, table: Table) -> Array:
        """The columns as the family reads them, (n, d)."""

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        """What was encoded so, a column each; without a generator the middle of what it may have been."""

    def layout(self) -> Mapping[str, Any]:
        """What the family is told beside names and classes."""

    def extend(self, table: Table) -> tuple[Encoder, Sequence[Array] | None]:
        """This encoder with the levels of a further table, and the new code of each old level if any changed."""

    def restricted_to(self, counts: Array) -> tuple[Encoder, Sequence[Array] | None]:
        """This encoder had it seen only levels with a positive count (cells,), and the new codes if any changed."""

    @property
    def data_dependence(self) -> str:
        """What about it is shaped by the training rows beyond sums over them; empty if nothing is."""

    def unite(self, other: Any) -> tuple[Encoder, Sequence[Array] | None, Sequence[Array] | None]:
        """An encoder for the rows of both, and the new codes of the levels of each if any changed."""


@runtime_checkable
class HasRemarks(Protocol):
    """What a schema says of the columns of an encoder."""

    def remarks(self) -> Sequence[str]:
        """A short phrase for each column."""


@runtime_checkable
class MissingIsValue(Protocol):
    """Missing cells are values of their own."""

    def with_missing_unknown(self) -> Encoder:
        """The same with missing cells left open: for rows of which they are to be guessed."""


@runtime_checkable
class Derived(Protocol):
    """Encoded columns that are not the table's own."""

    sources: tuple[int, ...]
    """Which of the family's columns each encoded one was made of."""


class DataIndependent:
    """What encoders share that say the same of a row whatever the other rows are."""

    data_dependence: ClassVar[str] = ""

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None

    def unite(self, other: Self) -> tuple[Self, None, None]:
        return self, None, None

    def restricted_to(self, counts: Array) -> tuple[Self, None]:
        return self, None


@dataclass(frozen=True)
class Numbers(DataIndependent):
    """Numbers as they are, with the point about which moments are summed."""

    indices: tuple[int, ...] = ()
    center: Array = field(default_factory=lambda: np.zeros(0))
    variance: Array = field(default_factory=lambda: np.zeros(0))

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Numbers:
        columns = numbers(table, indices)
        if not np.isnan(table.extent(columns)[0]):
            center = middles(columns)
            return Numbers(tuple(indices), center, variances(columns, center))
        refuse_empty(table, indices, np.isnan(columns))
        return Numbers(tuple(indices), middles(columns), np.nanvar(columns, axis=0, dtype=np.float64))

    def encode(self, table: Table) -> Array:
        return numbers(table, self.indices)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {"center": self.center, "variance": self.variance}


@dataclass(frozen=True)
class Flags(DataIndependent):
    """Numbers above a threshold are 1, others 0; without a threshold they must be 0 or 1 already."""

    threshold: float | None = 0.0
    indices: tuple[int, ...] = ()

    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"a threshold must be finite, got {self.threshold}")

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Flags:
        refuse_unknown(table, indices, numbers(table, indices, booleans=True))
        return replace(self, indices=tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices, booleans=True)
        if self.threshold is not None:
            return above(columns, self.threshold)
        odd = columns_where(columns, lambda cells: ~(np.isin(cells, (0, 1)) | np.isnan(cells)))
        if len(odd):
            name = table.names[self.indices[odd[0]]]
            raise ValueError(f"column {name!r} has values other than 0 and 1: give a threshold (binarize)")
        return columns.astype(np.float64)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True)
class Counts(DataIndependent):
    """Numbers that are counts of something: none is negative."""

    indices: tuple[int, ...] = ()

    sparse: ClassVar[bool] = True

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Counts:
        refuse_unknown(table, indices, numbers(table, indices, booleans=True))
        return Counts(tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices, booleans=True)
        if table.extent(columns)[0] >= 0:
            return columns
        negative = columns_where(
            columns, lambda cells: cells < 0
        )  # none where a cell is missing and no other is
        if len(negative):
            raise ValueError(
                f"Negative values in data: column {table.names[self.indices[negative[0]]]!r} cannot hold counts"
            )
        return columns

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


MIDDLE_ROWS = 512


def middles(columns: Array) -> Array:
    """A point near most rows, (d,): medians of evenly spaced rows. A mean would follow a single far value."""
    some = columns[:: -(-len(columns) // MIDDLE_ROWS)].astype(np.float64)
    if not np.isnan(some.sum()):
        return np.asarray(np.median(some.T.copy(), axis=1))
    lost = np.isnan(some).all(axis=0)
    center = np.nanmedian(np.where(lost, 0.0, some), axis=0)
    if lost.any():
        center[lost] = np.nanmean(columns[:, lost], axis=0, dtype=np.float64)
    return center


def above(columns: Array, threshold: float) -> Array:
    """1 for numbers above a threshold, else 0; NaN stays."""
    if not is_sparse(columns):
        return np.where(np.isnan(columns), np.nan, columns > threshold)
    if threshold < 0:
        raise ValueError(
            f"zero is above the threshold (binarize) {threshold:g}: a sparse table would be all ones"
        )
    return (columns > threshold).astype(np.float64)


def refuse_unknown(table: Table, indices: Sequence[int], columns: Array) -> None:
    """The same, of columns of numbers; a sparse table knows all its cells."""
    if not is_sparse(columns):
        refuse_empty(table, indices, np.isnan(columns))


def refuse_empty(table: Table, indices: Sequence[int], absent: Array) -> None:
    """A column with no known cell at all cannot be learned from."""
    for j, gone in zip(indices, absent.T, strict=True):
        if gone.all():
            raise ValueError(f"column {table.names[j]!r} is all missing: leave it out")


def _with_flags(table: Table, indices: Sequence[int]) -> Table:
    """The table with booleans beside missing cells as 0, 1 and NaN."""
    if not isinstance(table.content, tuple):
        return table
    chosen = set(indices)
    columns = [
        np.array([np.nan if is_missing(value) else float(value) for value in column])
        if j in chosen and holds_booleans(column)
        else column
        for j, column in enumerate(table.content)
    ]
    return Table(table.names, tuple(columns))


def numbers(table: Table, indices: Sequence[int], *, booleans: bool = False) -> Array:
    """Some columns as numbers, NaN for missing cells, float32 where they are so already."""
    table = _with_flags(table, indices) if booleans else table
    other = table.first_unlike(indices, "fiub" if booleans else "fiu")
    if other is not None:
        raise ValueError(
            f"column {table.names[other]!r} does not hold numbers: could not convert its values to float. "
            "A categorical family, or a model for mixed columns such as NaiveBayes, takes it as it is."
        )
    matrix = table.matrix(indices)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    most = min(LARGEST, float(np.finfo(matrix.dtype).max))
    low, high = table.extent(matrix)
    within = -most <= low and high <= most  # not so either where a cell is missing
    beyond = np.zeros(0, dtype=int) if within else columns_where(matrix, lambda cells: np.abs(cells) > most)
    if len(beyond):
        far = indices[beyond[0]]
        infinite = np.isinf(table.column(far)).any()
        what = "infinity" if infinite else f"values beyond {LARGEST:g}, whose squares overflow"
        raise ValueError(f"column {table.names[far]!r} contains {what}")
    if is_sparse(matrix) and np.isnan(matrix.data).any():
        name = table.names[indices[columns_where(matrix, np.isnan)[0]]]
        raise ValueError(f"column {name!r} contains NaN: a sparse table cannot have missing cells")
    return matrix
