"""Columns in the form that a family reads.

An encoder is fitted to training columns and then frozen; it encodes any table with the same columns, and decodes what
a family has sampled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.sparse import columns_where, is_sparse
from calibayes.tables.read import Table, missing

LARGEST = 1e100
"""Numbers beyond this overflow when squared."""


class Encoder(Protocol):
    """Encodes columns. One that reads sparse tables too says so by an attribute ``sparse``."""

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Encoder:
        """This encoder for given columns of a table."""

    def encode(self, table: Table) -> Array:
        """The columns as the family reads them, (n, d)."""

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        """What was encoded so, a column each."""

    def layout(self) -> Mapping[str, Any]:
        """What the family is told beside names and classes."""

    def extend(self, table: Table) -> tuple[Encoder, Sequence[Array] | None]:
        """This encoder with the levels of a further table, and the new code of each old level if any changed."""


@dataclass(frozen=True)
class Numbers:
    """Numbers as they are, with the point about which moments are summed."""

    indices: tuple[int, ...] = ()
    centre: Array = field(default_factory=lambda: np.zeros(0))
    variance: Array = field(default_factory=lambda: np.zeros(0))

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Numbers:
        columns = numbers(table, indices)
        refuse_empty(table, indices, np.isnan(columns))
        centre = middles(columns)
        return Numbers(tuple(indices), centre, np.nanvar(columns, axis=0, dtype=np.float64))

    def encode(self, table: Table) -> Array:
        return numbers(table, self.indices)

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {"centre": self.centre, "variance": self.variance}

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None


@dataclass(frozen=True)
class Flags:
    """Numbers above a threshold are 1, others 0; without a threshold they must be 0 or 1 already."""

    threshold: float | None = 0.0
    indices: tuple[int, ...] = ()

    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"a threshold must be finite, got {self.threshold}")

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Flags:
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

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None


@dataclass(frozen=True)
class Counts:
    """Numbers that are counts of something: none is negative."""

    indices: tuple[int, ...] = ()

    sparse: ClassVar[bool] = True

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Counts:
        refuse_unknown(table, indices, numbers(table, indices, booleans=True))
        return Counts(tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices, booleans=True)
        negative = columns_where(columns, lambda cells: cells < 0)
        if len(negative):
            raise ValueError(
                f"Negative values in data: column {table.names[self.indices[negative[0]]]!r} cannot hold counts"
            )
        return columns

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None


@dataclass(frozen=True)
class Levels:
    """Every distinct value is a level; a value that was not there in training is no level (code -1).

    Whole numbers from 0 on keep their own value as code, so that levels between them that never occur count too, as in
    scikit-learn; ``at_least`` adds more of those.
    """

    at_least: int | Sequence[int] | None = None
    indices: tuple[int, ...] = ()
    seen: tuple[Array, ...] = ()
    """Distinct values of each column, ascending."""

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Levels:
        absent = np.stack([missing(table.column(j)) for j in indices], axis=1)
        refuse_empty(table, indices, absent)
        return replace(self, indices=tuple(indices), seen=tuple(distinct(table, j) for j in indices))

    @cached_property
    def levels(self) -> tuple[Array, ...]:
        """The levels of each column, in the order of their codes."""
        least = np.asarray(0 if self.at_least is None else self.at_least)
        if least.dtype.kind not in "iu" or (least < 0).any() or least.shape not in ((), (len(self.indices),)):
            raise ValueError(
                f"the least number of levels must be whole, for all or for each column: {self.at_least!r}"
            )
        least = np.broadcast_to(least, len(self.indices))
        return tuple(_filled(values, int(few)) for values, few in zip(self.seen, least, strict=True))

    def encode(self, table: Table) -> Array:
        codes = []
        for j, levels in zip(self.indices, self.levels, strict=True):
            values, inverse = distinct_inverse(table, j)
            _same_kind(levels, values, table.names[j])
            codes.append(np.append(_positions(values, levels), np.int32(-1))[inverse])
        return np.stack(codes, axis=1)

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return [levels[codes] for levels, codes in zip(self.levels, encoded.T, strict=True)]

    def layout(self) -> Mapping[str, Any]:
        return {"levels": tuple(len(levels) for levels in self.levels)}

    def extend(self, table: Table) -> tuple[Levels, Sequence[Array] | None]:
        found = [distinct(table, j) for j in self.indices]
        for j, old, new in zip(self.indices, self.seen, found, strict=True):
            _same_kind(old, new, table.names[j])
        united = [np.union1d(old, new) for old, new in zip(self.seen, found, strict=True)]
        grown = replace(self, seen=tuple(united))
        codes = [_positions(old, new) for old, new in zip(self.levels, grown.levels, strict=True)]
        sizes = zip(self.levels, grown.levels, codes, strict=True)
        same = all(
            len(old) == len(new) and np.array_equal(code, np.arange(len(old))) for old, new, code in sizes
        )
        return grown, None if same else codes


def _same_kind(levels: Array, values: Array, name: str) -> None:
    """A column whose values are all of another kind than its levels is not the same column."""
    kinds = [{isinstance(value, str) for value in array.tolist()} for array in (levels, values)]
    if all(len(kind) == 1 for kind in kinds) and kinds[0] != kinds[1]:
        texts = "strings" if kinds[0] == {True} else "numbers"
        raise ValueError(f"column {name!r} had {texts} as levels and now has none of them")


MOST_COUNTED = 2**16
"""Whole numbers up to this are sorted by counting them."""
MOST_FILLED = 1000
"""Most levels that never occur; whole numbers with more gaps than that are plain values."""


def _filled(values: Array, at_least: int) -> Array:
    """The levels that distinct values stand for: whole numbers from 0 on with those between them."""
    whole = values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and bool(np.all(values == np.floor(values)))
    )
    if whole and values[0] >= 0 and values[-1] < len(values) + MOST_FILLED:
        return np.arange(max(int(values[-1]) + 1, at_least))
    return values


def _positions(values: Array, levels: Array) -> Array:
    """The code of each value, -1 for one that is no level."""
    position = {level: code for code, level in enumerate(levels.tolist())}
    return np.array([position.get(value, -1) for value in values.tolist()], dtype=np.int32)


MIDDLE_ROWS = 4096


def middles(columns: Array) -> Array:
    """A point near most rows, (d,): medians of evenly spaced rows. A mean would follow a single far value."""
    some = columns[:: -(-len(columns) // MIDDLE_ROWS)].astype(np.float64)
    lost = np.isnan(some).all(axis=0)
    centre = np.nanmedian(np.where(lost, 0.0, some), axis=0)
    if lost.any():
        centre[lost] = np.nanmean(columns[:, lost], axis=0, dtype=np.float64)
    return centre


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


def distinct(table: Table, j: int) -> Array:
    return distinct_inverse(table, j)[0]


def distinct_inverse(table: Table, j: int) -> tuple[Array, Array]:
    """Sorted values of a column and where each cell's value is among them; behind the last for a missing cell."""
    column, name = table.column(j), table.names[j]
    absent = missing(column)
    if absent.any():
        there = Table((name,), (column[~absent],))
        values, inverse = distinct_inverse(there, 0)
        whole = np.full(len(column), len(values))
        whole[~absent] = inverse
        return values, whole
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"column {name!r} contains infinity")
    if column.dtype.kind in "iu" and len(column) and column.min() >= 0 and column.max() <= MOST_COUNTED:
        present = np.bincount(column) > 0  # far quicker than sorting
        return np.flatnonzero(present), (np.cumsum(present) - 1)[column]
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in column})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(kinds)}") from error


def numbers(table: Table, indices: Sequence[int], *, booleans: bool = False) -> Array:
    """Some columns as numbers, NaN for missing cells, float32 where they are so already."""
    other = table.first_unlike(indices, "fiub" if booleans else "fiu")
    if other is not None:
        raise ValueError(
            f"column {table.names[other]!r} does not hold numbers: could not convert its values to float. "
            "A categorical family, or a model for mixed columns such as NaiveBayes, takes it as it is."
        )
    matrix = table.matrix(indices)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    most = min(LARGEST, float(np.finfo(matrix.dtype).max))
    beyond = columns_where(matrix, lambda cells: np.abs(cells) > most)
    if len(beyond):
        far = indices[beyond[0]]
        infinite = np.isinf(table.column(far)).any()
        what = "infinity" if infinite else f"values beyond {LARGEST:g}, whose squares overflow"
        raise ValueError(f"column {table.names[far]!r} contains {what}")
    if is_sparse(matrix) and np.isnan(matrix.data).any():
        name = table.names[indices[columns_where(matrix, np.isnan)[0]]]
        raise ValueError(f"column {name!r} contains NaN: a sparse table cannot have missing cells")
    return matrix
