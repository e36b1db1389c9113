"""Columns of mixed types as codes: bins or levels by the type of the column, with a code for missing values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array
from calibayes.encoders.bins import KMeansBins
from calibayes.encoders.encoder import Encoder, NewCodes, verify_nested
from calibayes.encoders.levels import Levels
from calibayes.encoders.schema import remarks_of
from calibayes.kernels.dispatch import code_type
from calibayes.tables.summary import TableSummary, reaches
from calibayes.tables.table import Table


def numeric_columns(table: Table | TableSummary) -> list[int]:
    """Positions of the numeric columns."""
    return [j for j in range(len(table.names)) if table.is_numeric(j)]


@dataclass(frozen=True)
class ByColumnType:
    """Encode numeric columns as bins and all other columns as levels, like a `ColumnTransformer` of two encoders.

    The encoded columns are integer codes, one column for each column of the table, in the order of the table; -1 for a
    missing value and for a level that did not occur in training.

    Parameters
    ----------
    numbers : Encoder, default=KMeansBins()
        Encoder of the columns that ``binned`` returns.
    others : Encoder, default=Levels()
        Encoder of all other columns.
    binned : callable, default=numeric_columns
        Function of the summary of a table that returns the positions of the columns to bin.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.encoders import QuantileBins
    >>> X, y = [[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> NaiveBayes(discretize=QuantileBins(2)).fit(X, y).predict([[5.5]])  # bins inside a ByColumnType
    array([1])
    """

    numbers: Encoder = field(default_factory=KMeansBins)
    others: Encoder = field(default_factory=Levels)
    binned: Callable[[TableSummary], Sequence[int]] = numeric_columns
    indices: tuple[int, ...] = ()
    parts: tuple[Encoder, ...] = ()
    """The fitted encoders; one that would have no columns is left out."""
    places: tuple[tuple[int, ...], ...] = ()
    """Positions of the columns of each part among all encoded columns."""
    sides: tuple[int, ...] = ()
    """For each part 0 if it is the encoder of binned columns, 1 if it is that of the others."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> ByColumnType:
        binned = set(self.binned(summary))
        places = [tuple(p for p, j in enumerate(indices) if (j not in binned) == side) for side in (0, 1)]
        sides = tuple(side for side in (0, 1) if places[side])
        encoders = self.numbers, self.others
        parts = tuple(encoders[side].fit(summary, [indices[p] for p in places[side]]) for side in sides)
        part_places = tuple(places[side] for side in sides)
        return replace(self, indices=tuple(indices), parts=parts, places=part_places, sides=sides)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        are_sides = self.sides in ((), (0,), (1,), (0, 1))
        verify.require(are_sides, f"sides must be among 0 and 1, got {self.sides}")
        for name in ("parts", "places"):
            verify.require_length(name, getattr(self, name), len(self.sides))
        is_complete = sorted(chain.from_iterable(self.places)) == list(range(len(self.indices)))
        verify.require(is_complete, "places must contain each column of the encoder once")
        for part, places in zip(self.parts, self.places, strict=True):
            verify.require(len(places) > 0, "a part of the encoder has no columns")
            verify_nested(part, tuple(self.indices[place] for place in places), is_codes=True)

    def by_side(self, names: tuple[str, str]) -> Iterator[tuple[str, Encoder, tuple[int, ...]]]:
        """Name, fitted encoder and column positions of each part; ``names`` of the binned columns and of the others."""
        for side, part, places in zip(self.sides, self.parts, self.places, strict=True):
            yield names[side], part, places

    def _in_order(self, by_part: Iterable[Iterable[Any]]) -> list[Any]:
        """Items of each part, one for each of its columns, in the order of all columns."""
        items: dict[int, Any] = {}
        for places, part_items in zip(self.places, by_part, strict=True):
            items |= zip(places, part_items, strict=True)
        return [items[place] for place in range(len(self.indices))]

    def encode(self, table: Table) -> Array:
        encoded = [part.encode(table) for part in self.parts]
        if len(encoded) == 1:
            return encoded[0]
        codes: Array = np.empty((table.n, len(self.indices)), dtype=np.result_type(*encoded))
        for places, part_codes in zip(self.places, encoded, strict=True):
            codes[:, list(places)] = part_codes
        return codes

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        pairs = zip(self.parts, self.places, strict=True)
        return self._in_order([part.decode(encoded[:, list(places)], rng) for part, places in pairs])

    @property
    def _levels(self) -> list[tuple[int, ...]]:
        """Number of levels of the columns of each part."""
        return [part.layout()["levels"] for part in self.parts]

    def layout(self) -> Mapping[str, Any]:
        layouts, volumes = [part.layout() for part in self.parts], []
        for layout, levels in zip(layouts, self._levels, strict=True):
            volume = layout.get("log_volume", np.zeros(sum(levels)))
            volumes.append(np.split(volume, np.cumsum(levels)[:-1]))
        ordered = [layout.get("ordered", (0,) * len(layout["levels"])) for layout in layouts]
        sizes = {"levels": tuple(self._in_order(self._levels)), "ordered": tuple(self._in_order(ordered))}
        return {**sizes, "log_volume": np.concatenate(self._in_order(volumes))}

    def _joined(self, by_part: Sequence[NewCodes]) -> NewCodes:
        """The new codes of all columns, from those of each part."""
        if all(codes is None for codes in by_part):
            return None
        unchanged = [[np.arange(size) for size in levels] for levels in self._levels]
        pairs = zip(by_part, unchanged, strict=True)
        return self._in_order([same if codes is None else codes for codes, same in pairs])

    def extend(self, table: Table) -> tuple[ByColumnType, NewCodes]:
        pairs = [part.extend(table) for part in self.parts]
        extended = replace(self, parts=tuple(part for part, _ in pairs))
        return extended, self._joined([codes for _, codes in pairs])

    def unite(self, other: ByColumnType) -> tuple[ByColumnType, NewCodes, NewCodes]:
        triples = [ours.unite(theirs) for ours, theirs in zip(self.parts, other.parts, strict=True)]
        united = replace(self, parts=tuple(part for part, _, _ in triples))
        our_codes = self._joined([codes for _, codes, _ in triples])
        return united, our_codes, other._joined([codes for _, _, codes in triples])

    def restricted_to(self, counts: Array) -> tuple[ByColumnType, NewCodes]:
        by_column = np.split(counts, np.cumsum(self._in_order(self._levels))[:-1])
        sides = zip(self.parts, self.places, strict=True)
        pairs = [part.restricted_to(np.concatenate([by_column[p] for p in places])) for part, places in sides]
        restricted = replace(self, parts=tuple(part for part, _ in pairs))
        return restricted, self._joined([codes for _, codes in pairs])

    @property
    def data_dependence(self) -> str:
        return next((part.data_dependence for part in self.parts if part.data_dependence), "")

    def remarks(self) -> list[str]:
        pairs = zip(self.parts, self.places, strict=True)
        return self._in_order(remarks_of(part, len(places)) for part, places in pairs)


# -- Missing values as a level of their own, for columns in which it matters whether a value is missing ------


@dataclass(frozen=True)
class MissingAsLevel:
    """Codes of another encoder, with one more code, the last one, for missing values.

    The encoded columns are integer codes, one column for each column of the table. Only columns with enough missing
    values in training get the additional code, and none that is derived from another one, so that a missing date counts
    once; in other columns a missing value has code -1 and is ignored. A column without any known value in training has the
    code for missing values alone.

    Parameters
    ----------
    inner : Encoder, default=ByColumnType()
        An encoder of codes, such as bins, levels, or both (`ByColumnType`).
    least_rows : int, default=1
        Number of training rows with a missing value from which on a column gets the additional code.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.encoders import Levels
    >>> from calibayes.families import Categorical
    >>> families = [("colors", Categorical(1.0), every, MissingAsLevel(Levels()))]
    >>> GenerativeClassifier(families=families).fit([["red"], ["blue"], [None], [None]], [0, 0, 1, 1]).predict([[None]])
    array([1])
    """

    inner: Encoder = field(default_factory=ByColumnType)
    least_rows: int = 1
    indices: tuple[int, ...] = ()
    inner_places: tuple[int, ...] = ()
    """Positions, among the encoded columns, of those with a known value: the columns of the inner encoder."""
    has_missing: tuple[bool, ...] = ()
    """Whether each column has the additional code."""
    missing_is_coded: bool = True
    """Whether missing values get their own code; if not, they have code -1 in all columns."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> MissingAsLevel:
        least = self.least_rows * summary.unit
        all_missing = [summary.missing_rows(j) == summary.n for j in indices]
        inner_places = tuple(place for place, is_empty in enumerate(all_missing) if not is_empty)
        inner_indices = [indices[place] for place in inner_places]
        inner = self.inner.fit(summary, inner_indices) if inner_indices else self.inner
        has_missing = tuple(
            is_empty or (reaches(summary.missing_weight(j), least) and not summary.is_derived(j))
            for j, is_empty in zip(indices, all_missing, strict=True)
        )
        fitted = replace(self, inner=inner, indices=tuple(indices))
        return replace(fitted, inner_places=inner_places, has_missing=has_missing)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        verify.require_columns("indices", self.indices)
        verify.require_length("has_missing", self.has_missing, len(self.indices))
        verify.require_positions("inner_places", self.inner_places, len(self.indices))
        verify.require_ascending("inner_places", np.array(self.inner_places))
        all_missing = set(range(len(self.indices))) - set(self.inner_places)
        have_codes = all(self.has_missing[place] for place in all_missing)
        verify.require(have_codes, "a column without levels must have a code for missing values")
        if self.inner_places:
            verify_nested(self.inner, tuple(self.indices[p] for p in self.inner_places), is_codes=True)

    def with_missing_unknown(self) -> MissingAsLevel:
        """The same encoder with missing values as unknown (code -1), for rows whose missing values are to be imputed."""
        return replace(self, missing_is_coded=False)

    @property
    def _inner_sizes(self) -> Array:
        """Number of codes of each column without that for missing values, (d,)."""
        sizes = np.zeros(len(self.indices), dtype=np.intp)
        if self.inner_places:
            sizes[list(self.inner_places)] = self.inner.layout()["levels"]
        return sizes

    def encode(self, table: Table) -> Array:
        kind = code_type(int(max(self._inner_sizes, default=0)) + 1)
        codes: Array = np.full((table.n, len(self.indices)), -1, dtype=kind)
        if self.inner_places:
            codes[:, list(self.inner_places)] = self.inner.encode(table)
        columns = zip(self.indices, self._inner_sizes, self.has_missing, strict=True)
        for place, (j, size, has_missing) in enumerate(columns):
            if has_missing and self.missing_is_coded:
                codes[table.missing_mask(j), place] = size
        return codes

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        sizes = self._inner_sizes
        columns: list[Array] = [np.full(len(encoded), np.nan) for _ in self.indices]
        if self.inner_places:
            inner_codes = np.minimum(np.maximum(encoded, 0), np.maximum(sizes - 1, 0))
            decoded = self.inner.decode(inner_codes[:, list(self.inner_places)], rng)
            for place, column in zip(self.inner_places, decoded, strict=True):
                columns[place] = column
        triples = zip(columns, encoded.T, sizes, strict=True)
        return [_with_missing(column, codes == size) for column, codes, size in triples]

    def layout(self) -> Mapping[str, Any]:
        inner = self.inner.layout() if self.inner_places else {"levels": ()}
        sizes, ordered = self._inner_sizes, np.zeros(len(self.indices), dtype=np.intp)
        ordered[list(self.inner_places)] = inner.get("ordered", 0)
        inner_volume = inner.get("log_volume", np.zeros(int(sizes.sum())))
        pairs = zip(np.split(inner_volume, np.cumsum(sizes)[:-1]), self.has_missing, strict=True)
        volume = np.concatenate([np.append(part, np.zeros(int(has_missing))) for part, has_missing in pairs])
        levels = tuple(int(size) for size in sizes + np.array(self.has_missing))
        in_order = tuple(int(size) for size in ordered)
        return {"levels": levels, "ordered": in_order, "log_volume": volume, "gappy": self.has_missing}

    def _with_missing_code(self, inner_codes: NewCodes, changed: MissingAsLevel) -> NewCodes:
        """New codes of all columns in a changed encoder: the code for missing values stays the last one."""
        if inner_codes is None:
            return None
        by_place = dict(zip(self.inner_places, inner_codes, strict=True))
        columns = zip(self._inner_sizes, changed._inner_sizes, self.has_missing, strict=True)
        return [
            np.append(by_place.get(place, np.arange(old)), np.full(int(has_missing), new))
            for place, (old, new, has_missing) in enumerate(columns)
        ]

    def extend(self, table: Table) -> tuple[MissingAsLevel, NewCodes]:
        inner, codes = self.inner.extend(table) if self.inner_places else (self.inner, None)
        extended = replace(self, inner=inner)
        return extended, self._with_missing_code(codes, extended)

    def restricted_to(self, counts: Array) -> tuple[MissingAsLevel, NewCodes]:
        if not self.inner_places:
            return self, None
        by_column = np.split(counts, np.cumsum(self.layout()["levels"])[:-1])
        inner_counts = [by_column[place][: self._inner_sizes[place]] for place in self.inner_places]
        inner, codes = self.inner.restricted_to(np.concatenate(inner_counts))
        restricted = replace(self, inner=inner)
        return restricted, self._with_missing_code(codes, restricted)

    def unite(self, other: MissingAsLevel) -> tuple[MissingAsLevel, NewCodes, NewCodes]:
        if (self.inner_places, self.has_missing) != (other.inner_places, other.has_missing):
            raise ValueError("models with missing values in different columns cannot be merged")
        inner, ours, theirs = self.inner.unite(other.inner) if self.inner_places else (self.inner, None, None)
        united = replace(self, inner=inner)
        return united, self._with_missing_code(ours, united), other._with_missing_code(theirs, united)

    @property
    def data_dependence(self) -> str:
        return self.inner.data_dependence or "columns with missing values are found in the training rows"

    def remarks(self) -> list[str]:
        if not self.inner_places:
            return ["all missing"] * len(self.indices)
        inner = remarks_of(self.inner, len(self.inner_places))
        by_place = dict(zip(self.inner_places, inner, strict=True))
        return [by_place.get(place, "all missing") for place in range(len(self.indices))]


def _with_missing(column: Array, missing: Array) -> Array:
    """A column with missing values at a mask: NaN among numbers, None among others."""
    if not missing.any():
        return column
    if column.dtype.kind in "fiu":
        return np.where(missing, np.nan, column)
    objects = column.astype(object)
    objects[missing] = None
    return objects
