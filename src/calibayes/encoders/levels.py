"""Columns of any type as codes of levels (categories)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_length
from calibayes.encoders.encoder import NewCodes
from calibayes.kernels.dispatch import code_type
from calibayes.kernels.level_counts import as_codes
from calibayes.tables.conversion import verify_distinct
from calibayes.tables.summary import TableSummary, reaches
from calibayes.tables.table import Table, distinct_values, integer_matrix

# -- The rule by which rare levels of a column are pooled into one level -------------------------------------


@dataclass(frozen=True)
class Pooling:
    """Which levels of a column are pooled into one level, "other".

    Parameters
    ----------
    rare : float, default=0
        Levels with a smaller total weight (fewer rows) than this are pooled.
    most : int, optional
        Number of most frequent levels that are not pooled; of levels with equal weight the first in sorted order stay.
    """

    rare: float = 0.0
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.rare >= 0 or (self.most is not None and self.most < 1):
            raise ValueError(
                "to pool levels, rare must be at least 0 and most at least 1 (or None), "
                f"got rare={self.rare}, most={self.most}"
            )

    @property
    def is_active(self) -> bool:
        """Whether any level may be pooled."""
        return self.rare > 0 or self.most is not None

    def unpooled(self, weights: Array) -> Array:
        """Which levels, of these total weights (levels,), are not pooled, (levels,) booleans."""
        if not self.is_active:
            return np.ones(len(weights), dtype=bool)
        is_frequent = np.zeros(len(weights), dtype=bool)
        is_frequent[np.argsort(-weights, kind="stable")[: self.most]] = True
        return is_frequent & reaches(weights, self.rare)


# -- Columns of any type as codes of levels (categories) -----------------------------------------------------

MOST_UNUSED = 1000
"""Largest number of integers below the maximum of a column that do not occur and still become levels."""
MOST_ADDED = 2**24
"""Largest number of levels that ``at_least`` may add to those of all columns of an encoder from a model file."""


@dataclass(frozen=True)
class Levels:
    """Each distinct value of a column is a level; its code is its position in sorted order.

    A missing value, and a value that did not occur in training, has code -1. Non-negative integers are their own codes,
    so that integers between them that do not occur are levels too, as in scikit-learn's `CategoricalNB`.

    Levels can be pooled into one level "other", whose code is the last one. In a column with pooled levels, values that
    did not occur in training are "other" too, and integers that do not occur are no levels. Which levels are pooled is
    decided by `fit`; `extend` adds new values to "other". Decoded, "other" becomes any of the pooled values.

    Parameters
    ----------
    at_least : int or sequence of int, optional
        Least number of levels of integer columns: of all, or of each.
    rare : float, default=0
        Levels with a smaller total weight (fewer rows) than this are pooled.
    most : int, optional
        Number of most frequent levels of a column that are not pooled.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Categorical
    >>> X, y = [["red"], ["red"], ["blue"], ["green"]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("colors", Categorical(1.0), every, Levels(most=2))]).fit(X, y).predict([["green"]])
    array([1])
    """

    at_least: int | Sequence[int] | None = None
    rare: float = 0.0
    most: int | None = None
    indices: tuple[int, ...] = ()
    unpooled: tuple[Array, ...] = ()
    """Distinct values of each column that have a level of their own, ascending."""
    pooled: tuple[Array, ...] = ()
    """Distinct values of each column that are pooled, ascending; if there are none, there is no level "other"."""

    @property
    def pooling(self) -> Pooling:
        """The rule that `rare` and `most` make."""
        return Pooling(self.rare, self.most)

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Levels:
        columns = summary.levels(indices, weights_needed=self.pooling.is_active)
        pairs = [(values, self.pooling.unpooled(weights)) for values, weights in columns]
        unpooled, pooled = tuple(v[mask] for v, mask in pairs), tuple(v[~mask] for v, mask in pairs)
        return replace(self, indices=tuple(indices), unpooled=unpooled, pooled=pooled)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        for name in ("unpooled", "pooled"):
            require_length(name, getattr(self, name), len(self.indices))
        for unpooled, pooled in zip(self.unpooled, self.pooled, strict=True):
            verify_distinct("unpooled", unpooled)
            verify_distinct("pooled", pooled)
            require(_have_common_type(unpooled, pooled), "levels and pooled levels are of different types")
            is_active = self.pooling.is_active
            require(is_active or not len(pooled), "levels are pooled without a rule to pool them")
            in_both = set(unpooled.tolist()) & set(pooled.tolist())
            require(not in_both, f"level {next(iter(in_both), None)!r} is both pooled and not pooled")
        if self.indices:
            seen = np.array([len(values) for values in self.unpooled], dtype=np.float64)
            added = np.maximum(self._least_sizes() - seen - MOST_UNUSED, 0.0).sum()
            require(bool(added <= MOST_ADDED), f"at_least would add {added:g} levels, more than {MOST_ADDED}")

    def _least_sizes(self) -> Array:
        """The least number of levels of each column, (d,)."""
        least = np.asarray(0 if self.at_least is None else self.at_least)
        if least.dtype.kind not in "iu" or (least < 0).any() or least.shape not in ((), (len(self.indices),)):
            raise ValueError(
                f"'min_categories' should have shape ({len(self.indices)},), a least number of levels for each column, "
                f"or be one number for all of them, a whole one from 0 on; got {self.at_least!r}"
            )
        return np.broadcast_to(least, len(self.indices))

    @cached_property
    def levels(self) -> tuple[Array, ...]:
        """The levels of each column in the order of their codes, without "other"."""
        columns = zip(self.unpooled, self.pooled, self._least_sizes(), strict=True)
        return tuple(
            v if len(pooled) else _with_unused_integers(v, int(least)) for v, pooled, least in columns
        )

    def code_weights(self, summary: TableSummary) -> list[Array]:
        """For each column the total weight of the rows of each code, (levels,)."""
        distinct = summary.levels(self.indices, weights_needed=True)
        columns = zip(distinct, self.levels, self.pooled, strict=True)
        return [_weights_by_code(*column, levels, pooled) for column, levels, pooled in columns]

    @cached_property
    def _values_are_codes(self) -> bool:
        """Whether the levels of every column are the integers 0, 1, ..., so that each value is its code."""
        return not any(map(len, self.pooled)) and all(
            not len(levels)
            or (levels.dtype.kind in "iu" and levels[0] == 0 and levels[-1] == len(levels) - 1)
            for levels in self.levels  # ascending and distinct
        )

    def encode(self, table: Table) -> Array:
        integers = integer_matrix(table, self.indices)
        if integers is not None and self._values_are_codes:
            return as_codes(integers, np.array(self.layout()["levels"], dtype=np.int64))
        columns, dtype = [], code_type(max(self.layout()["levels"], default=1))
        for j, levels, pooled in zip(self.indices, self.levels, self.pooled, strict=True):
            values, positions = distinct_values(table, j)
            _refuse_other_type(np.append(levels, pooled), values, table.names[j])
            other = len(levels) if len(pooled) else -1
            codes = np.append(_codes_of(values, levels, other), np.int32(-1)).astype(dtype)
            columns.append(codes[positions])
        return np.stack(columns, axis=1)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        triples = zip(self.levels, self.pooled, encoded.T, strict=True)
        return [_decoded(levels, pooled, codes, rng) for levels, pooled, codes in triples]

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """Number of levels of each column, with "other"."""
        pairs = zip(self.levels, self.pooled, strict=True)
        return tuple(len(levels) + bool(len(pooled)) for levels, pooled in pairs)

    def layout(self) -> Mapping[str, Any]:
        return {"levels": self._sizes}

    def extend(self, table: Table) -> tuple[Levels, NewCodes]:
        columns = [distinct_values(table, j)[0] for j in self.indices]
        for j, old, new in zip(self.indices, self.unpooled, columns, strict=True):
            _refuse_other_type(old, new, table.names[j])
        extended = self._with_pooled(columns) if self.pooling.is_active else self._with_unpooled(columns)
        return extended, self._codes_in(extended)

    def unite(self, other: Levels) -> tuple[Levels, NewCodes, NewCodes]:
        if self.pooling.is_active:
            raise ValueError(
                "models that pool rare levels cannot be merged: each was fitted with pooled levels of its own"
            )
        for position, old, new in zip(self.indices, self.unpooled, other.unpooled, strict=True):
            _refuse_other_type(old, new, f"x{position}")
        united = self._with_unpooled(other.unpooled)
        return united, self._codes_in(united), other._codes_in(united)

    @property
    def data_dependence(self) -> str:
        return "pooled levels are found in the training rows" if self.pooling.is_active else ""

    def restricted_to(self, counts: Array) -> tuple[Levels, NewCodes]:
        by_column = np.split(counts, np.cumsum(self.layout()["levels"])[:-1])
        columns = zip(self.unpooled, self.levels, by_column, strict=True)
        present = [np.isin(values, levels[count[: len(levels)] > 0]) for values, levels, count in columns]
        if all(mask.all() for mask in present):
            return self, None
        unpooled = tuple(values[mask] for values, mask in zip(self.unpooled, present, strict=True))
        restricted = replace(self, unpooled=unpooled)
        pairs = zip(self.levels, restricted.levels, strict=True)
        return restricted, [_codes_of(old, new) for old, new in pairs]

    def is_kept_unseen(self, column: int) -> Array:
        """For each level of a column whether it would be a level if only its own rows were missing, (levels,) booleans.

        An integer below the largest one would; text and other numbers would not.
        """
        values, levels, at_least = self.unpooled[column], self.levels[column], self._least_sizes()[column]
        if not _are_codes(levels):
            return np.zeros(len(levels), dtype=bool)
        below, most = values[:-1], len(values) - 1 + MOST_UNUSED
        kept = np.full(len(levels), bool(values[-1] < most))
        kept[int(values[-1])] = len(below) > 0 and below[-1] < most and values[-1] < at_least
        return kept

    def _codes_in(self, larger: Levels) -> NewCodes:
        """The codes of these levels in an encoder that has all of them."""
        codes = [
            np.append(_codes_of(old, new), np.full(int(len(pooled) > 0), len(new), dtype=np.int32))
            for old, pooled, new in zip(self.levels, self.pooled, larger.levels, strict=True)
        ]
        return None if self.layout() == larger.layout() and all(map(_are_codes, codes)) else codes

    def _with_unpooled(self, columns: Sequence[Array]) -> Levels:
        """This encoder with the given values of each column as further levels."""
        pairs = zip(self.unpooled, columns, strict=True)
        return replace(self, unpooled=tuple(np.union1d(old, new) for old, new in pairs))

    def _with_pooled(self, columns: Sequence[Array]) -> Levels:
        """This encoder with the given values of each column, where they are not levels yet, as pooled ones."""
        triples = zip(self.unpooled, self.pooled, columns, strict=True)
        pooled = tuple(np.union1d(pooled, np.setdiff1d(new, old)) for old, pooled, new in triples)
        return replace(self, pooled=pooled)

    def remarks(self) -> list[str]:
        notes = (f", {len(pooled)} pooled as other" if len(pooled) else "" for pooled in self.pooled)
        columns = zip(self.unpooled, self.pooled, notes, strict=True)
        return [counted(len(unpooled) + len(pooled), "level") + note for unpooled, pooled, note in columns]


def _are_codes(levels: Array) -> bool:
    """Whether levels are the integers 0, 1, ..., each its own code."""
    return levels.dtype.kind in "iu" and np.array_equal(levels, np.arange(len(levels)))


def _weights_by_code(values: Array, weights: Array, levels: Array, pooled: Array) -> Array:
    """Total weights of codes from those of distinct values."""
    other = len(levels)
    return np.bincount(_codes_of(values, levels, other), weights, other + 1)[: other + bool(len(pooled))]


def _have_common_type(unpooled: Array, pooled: Array) -> bool:
    """Whether values can be in one array."""
    try:
        np.result_type(unpooled, pooled)
    except TypeError:
        return False
    return True


def _decoded(levels: Array, pooled: Array, codes: Array, rng: np.random.Generator | None) -> Array:
    """The levels of codes; for the code of "other" a random pooled value, or the first one without a generator."""
    if not len(pooled) or rng is None:
        return np.asarray(np.append(levels, pooled[:1])[codes])
    values, other = np.append(levels, pooled), len(levels)
    drawn = other + rng.integers(len(pooled), size=len(codes))
    return np.asarray(values[np.where(codes < other, codes, drawn)])


def _refuse_other_type(levels: Array, values: Array, name: str) -> None:
    """Raise ValueError if all levels are strings and no value is, or the reverse: the columns must have changed."""
    types = [{isinstance(value, str) for value in array.tolist()} for array in (levels, values)]
    if all(len(kinds) == 1 for kinds in types) and types[0] != types[1]:
        old, new = ("strings", "numbers") if types[0] == {True} else ("numbers", "strings")
        raise ValueError(f"column {name!r} had {old} as levels in training and now has {new}")


def _with_unused_integers(values: Array, at_least: int) -> Array:
    """The levels of distinct values: non-negative integers with all smaller ones, other values unchanged."""
    if len(values) == 0:
        return values
    kind = values.dtype.kind
    is_integer = kind in "iu" or (kind == "f" and bool(np.all(values == np.floor(values))))
    if is_integer and values[0] >= 0 and values[-1] < len(values) + MOST_UNUSED:
        return np.arange(max(int(values[-1]) + 1, at_least))
    return values


def _codes_of(values: Array, levels: Array, other: int = -1) -> Array:
    """The position of each value among the levels, ``other`` for a value that is none of them."""
    if {values.dtype.kind, levels.dtype.kind} in (
        {"i", "f"},
        {"u", "f"},
    ):  # integers were floats beside a missing value
        values, levels = values.astype(np.float64), levels.astype(np.float64)
    positions = {level: code for code, level in enumerate(levels.tolist())}
    return np.array([positions.get(value, other) for value in values.tolist()], dtype=np.int32)
