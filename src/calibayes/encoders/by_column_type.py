"""Columns of mixed types as codes: bins for numeric columns, levels for all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_length
from calibayes.encoders.bins import KMeansBins
from calibayes.encoders.encoder import Encoder, HasRemarks, NewCodes, verify_nested
from calibayes.encoders.levels import Levels
from calibayes.tables.summary import TableSummary
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
        parts = tuple(
            (self.numbers, self.others)[side].fit(summary, [indices[p] for p in places[side]])
            for side in sides
        )
        part_places = tuple(places[side] for side in sides)
        return replace(self, indices=tuple(indices), parts=parts, places=part_places, sides=sides)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        require(self.sides in ((), (0,), (1,), (0, 1)), f"sides must be among 0 and 1, got {self.sides}")
        for name in ("parts", "places"):
            require_length(name, getattr(self, name), len(self.sides))
        together = sorted(place for places in self.places for place in places)
        require(
            together == list(range(len(self.indices))), "places must contain each column of the encoder once"
        )
        for part, places in zip(self.parts, self.places, strict=True):
            require(len(places) > 0, "a part of the encoder has no columns")
            verify_nested(part, tuple(self.indices[place] for place in places), is_codes=True)

    def by_side(self, names: tuple[str, str]) -> Iterator[tuple[str, Encoder, tuple[int, ...]]]:
        """Name, fitted encoder and column positions of each part; ``names`` of the binned columns and of the others."""
        for side, part, places in zip(self.sides, self.parts, self.places, strict=True):
            yield names[side], part, places

    def _in_order(self, by_part: Iterable[Iterable[Any]]) -> list[Any]:
        """Items of each part, one for each of its columns, in the order of all columns."""
        items = {
            place: item
            for places, part_items in zip(self.places, by_part, strict=True)
            for place, item in zip(places, part_items, strict=True)
        }
        return [items[place] for place in range(len(self.indices))]

    def encode(self, table: Table) -> Array:
        return np.stack(self._in_order([part.encode(table).T for part in self.parts]), axis=1)

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
        return {
            "levels": tuple(self._in_order(self._levels)),
            "ordered": tuple(self._in_order(ordered)),
            "log_volume": np.concatenate(self._in_order(volumes)),
        }

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
        levels = self._in_order(self._levels)
        by_column = np.split(counts, np.cumsum(levels)[:-1])
        pairs = [
            part.restricted_to(np.concatenate([by_column[place] for place in places]))
            for part, places in zip(self.parts, self.places, strict=True)
        ]
        restricted = replace(self, parts=tuple(part for part, _ in pairs))
        return restricted, self._joined([codes for _, codes in pairs])

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
