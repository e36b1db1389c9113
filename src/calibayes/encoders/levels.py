"""Columns of values as codes of levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import counted, refuse_empty
from calibayes.encoders.pooling import Pooling
from calibayes.kernels.levels.codes import as_codes, code_type, codes_and_maxima
from calibayes.kernels.levels.counts import offsets, weighted_counts
from calibayes.kernels.numbers.sparse import is_sparse
from calibayes.kernels.threads import map_row_ranges
from calibayes.tables.read import Table, missing

MOST_COUNTED = 2**16
"""Whole numbers up to this are sorted by counting them."""
ROWS = 2048
"""Rows whose levels are looked for at a time."""
MOST_LISTED = 64
"""Columns of the largest such numbers that are counted all at once."""
MOST_FILLED = 1000
"""Most levels that never occur; whole numbers with more gaps than that are plain values."""


@dataclass(frozen=True)
class Levels:
    """Every distinct value is a level; a value that was not there in training is no level (code -1).

    Whole numbers from 0 on keep their own value as code, so that levels between them that never occur count too, as in
    scikit-learn; ``at_least`` adds more of those.

    Levels seen fewer than ``rare`` times (by weight), or beyond the ``most`` most frequent ones, become one level,
    "other". Where a column has it, values that were not there in training belong to it too; its levels are then those
    that occur. The first table settles which levels stay; with pooling on, new levels of later ones go to "other".
    Sampled, it becomes any of the values in it.
    """

    at_least: int | Sequence[int] | None = None
    rare: float = 0.0
    most: int | None = None
    indices: tuple[int, ...] = ()
    seen: tuple[Array, ...] = ()
    """Distinct values of each column that are levels of their own, ascending."""
    pooled: tuple[Array, ...] = ()
    """Distinct values of each column that are "other", ascending; none: there is no such level."""

    @property
    def pooling(self) -> Pooling:
        return Pooling(self.rare, self.most)

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Levels:
        weighed = weight if self.pooling.on else None
        found = _masses_of_whole(table, indices, weighed) or _masses(table, indices, weight)
        kept = [self.pooling.kept(mass) for _, mass in found]
        return replace(
            self,
            indices=tuple(indices),
            seen=tuple(values[stays] for (values, _), stays in zip(found, kept, strict=True)),
            pooled=tuple(values[~stays] for (values, _), stays in zip(found, kept, strict=True)),
        )

    @cached_property
    def levels(self) -> tuple[Array, ...]:
        """The levels of each column, in the order of their codes."""
        least = np.asarray(0 if self.at_least is None else self.at_least)
        if least.dtype.kind not in "iu" or (least < 0).any() or least.shape not in ((), (len(self.indices),)):
            raise ValueError(
                f"the least number of levels must be whole, for all or for each column: {self.at_least!r}"
            )
        least = np.broadcast_to(least, len(self.indices))
        return tuple(
            values if len(pooled) else _filled(values, int(few))
            for values, pooled, few in zip(self.seen, self.pooled, least, strict=True)
        )

    @cached_property
    def _own_codes(self) -> bool:
        """Whether every level is its own code."""
        return all(
            len(pooled) == 0
            and (
                len(levels) == 0
                or (levels.dtype.kind in "iu" and levels[0] == 0 and levels[-1] == len(levels) - 1)
            )
            for levels, pooled in zip(self.levels, self.pooled, strict=True)
        )

    def encode(self, table: Table) -> Array:
        numbers = _whole_matrix(table, self.indices)
        if numbers is not None and self._own_codes:
            return as_codes(numbers, np.array(self.layout()["levels"], dtype=np.int64))
        return self._encode_each(table)

    def _encode_each(self, table: Table) -> Array:
        codes, kind = [], code_type(max(self.layout()["levels"], default=1))
        for j, levels, pooled in zip(self.indices, self.levels, self.pooled, strict=True):
            values, inverse = distinct_inverse(table, j)
            _same_kind(np.append(levels, pooled), values, table.names[j])
            other = len(levels) if len(pooled) else -1
            codes.append(np.append(_positions(values, levels, other), np.int32(-1)).astype(kind)[inverse])
        return np.stack(codes, axis=1)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        triples = zip(self.levels, self.pooled, encoded.T, strict=True)
        return [_drawn(levels, pooled, codes, rng) for levels, pooled, codes in triples]

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """Number of levels of each column, "other" among them."""
        return tuple(len(a) + bool(len(b)) for a, b in zip(self.levels, self.pooled, strict=True))

    def layout(self) -> Mapping[str, Any]:
        return {"levels": self._sizes}

    def extend(self, table: Table) -> tuple[Levels, Sequence[Array] | None]:
        found = [distinct(table, j) for j in self.indices]
        for j, old, new in zip(self.indices, self.seen, found, strict=True):
            _same_kind(old, new, table.names[j])
        return self._grown(
            replace(self, **(self._pooled_with(found) if self.pooling.on else self._united_with(found)))
        )

    def unite(self, other: Levels) -> tuple[Levels, Sequence[Array] | None, Sequence[Array] | None]:
        if self.pooling.on:
            raise ValueError("rare levels were pooled apart: models that pool levels cannot be added up")
        for position, old, new in zip(self.indices, self.seen, other.seen, strict=True):
            _same_kind(old, new, f"x{position}")
        grown, ours = self._grown(replace(self, **self._united_with(other.seen)))
        return grown, ours, other._grown(grown)[1]

    @property
    def data_dependence(self) -> str:
        return "rare levels are found in the training rows" if self.pooling.on else ""

    def restricted_to(self, counts: Array) -> tuple[Levels, Sequence[Array] | None]:
        edges = np.cumsum(self.layout()["levels"])[:-1]
        present = [
            np.isin(values, levels[count[: len(levels)] > 0])
            for values, levels, count in zip(self.seen, self.levels, np.split(counts, edges), strict=True)
        ]
        if all(there.all() for there in present):
            return self, None
        fewer = replace(
            self, seen=tuple(values[there] for values, there in zip(self.seen, present, strict=True))
        )
        return fewer, [_positions(old, new) for old, new in zip(self.levels, fewer.levels, strict=True)]

    def _grown(self, grown: Levels) -> tuple[Levels, Sequence[Array] | None]:
        """Another encoder that holds all levels of this one, and the new codes if any changed."""
        codes = [
            np.append(_positions(old, new), np.full(int(len(pooled) > 0), len(new), dtype=np.int32))
            for old, pooled, new in zip(self.levels, self.pooled, grown.levels, strict=True)
        ]
        same = self.layout() == grown.layout() and all(
            np.array_equal(code, np.arange(len(code))) for code in codes
        )
        return grown, None if same else codes

    def _united_with(self, found: Sequence[Array]) -> dict[str, Any]:
        return {"seen": tuple(np.union1d(old, new) for old, new in zip(self.seen, found, strict=True))}

    def _pooled_with(self, found: Sequence[Array]) -> dict[str, Any]:
        triples = zip(self.seen, self.pooled, found, strict=True)
        return {"pooled": tuple(np.union1d(pooled, np.setdiff1d(new, seen)) for seen, pooled, new in triples)}

    def remarks(self) -> list[str]:
        pairs = zip(self.seen, self.pooled, strict=True)
        return [
            counted(len(seen) + len(pooled), "level")
            + (f", {len(pooled)} pooled as other" if len(pooled) else "")
            for seen, pooled in pairs
        ]


def _whole_matrix(table: Table, indices: Sequence[int]) -> Array | None:
    """The columns as one array of whole numbers, where they are that."""
    if isinstance(table.content, tuple) or is_sparse(table.content) or table.content.dtype.kind not in "iu":
        return None
    return table.matrix(indices)


def _masses_of_whole(
    table: Table, indices: Sequence[int], weight: Array | None
) -> list[tuple[Array, Array]] | None:
    """`_masses`, of whole numbers from 0 on that are small enough to be counted; without weights it is some mass."""
    numbers = _whole_matrix(table, indices)
    found = None if numbers is None or not len(numbers) else codes_and_maxima(numbers)
    if found is None or found[1].sum() > MOST_COUNTED * MOST_LISTED:
        return None
    codes, first = found[0], offsets(tuple((found[1] + 1).tolist()))
    some = _some_mass(codes, first)
    mass = some if weight is None else _mass(codes, weight, first)
    pairs = zip(np.split(some > 0, first[1:-1]), np.split(mass, first[1:-1]), strict=True)
    return [(np.flatnonzero(there), own[there]) for there, own in pairs]


def _some_mass(codes: Array, first: Array) -> Array:
    """How often each cell occurs, (cells,), in as many rows as it takes until all do, or in all rows."""
    total = np.zeros(first[-1])
    for start in range(0, len(codes), ROWS):
        rows = codes[start : start + ROWS]
        total += weighted_counts(rows, np.ones((len(rows), 1)), first)[0]
        if (total > 0).all():
            break
    return total


def _mass(codes: Array, weight: Array, first: Array) -> Array:
    """Weight of each cell, (cells,)."""

    def of(rows: slice) -> Array:
        return weighted_counts(codes[rows], weight[rows, None], first)[0]

    return np.sum(map_row_ranges(of, len(codes), codes[:1].nbytes), axis=0)


def _masses(table: Table, indices: Sequence[int], weight: Array) -> list[tuple[Array, Array]]:
    """Distinct values of each column, ascending, and the weight of the rows that have them."""
    absent = np.stack([table.absent(j) for j in indices], axis=1)
    refuse_empty(table, indices, absent)
    found = [distinct_inverse(table, j) for j in indices]
    return [(values, np.bincount(row, weight, len(values) + 1)[:-1]) for values, row in found]


def _drawn(levels: Array, pooled: Array, codes: Array, rng: np.random.Generator | None) -> Array:
    """The levels of codes, and any of the pooled values for the code behind them; without a generator the first."""
    if not len(pooled) or rng is None:
        return np.asarray(np.append(levels, pooled[:1])[codes])
    values, own = np.append(levels, pooled), len(levels)
    return np.asarray(values[np.where(codes < own, codes, own + rng.integers(len(pooled), size=len(codes)))])


def _same_kind(levels: Array, values: Array, name: str) -> None:
    """A column whose values are all of another kind than its levels is not the same column."""
    kinds = [{isinstance(value, str) for value in array.tolist()} for array in (levels, values)]
    if all(len(kind) == 1 for kind in kinds) and kinds[0] != kinds[1]:
        texts = "strings" if kinds[0] == {True} else "numbers"
        raise ValueError(f"column {name!r} had {texts} as levels and now has none of them")


def _filled(values: Array, at_least: int) -> Array:
    """The levels that distinct values stand for: whole numbers from 0 on with those between them."""
    if len(values) == 0:
        return values
    whole = values.dtype.kind in "iu" or (
        values.dtype.kind == "f" and bool(np.all(values == np.floor(values)))
    )
    if whole and values[0] >= 0 and values[-1] < len(values) + MOST_FILLED:
        return np.arange(max(int(values[-1]) + 1, at_least))
    return values


def _positions(values: Array, levels: Array, other: int = -1) -> Array:
    """The code of each value, ``other`` for one that is no level."""
    position = {level: code for code, level in enumerate(levels.tolist())}
    return np.array([position.get(value, other) for value in values.tolist()], dtype=np.int32)


def distinct(table: Table, j: int) -> Array:
    return distinct_inverse(table, j)[0]


def distinct_inverse(table: Table, j: int) -> tuple[Array, Array]:
    """Sorted values of a column and where each cell's value is among them; behind the last for a missing cell."""
    if j in table.found:
        return table.found[j]
    column = table.column(j)
    answer = _sorted(column, table.names[j])
    if column.dtype.kind == "O":
        table.found[j] = answer
    return answer


def _sorted(column: Array, name: str) -> tuple[Array, Array]:
    absent = missing(column)
    if absent.any():
        values, inverse = _sorted(column[~absent], name)
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
