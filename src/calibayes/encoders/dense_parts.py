"""Encodings of one type of columns each, of which `Dense` is made: scaled numbers, indicators of levels and of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_finite, require_length
from calibayes.encoders.levels import Levels
from calibayes.tables.table import Table, numeric_matrix

FARTHEST = 1e300
"""Distances from the median are clipped to this many scales (or units, if the scale exceeds 1)."""


@dataclass(frozen=True)
class AsinhScaled:
    """Numeric columns x as asinh((x - median) / scale): linear near the median, logarithmic in the tails.

    The scale is the interquartile range divided by 1.35 (the standard deviation of a normal distribution), or the
    standard deviation if the quartiles are equal. The median becomes 0, a missing value stays missing (NaN).
    """

    median: Array
    """Of each column, (d,)."""
    scale: Array
    """Of each column, (d,)."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_finite("median", self.median, (None,))
        require_finite("scale", self.scale, self.median.shape)
        require(bool((self.scale > 0).all()), "scale must be positive")

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        scaled = numeric_matrix(table, columns).astype(np.float64)
        limit = FARTHEST * np.minimum(self.scale, 1.0)  # so that the division cannot overflow
        scaled -= self.median
        np.clip(scaled, -limit, limit, out=scaled)
        scaled /= self.scale
        return np.arcsinh(scaled, out=scaled)

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        return list(enumerate(names))


@dataclass(frozen=True)
class Indicators:
    """A categorical column as one indicator (0 or 1) for each level; a column of two levels as one indicator.

    Where a level is missing, all of them are missing (NaN).
    """

    levels: Levels
    drop_first: bool = False
    """Whether the first level has no indicator."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_length("the columns of levels", self.levels.indices, 1)
        require(self.levels.layout()["levels"][0] > 0, "a column has no levels")

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        codes = self.levels.encode(table)
        encoded = np.asarray(codes == np.array(self._shown_codes), dtype=np.float64)
        encoded[table.missing_mask(columns[0])] = np.nan
        return encoded

    @property
    def _shown_codes(self) -> list[int]:
        """Codes of the levels that have an indicator."""
        size = self.levels.layout()["levels"][0]
        return list(range(1 if size == 2 or (self.drop_first and size > 1) else 0, size))

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        level_names = [str(level) for level in self.levels.levels[0]] + ["other"]
        return [(0, f"{names[0]} = {level_names[code]}") for code in self._shown_codes]


@dataclass(frozen=True)
class MissingIndicator:
    """1 where a value is missing, else 0."""

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        return np.stack([table.missing_mask(j) for j in columns], axis=1).astype(np.float64)

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        return [(place, f"{name} missing") for place, name in enumerate(names)]


Part = AsinhScaled | Indicators | MissingIndicator
"""An encoding of one type of columns."""


def verified_sources(parts: Sequence[tuple[tuple[int, ...], Part]], indices: Sequence[int]) -> list[int]:
    """The position in the table of the source of each column of the parts. Raises ValueError if parts are no encodings."""
    sources: list[int] = []
    known = set(indices)
    for columns, part in parts:
        require(
            len(columns) > 0 and known.issuperset(columns),
            "a part has no columns, or others than the encoder",
        )
        require_columns("the columns of a part", columns)
        if isinstance(part, AsinhScaled):
            require_length("median", part.median, len(columns))
        elif isinstance(part, Indicators):
            require(part.levels.indices == columns, "indicators are fitted to another column")
        else:
            require(isinstance(part, MissingIndicator), f"{type(part).__name__} is no encoding of columns")
        sources += [columns[place] for place, _ in part.named_columns([""] * len(columns))]
    return sources


def indicated_columns(parts: Sequence[tuple[tuple[int, ...], Part]]) -> list[int]:
    """Positions of the columns with an indicator of missing values."""
    return [j for columns, part in parts if isinstance(part, MissingIndicator) for j in columns]
