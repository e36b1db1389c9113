"""Columns of any kind as numbers of like size, side by side: what Gaussians over a whole table read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import DataIndependent, numbers
from calibayes.kernels.numbers.quantiles import inverse_cdf_quantile
from calibayes.tables.read import Table

NORMAL_QUARTILES = 1.35
"""The interquartile range of a normal density with standard deviation 1."""
FARTHEST = 1e300
"""Widths from the median beyond which numbers are all alike."""
CELLS = 2**18
"""Cells whose middles and widths are looked for at a time."""
MOST_LEVELS, LEAST_SHARE = 64, 0.005
"""Levels of a column beyond the most frequent ones, or that fewer of the rows have, share one indicator: in units of its
own deviation the indicator of a rare level is far out wherever it is not zero."""


@dataclass(frozen=True)
class AsinhScaled:
    """Columns of numbers as asinh of their distance from the median: straight in the middle, logarithmic far out."""

    middle: Array
    width: Array
    """One of each column."""

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        away = numbers(table, columns).astype(np.float64)
        most = FARTHEST * np.minimum(self.width, 1.0)  # no number is so large as to be beyond one of them
        away -= self.middle
        np.clip(away, -most, most, out=away)
        away /= self.width
        return np.nan_to_num(np.arcsinh(away, out=away), copy=False, nan=0.0)

    def named(self, names: Sequence[str]) -> list[tuple[int, str]]:
        return list(enumerate(names))


@dataclass(frozen=True)
class Indicators:
    """A column of levels as an indicator a level; of two levels, as one."""

    levels: Levels

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        codes = self.levels.encode(table)
        return np.asarray(codes == np.array(self._shown), dtype=np.float64)

    @property
    def _shown(self) -> list[int]:
        size = self.levels.layout()["levels"][0]
        return list(range(size)) if size != 2 else [1]

    def named(self, names: Sequence[str]) -> list[tuple[int, str]]:
        told = [str(level) for level in self.levels.levels[0]] + ["other"]
        return [(0, f"{names[0]} = {told[code]}") for code in self._shown]


@dataclass(frozen=True)
class MissingIndicator:
    """Whether cells are missing."""

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        return np.stack([table.absent(j) for j in columns], axis=1).astype(np.float64)

    def named(self, names: Sequence[str]) -> list[tuple[int, str]]:
        return [(place, f"{name} missing") for place, name in enumerate(names)]


Part = AsinhScaled | Indicators | MissingIndicator
"""Encodes columns, and says which of them each encoded one comes from, and its name."""


@dataclass(frozen=True)
class Dense(DataIndependent):
    """Numbers bent by asinh about their median, levels as indicators, an indicator for gaps; all with mean 0, variance 1.

    A missing cell is the median, or has no level; a column without gaps in training has no indicator for them. Columns
    that do not vary in training are left out.
    """

    indices: tuple[int, ...] = ()
    parts: tuple[tuple[tuple[int, ...], Part], ...] = ()
    """Positions of columns in the table, and how they are encoded."""
    names: tuple[str, ...] = ()
    """Of the encoded columns."""
    sources: tuple[int, ...] = ()
    """Which of the family's columns each encoded one was made of."""
    varying: Array = None
    mean: Array = None
    deviation: Array = None

    data_dependence = "medians and deviations are found in the training rows"

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Dense:
        return table.noted((Dense, tuple(indices)), weight, lambda: self._fitted(table, indices, weight))

    def _fitted(self, table: Table, indices: Sequence[int], weight: Array) -> Dense:
        parts = tuple(_parts(table, indices, weight))
        raw = _side_by_side(table, parts)
        mean = weight @ raw / weight.sum()
        deviation = np.sqrt(weight @ (raw - mean) ** 2 / weight.sum())
        varying = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        varying[0] |= not varying.any()  # a family needs a column
        owners = [
            (columns[place], name)
            for columns, part in parts
            for place, name in part.named([table.names[j] for j in columns])
        ]
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
        return {"columns": self.names, "center": np.zeros(d), "variance": np.ones(d)}

    def unite(self, other: Dense) -> tuple[Dense, None, None]:
        raise ValueError("columns that were standardized apart cannot be added up")


def _parts(table: Table, indices: Sequence[int], weight: Array) -> Iterator[tuple[tuple[int, ...], Part]]:
    """All numbers first, then levels, then where cells are missing."""
    absent = {j: table.absent(j) for j in indices}
    told = [j for j in indices if not absent[j].all()]
    if of_numbers := tuple(j for j in told if table.numeric(j)):
        yield of_numbers, _bent(numbers(table, of_numbers), weight)
    for j in told:
        if not table.numeric(j):
            levels = Levels(most=MOST_LEVELS, rare=LEAST_SHARE * float(weight.sum()))
            yield (j,), Indicators(levels.fit(table, [j], weight))
    if gaps := tuple(j for j in indices if absent[j].any()):
        yield gaps, MissingIndicator()


def _bent(matrix: Array, weight: Array) -> AsinhScaled:
    """How to bend columns of numbers; so many at a time that their copies stay small."""
    step = max(CELLS // max(len(matrix), 1), 1)
    parts = [
        _bends(matrix[:, start : start + step].astype(np.float64), weight)
        for start in range(0, matrix.shape[1], step)
    ]
    middle, width = (np.concatenate(side) for side in zip(*parts, strict=True))
    return AsinhScaled(middle, width)


def _bends(values: Array, weight: Array) -> tuple[Array, Array]:
    """Middles and widths of columns, of which some cells may be missing: those weigh nothing, and lie behind all others."""
    known = ~np.isnan(values.T)
    columns = np.where(known, values.T, np.inf)
    order = np.argsort(columns, axis=1, kind="stable")
    ranked = np.take_along_axis(columns, order, axis=1)
    own = weight * known
    below = np.cumsum(np.take_along_axis(own, order, axis=1), axis=1)
    low, middle, high = (inverse_cdf_quantile(ranked, below, share) for share in (0.25, 0.5, 0.75))
    width = (high - low) / NORMAL_QUARTILES
    for j in np.flatnonzero(~(width > 0)):
        mine, share = values[known[j], j], own[j, known[j]] / own[j].sum()
        width[j] = np.sqrt(share @ (mine - share @ mine) ** 2)
    return middle, np.where(width > 0, width, 1.0)


def _side_by_side(table: Table, parts: Sequence[tuple[tuple[int, ...], Part]]) -> Array:
    return np.concatenate([part.encode(table, columns) for columns, part in parts], axis=1)
