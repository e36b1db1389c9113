"""Cells for what is missing: that a value is not there may say as much as the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.by_column_type import ByColumnType
from calibayes.encoders.numbers import Encoder, HasRemarks
from calibayes.tables.read import Table

Codes = Sequence[Array] | None


@dataclass(frozen=True)
class MissingAsLevel:
    """Codes of another encoder, with one more cell, in no order with the others, for what is missing in a column.

    A column that was complete in training has none: there a missing cell says nothing. A column with no known cell has
    that cell alone.

    Parameters
    ----------
    inner : Encoder
        Of codes, such as bins, levels, or both (`ByColumnType`).
    """

    inner: Encoder = field(default_factory=ByColumnType)
    indices: tuple[int, ...] = ()
    known: tuple[int, ...] = ()
    """Places of the columns that the inner encoder has."""
    gappy: tuple[bool, ...] = ()
    told: bool = True
    """Whether missing cells go to their own cell, or are left open."""

    def fit(
        self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None
    ) -> MissingAsLevel:
        absent = [table.absent(j) for j in indices]
        known = tuple(place for place, gone in enumerate(absent) if not gone.all())
        chosen = [indices[place] for place in known]
        inner = self.inner.fit(table, chosen, weight, codes) if chosen else self.inner
        gappy = tuple(bool(gone.any()) for gone in absent)
        return replace(self, inner=inner, indices=tuple(indices), known=known, gappy=gappy)

    def with_missing_unknown(self) -> MissingAsLevel:
        """The same with missing cells left open: for rows of which they are to be guessed."""
        return replace(self, told=False)

    @property
    def _sizes(self) -> Array:
        """Number of cells of each column that are not for what is missing."""
        sizes = np.zeros(len(self.indices), dtype=np.intp)
        if self.known:
            sizes[list(self.known)] = self.inner.layout()["levels"]
        return sizes

    def encode(self, table: Table) -> Array:
        codes = np.full((table.n, len(self.indices)), -1)
        if self.known:
            codes[:, list(self.known)] = self.inner.encode(table)
        for place, (j, size, gappy) in enumerate(zip(self.indices, self._sizes, self.gappy, strict=True)):
            if gappy and self.told:
                codes[table.absent(j), place] = size
        return codes

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        sizes, whole = self._sizes, np.maximum(encoded, 0)
        made: list[Array] = [np.full(len(encoded), np.nan) for _ in self.indices]
        if self.known:
            inside = np.minimum(whole, np.maximum(sizes - 1, 0))[:, list(self.known)]
            for place, column in zip(self.known, self.inner.decode(inside, rng), strict=True):
                made[place] = column
        return [
            _with_gaps(column, codes == size)
            for column, codes, size in zip(made, encoded.T, sizes, strict=True)
        ]

    def layout(self) -> Mapping[str, Any]:
        told = self.inner.layout() if self.known else {"levels": ()}
        levels, ordered, volumes = self._sizes, np.zeros(len(self.indices), dtype=np.intp), []
        ordered[list(self.known)] = told.get("ordered", 0)
        volume = told.get("log_volume", np.zeros(int(levels.sum())))
        own = np.split(volume, np.cumsum(levels)[:-1])
        for part, gappy in zip(own, self.gappy, strict=True):
            volumes.append(np.append(part, np.zeros(int(gappy))))
        return {
            "levels": tuple(int(size) for size in levels + np.array(self.gappy)),
            "ordered": tuple(int(size) for size in ordered),
            "log_volume": np.concatenate(volumes),
            "gappy": self.gappy,
        }

    def _moved(self, changed: Codes, grown: MissingAsLevel) -> Codes:
        """The new codes of all columns: the cell for what is missing stays the last one."""
        if changed is None:
            return None
        inner = dict(zip(self.known, changed, strict=True))
        return [
            np.append(inner.get(place, np.arange(size)), np.full(int(gappy), new))
            for place, (size, new, gappy) in enumerate(
                zip(self._sizes, grown._sizes, self.gappy, strict=True)
            )
        ]

    def extend(self, table: Table) -> tuple[MissingAsLevel, Codes]:
        inner, codes = self.inner.extend(table) if self.known else (self.inner, None)
        grown = replace(self, inner=inner)
        return grown, self._moved(codes, grown)

    def restricted_to(self, counts: Array) -> tuple[MissingAsLevel, Codes]:
        cells = np.split(counts, np.cumsum(self.layout()["levels"])[:-1])
        own = [cells[place][: self._sizes[place]] for place in self.known]
        inner, codes = self.inner.restricted_to(np.concatenate(own)) if self.known else (self.inner, None)
        fewer = replace(self, inner=inner)
        return fewer, self._moved(codes, fewer)

    def unite(self, other: MissingAsLevel) -> tuple[MissingAsLevel, Codes, Codes]:
        if (self.known, self.gappy) != (other.known, other.gappy):
            raise ValueError("the models have gaps in different columns: they cannot be added up")
        inner, ours, theirs = self.inner.unite(other.inner) if self.known else (self.inner, None, None)
        grown = replace(self, inner=inner)
        return grown, self._moved(ours, grown), other._moved(theirs, grown)

    @property
    def data_dependence(self) -> str:
        return self.inner.data_dependence or "columns with gaps are found in the training rows"

    def remarks(self) -> list[str]:
        found = dict.fromkeys(range(len(self.indices)), "nothing known")
        if isinstance(self.inner, HasRemarks) and self.known:
            found |= dict(zip(self.known, self.inner.remarks(), strict=True))
        return [found[place] for place in range(len(self.indices))]


def _with_gaps(column: Array, absent: Array) -> Array:
    if not absent.any():
        return column
    if column.dtype.kind in "fiu":
        return np.where(absent, np.nan, column)
    cells = column.astype(object)
    cells[absent] = None
    return cells
