"""Columns in the form that a family reads.

An encoder is fitted to training columns and then frozen; it encodes any table with the same columns, and decodes what
a family has sampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.read import Table, missing

LARGEST = 1e150
"""Numbers beyond this overflow when squared."""


class Encoder(Protocol):
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

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Numbers:
        chosen = replace(self, indices=tuple(indices))
        return replace(chosen, centre=chosen.encode(table).mean(axis=0, dtype=np.float64))

    def encode(self, table: Table) -> Array:
        return numbers(table, self.indices)

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {"centre": self.centre}

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None


@dataclass(frozen=True)
class Flags:
    """Numbers above a threshold are 1, others 0; without a threshold they must be 0 or 1 already."""

    threshold: float | None = 0.0
    indices: tuple[int, ...] = ()

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Flags:
        return replace(self, indices=tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices, booleans=True)
        if self.threshold is not None:
            return (columns > self.threshold).astype(np.float64)
        odd = ~np.isin(columns, (0, 1)).all(axis=0)
        if odd.any():
            name = table.names[self.indices[int(np.argmax(odd))]]
            raise ValueError(f"column {name!r} has values other than 0 and 1: give a threshold (binarize)")
        return columns.astype(np.float64)

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
    levels: tuple[Array, ...] = ()

    FILLED = 1000
    """Most levels that never occur; whole numbers with more gaps than that are plain values."""

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Levels:
        least = np.broadcast_to(0 if self.at_least is None else np.asarray(self.at_least), len(indices))
        levels = [self._found(table, j, int(few)) for j, few in zip(indices, least, strict=True)]
        return replace(self, indices=tuple(indices), levels=tuple(levels))

    def _found(self, table: Table, j: int, at_least: int) -> Array:
        values = distinct(table, j)
        whole = values.dtype.kind in "iu" or (
            values.dtype.kind == "f" and bool(np.all(values == np.floor(values)))
        )
        if whole and values[0] >= 0 and values[-1] < len(values) + self.FILLED:
            return np.arange(max(int(values[-1]) + 1, at_least))
        return values

    def encode(self, table: Table) -> Array:
        codes = [self._codes(table, j, levels) for j, levels in zip(self.indices, self.levels, strict=True)]
        return np.stack(codes, axis=1)

    def _codes(self, table: Table, j: int, levels: Array) -> Array:
        values, inverse = distinct_inverse(table, j)
        position = {level: code for code, level in enumerate(levels.tolist())}
        return np.array([position.get(value, -1) for value in values.tolist()], dtype=np.int32)[inverse]

    def decode(self, encoded: Array, rng: np.random.Generator) -> list[Array]:
        return [levels[codes] for levels, codes in zip(self.levels, encoded.T, strict=True)]

    def layout(self) -> Mapping[str, Any]:
        return {"levels": tuple(len(levels) for levels in self.levels)}

    def extend(self, table: Table) -> tuple[Levels, Sequence[Array] | None]:
        seen = replace(self, at_least=[len(levels) for levels in self.levels]).fit(
            table, self.indices, np.ones(0)
        )
        united = [
            np.arange(max(len(old), len(new))) if _is_range(old) and _is_range(new) else np.union1d(old, new)
            for old, new in zip(self.levels, seen.levels, strict=True)
        ]
        if all(len(new) == len(old) for new, old in zip(united, self.levels, strict=True)):
            return self, None
        codes = [np.searchsorted(new, old) for new, old in zip(united, self.levels, strict=True)]
        return replace(self, levels=tuple(united)), codes


def _is_range(levels: Array) -> bool:
    return levels.dtype.kind in "iu" and np.array_equal(levels, np.arange(len(levels)))


def distinct(table: Table, j: int) -> Array:
    return distinct_inverse(table, j)[0]


def distinct_inverse(table: Table, j: int) -> tuple[Array, Array]:
    """Sorted values of a column and where each cell's value is among them."""
    column, name = table.column(j), table.names[j]
    if missing(column).any():
        raise ValueError(f"column {name!r} contains NaN or missing cells, which are not supported here")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"column {name!r} contains infinity")
    try:
        return np.unique(column, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(value).__name__ for value in column})
        raise ValueError(f"column {name!r} mixes values of types {', '.join(kinds)}") from error


def numbers(table: Table, indices: Sequence[int], *, booleans: bool = False) -> Array:
    """Some columns as finite numbers, float32 where they are so already."""
    allowed = "fiub" if booleans else "fiu"
    for j in indices:
        kind = table.column(j).dtype.kind
        if kind not in allowed:
            raise ValueError(
                f"column {table.names[j]!r} does not hold numbers: could not convert its values to float. "
                "A categorical family, or a model for mixed columns such as NaiveBayes, takes it as it is."
            )
    matrix = table.matrix(indices)
    matrix = matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)
    if not (np.abs(matrix) <= LARGEST).all():
        bad = int(np.argmin((np.abs(matrix) <= LARGEST).all(axis=0)))
        values, name = matrix[:, bad], table.names[indices[bad]]
        if np.isnan(values).any():
            raise ValueError(f"column {name!r} contains NaN, which is not supported here")
        what = "infinity" if np.isinf(values).any() else f"values beyond {LARGEST:g}, whose squares overflow"
        raise ValueError(f"column {name!r} contains {what}")
    return matrix
