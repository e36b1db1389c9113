"""Columns of several kinds as levels, side by side in the order of the table: numbers in bins, all else as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.bins import KMeansBins
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Encoder, HasRemarks
from calibayes.tables.read import Table

Codes = Sequence[Array] | None


def of_numbers(table: Table) -> list[int]:
    """The columns that hold numbers."""
    return [j for j in range(len(table.names)) if table.numeric(j)]


@dataclass(frozen=True)
class ByColumnType:
    """Two encoders over one family's columns.

    Parameters
    ----------
    numbers : Encoder
        Bins for the columns that ``binned`` names; by default those that hold numbers.
    others : Encoder
        Levels of all other columns.
    binned : function of a table that answers with positions
    """

    numbers: Encoder = field(default_factory=KMeansBins)
    others: Encoder = field(default_factory=Levels)
    binned: Callable[[Table], Sequence[int]] = of_numbers
    indices: tuple[int, ...] = ()
    parts: tuple[Encoder, ...] = ()
    """The fitted encoders, where they have columns."""
    places: tuple[tuple[int, ...], ...] = ()
    """Where the columns of each part lie among all."""
    sides: tuple[int, ...] = ()
    """0 for the part of the bins, 1 for the others."""

    def fit(
        self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None
    ) -> ByColumnType:
        binned = set(self.binned(table))
        places = [tuple(p for p, j in enumerate(indices) if (j not in binned) == side) for side in (0, 1)]
        sides = tuple(side for side in (0, 1) if places[side])
        parts = [
            (self.numbers, self.others)[side].fit(table, [indices[p] for p in places[side]], weight, codes)
            for side in sides
        ]
        kept = tuple(places[side] for side in sides)
        return replace(self, indices=tuple(indices), parts=tuple(parts), places=kept, sides=sides)

    def by_side(self, names: tuple[str, str]) -> Iterator[tuple[str, Encoder, tuple[int, ...]]]:
        """The fitted encoders under the names of the two sides, and where their columns lie among all."""
        for side, part, places in zip(self.sides, self.parts, self.places, strict=True):
            yield names[side], part, places

    def _in_order(self, by_part: Sequence[Sequence[Any]]) -> list[Any]:
        """What each part says of its columns, in the order of all columns."""
        found = {
            place: said
            for places, part in zip(self.places, by_part, strict=True)
            for place, said in zip(places, part, strict=True)
        }
        return [found[place] for place in range(len(self.indices))]

    def encode(self, table: Table) -> Array:
        return np.stack(self._in_order([part.encode(table).T for part in self.parts]), axis=1)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        pairs = zip(self.parts, self.places, strict=True)
        return self._in_order([part.decode(encoded[:, list(places)], rng) for part, places in pairs])

    @property
    def _levels(self) -> list[tuple[int, ...]]:
        return [part.layout()["levels"] for part in self.parts]

    def layout(self) -> Mapping[str, Any]:
        told, volumes = [part.layout() for part in self.parts], []
        for own, levels in zip(told, self._levels, strict=True):
            volume = own.get("log_volume", np.zeros(sum(levels)))
            volumes.append(np.split(volume, np.cumsum(levels)[:-1]))
        ordered = [own.get("ordered", (0,) * len(own["levels"])) for own in told]
        return {
            "levels": tuple(self._in_order(self._levels)),
            "ordered": tuple(self._in_order(ordered)),
            "log_volume": np.concatenate(self._in_order(volumes)),
        }

    def _moved(self, changed: Sequence[Codes]) -> Codes:
        """The new codes of all columns, where any part's have changed."""
        if all(codes is None for codes in changed):
            return None
        same = [[np.arange(size) for size in levels] for levels in self._levels]
        pairs = zip(changed, same, strict=True)
        return self._in_order([own if codes is None else codes for codes, own in pairs])

    def extend(self, table: Table) -> tuple[ByColumnType, Codes]:
        extended = [part.extend(table) for part in self.parts]
        grown = replace(self, parts=tuple(part for part, _ in extended))
        return grown, self._moved([codes for _, codes in extended])

    def unite(self, other: ByColumnType) -> tuple[ByColumnType, Codes, Codes]:
        united = [mine.unite(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True)]
        grown = replace(self, parts=tuple(part for part, _, _ in united))
        ours = self._moved([codes for _, codes, _ in united])
        return grown, ours, other._moved([codes for _, _, codes in united])

    def restricted_to(self, counts: Array) -> tuple[ByColumnType, Codes]:
        levels = self._in_order(self._levels)
        cells = np.split(counts, np.cumsum(levels)[:-1])
        pairs = zip(self.parts, self.places, strict=True)
        seen = [part.restricted_to(np.concatenate([cells[p] for p in places])) for part, places in pairs]
        return replace(self, parts=tuple(part for part, _ in seen)), self._moved([codes for _, codes in seen])

    @property
    def data_dependence(self) -> str:
        return next((part.data_dependence for part in self.parts if part.data_dependence), "")

    def remarks(self) -> list[str]:
        return self._in_order(
            [
                part.remarks() if isinstance(part, HasRemarks) else [""] * len(places)
                for part, places in zip(self.parts, self.places, strict=True)
            ]
        )
