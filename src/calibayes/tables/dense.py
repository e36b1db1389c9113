"""Columns of any kind as numbers of like size, side by side: what Gaussians over a whole table read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.weighted_quantiles import quantiles
from calibayes.tables.encode import Unshaped, numbers
from calibayes.tables.levels import Levels
from calibayes.tables.read import Table

NORMAL_QUARTILES = 1.35
"""The interquartile range of a normal density with standard deviation 1."""
FARTHEST = 1e300
"""Widths from the median beyond which numbers are all alike."""
MOST_LEVELS, LEAST_SHARE = 64, 0.005
"""Levels of a column beyond the most frequent ones, or that fewer of the rows have, share one indicator: in units of its
own deviation the indicator of a rare level is far out wherever it is not zero."""


@dataclass(frozen=True)
class Bent:
    """A column of numbers as asinh of its distance from the median: straight in the middle, logarithmic far out."""

    middle: float
    width: float

    def encode(self, table: Table, j: int) -> Array:
        values = numbers(table, [j])[:, 0].astype(np.float64)
        most = FARTHEST * float(self.width)
        away = np.clip(values - self.middle, -most, most) / self.width
        return np.nan_to_num(np.arcsinh(away), nan=0.0)[:, None]

    def named(self, name: str) -> list[str]:
        return [name]


@dataclass(frozen=True)
class Indicated:
    """A column of levels as an indicator a level; of two levels, as one."""

    levels: Levels

    def encode(self, table: Table, j: int) -> Array:
        codes = self.levels.encode(table)
        return np.asarray(codes == np.array(self._shown), dtype=np.float64)

    @property
    def _shown(self) -> list[int]:
        size = self.levels.layout()["levels"][0]
        return list(range(size)) if size != 2 else [1]

    def named(self, name: str) -> list[str]:
        told = [str(level) for level in self.levels.levels[0]] + ["other"]
        return [f"{name} = {told[code]}" for code in self._shown]


@dataclass(frozen=True)
class Gap:
    """Whether a cell is missing."""

    def encode(self, table: Table, j: int) -> Array:
        return table.absent(j).astype(np.float64)[:, None]

    def named(self, name: str) -> list[str]:
        return [f"{name} missing"]


Part = Bent | Indicated | Gap


@dataclass(frozen=True)
class Dense(Unshaped):
    """Numbers bent by asinh about their median, levels as indicators, an indicator for gaps; all with mean 0, variance 1.

    A missing cell is the median, or has no level; a column without gaps in training has no indicator for them. Columns
    that do not vary in training are left out.
    """

    indices: tuple[int, ...] = ()
    parts: tuple[tuple[int, Part], ...] = ()
    """Position of a column in the table, and how it is encoded."""
    names: tuple[str, ...] = ()
    """Of the encoded columns."""
    sources: tuple[int, ...] = ()
    """Which of the family's columns each encoded one was made of."""
    varying: Array = None
    mean: Array = None
    deviation: Array = None

    shaped = "medians and deviations are found in the training rows"

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Dense:
        return table.noted((Dense, tuple(indices)), weight, lambda: self._fitted(table, indices, weight))

    def _fitted(self, table: Table, indices: Sequence[int], weight: Array) -> Dense:
        parts = tuple((j, part) for j in indices for part in _parts(table, j, weight))
        raw = _side_by_side(table, parts)
        mean = weight @ raw / weight.sum()
        deviation = np.sqrt(weight @ (raw - mean) ** 2 / weight.sum())
        varying = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        varying[0] |= not varying.any()  # a family needs a column
        owners = [(j, name) for j, part in parts for name in part.named(table.names[j])]
        kept = [owner for owner, varies in zip(owners, varying, strict=True) if varies]
        places = {j: place for place, j in enumerate(indices)}
        return Dense(
            tuple(indices),
            parts,
            tuple(name for _, name in kept),
            tuple(places[j] for j, _ in kept),
            varying,
            mean[varying],
            np.where(deviation > 0, deviation, 1.0)[varying],
        )

    def encode(self, table: Table) -> Array:
        return table.noted(("encoded", id(self)), self, lambda: self._encoded(table))

    def _encoded(self, table: Table) -> Array:
        raw = _side_by_side(table, self.parts)[:, self.varying]
        raw -= self.mean
        raw /= self.deviation
        return raw

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError("indicators and bent numbers are not turned back into a table: sample another model")

    def layout(self) -> Mapping[str, Any]:
        d = len(self.names)
        return {"columns": self.names, "centre": np.zeros(d), "variance": np.ones(d)}

    def unite(self, other: Dense) -> tuple[Dense, None, None]:
        raise ValueError("columns that were standardised apart cannot be added up")


def _parts(table: Table, j: int, weight: Array) -> list[Part]:
    absent = table.absent(j)
    if absent.all():
        return [Gap()]
    gap: list[Part] = [Gap()] if absent.any() else []
    if not table.numeric(j):
        levels = Levels(most=MOST_LEVELS, rare=LEAST_SHARE * float(weight.sum()))
        return [Indicated(levels.fit(table, [j], weight)), *gap]
    values, own = numbers(table, [j])[~absent, 0].astype(np.float64), weight[~absent]
    low, middle, high = quantiles(values, own, (0.25, 0.5, 0.75))
    width = (high - low) / NORMAL_QUARTILES
    if not width > 0:
        width = float(np.sqrt(own @ (values - own @ values / own.sum()) ** 2 / own.sum()))
    return [Bent(middle, width if width > 0 else 1.0), *gap]


def _side_by_side(table: Table, parts: Sequence[tuple[int, Part]]) -> Array:
    return np.concatenate([part.encode(table, j) for j, part in parts], axis=1)
