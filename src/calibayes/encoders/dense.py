"""Columns of mixed types as standardized numbers, for Gaussian models of a whole table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.encoder import FixedLayout
from calibayes.encoders.levels import Levels
from calibayes.kernels.numbers.quantiles import inverse_cdf_quantile
from calibayes.tables.table import Table, numeric_matrix

NORMAL_QUARTILES = 1.35
"""Interquartile range of a normal distribution with standard deviation 1, to two decimals."""
FARTHEST = 1e300
"""Distances from the median are clipped to this many scales (or units, if the scale exceeds 1)."""
CELLS = 2**18
"""Number of cells whose medians and quartiles are computed at a time, to keep temporary copies small."""
MOST_LEVELS, LEAST_SHARE = 64, 0.005
"""Levels beyond the 64 most frequent ones of a column, and levels in less than 0.5 % of the rows, share one indicator
column: divided by its small standard deviation, the indicator of a rare level would have extreme values."""


@dataclass(frozen=True)
class AsinhScaled:
    """Numeric columns x as asinh((x - median) / scale): linear near the median, logarithmic in the tails.

    The scale is the interquartile range divided by 1.35 (the standard deviation of a normal distribution), or the
    standard deviation if the quartiles are equal. A missing value becomes 0, the median.
    """

    median: Array
    """Of each column, (d,)."""
    scale: Array
    """Of each column, (d,)."""

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        scaled = numeric_matrix(table, columns).astype(np.float64)
        limit = FARTHEST * np.minimum(self.scale, 1.0)  # so that the division cannot overflow
        scaled -= self.median
        np.clip(scaled, -limit, limit, out=scaled)
        scaled /= self.scale
        return np.nan_to_num(np.arcsinh(scaled, out=scaled), copy=False, nan=0.0)

    def named_columns(self, names: Sequence[str]) -> list[tuple[int, str]]:
        """For each encoded column the place of its source among ``names``, and its own name."""
        return list(enumerate(names))


@dataclass(frozen=True)
class Indicators:
    """A categorical column as one indicator (0 or 1) for each level; a column of two levels as one indicator."""

    levels: Levels

    def encode(self, table: Table, columns: Sequence[int]) -> Array:
        codes = self.levels.encode(table)
        return np.asarray(codes == np.array(self._shown_codes), dtype=np.float64)

    @property
    def _shown_codes(self) -> list[int]:
        """Codes of the levels that have an indicator."""
        size = self.levels.layout()["levels"][0]
        return list(range(size)) if size != 2 else [1]

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


@dataclass(frozen=True)
class Dense(FixedLayout):
    """Mixed columns as complete, standardized numbers: asinh-scaled numbers, then indicator columns.

    The encoded columns are, in this order: each numeric column, asinh-scaled (`AsinhScaled`); for each other column an
    indicator (0 or 1) of each level, only one if there are two levels, with rare levels pooled; for each column with
    missing values in training an indicator of missing values. All of them are then standardized to mean 0 and variance
    1 over the training rows; constant ones are left out.

    A missing number is replaced by the median; a missing or unknown level has 0 in all indicators of its column (before
    standardization), or 1 in that of pooled levels for an unknown one.
    """

    indices: tuple[int, ...] = ()
    parts: tuple[tuple[tuple[int, ...], Part], ...] = ()
    """Positions of columns in the table, and their encoding."""
    names: tuple[str, ...] = ()
    """Names of the encoded columns."""
    sources: tuple[int, ...] = ()
    """For each encoded column, the position (among the encoder's columns) of the column it was computed from."""
    varying: Array = None
    """Which columns of the parts are not constant in training, booleans."""
    mean: Array = None
    deviation: Array = None

    data_dependence = "medians and standard deviations are found in the training rows"

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Dense:
        return table.cached((Dense, tuple(indices)), weight, lambda: self._fitted(table, indices, weight))

    def _fitted(self, table: Table, indices: Sequence[int], weight: Array) -> Dense:
        parts = tuple(_fitted_parts(table, indices, weight))
        raw = _encoded_parts(table, parts)
        mean = weight @ raw / weight.sum()
        deviation = np.sqrt(weight @ (raw - mean) ** 2 / weight.sum())
        varying = deviation > 1e-12 * np.maximum(np.abs(mean), 1e-300)
        varying[0] |= not varying.any()  # a family needs at least one column
        sources_and_names = [
            (columns[place], name)
            for columns, part in parts
            for place, name in part.named_columns([table.names[j] for j in columns])
        ]
        remaining = [pair for pair, varies in zip(sources_and_names, varying, strict=True) if varies]
        places = {j: place for place, j in enumerate(indices)}
        return Dense(
            tuple(indices),
            parts,
            tuple(name for _, name in remaining),
            tuple(places[j] for j, _ in remaining),
            varying,
            mean[varying],
            np.where(deviation > 0, deviation, 1.0)[varying],
        )

    def encode(self, table: Table) -> Array:
        return table.cached(("encoded", id(self)), self, lambda: self._encoded(table))

    def _encoded(self, table: Table) -> Array:
        standardized = _encoded_parts(table, self.parts)[:, self.varying]
        standardized -= self.mean
        standardized /= self.deviation
        return standardized

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        raise ValueError(
            "asinh-scaled numbers and indicator columns cannot be decoded into a table: sample from another model"
        )

    def layout(self) -> Mapping[str, Any]:
        d = len(self.names)
        return {"columns": self.names, "center": np.zeros(d), "variance": np.ones(d)}

    def unite(self, other: Dense) -> tuple[Dense, None, None]:
        raise ValueError(
            "models of standardized columns cannot be merged: each was fitted with its own scaling"
        )


def _fitted_parts(
    table: Table, indices: Sequence[int], weight: Array
) -> Iterator[tuple[tuple[int, ...], Part]]:
    """Encodings of all numeric columns, of each other column, and of the missing values."""
    missing = {j: table.missing_mask(j) for j in indices}
    with_values = [j for j in indices if not missing[j].all()]
    if numeric := tuple(j for j in with_values if table.is_numeric(j)):
        yield numeric, _asinh_scaling(numeric_matrix(table, numeric), weight)
    for j in with_values:
        if not table.is_numeric(j):
            levels = Levels(most=MOST_LEVELS, rare=LEAST_SHARE * float(weight.sum()))
            yield (j,), Indicators(levels.fit(table, [j], weight))
    if with_missing := tuple(j for j in indices if missing[j].any()):
        yield with_missing, MissingIndicator()


def _asinh_scaling(matrix: Array, weight: Array) -> AsinhScaled:
    """The scaling of numeric columns (n, d), computed for a few columns at a time."""
    step = max(CELLS // max(len(matrix), 1), 1)
    pairs = [
        _medians_and_scales(matrix[:, start : start + step].astype(np.float64), weight)
        for start in range(0, matrix.shape[1], step)
    ]
    median, scale = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
    return AsinhScaled(median, scale)


def _medians_and_scales(values: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted medians and scales (see `AsinhScaled`) of columns (n, d); missing values have weight 0 and sort last."""
    known = ~np.isnan(values.T)
    columns = np.where(known, values.T, np.inf)
    order = np.argsort(columns, axis=1, kind="stable")
    ranked = np.take_along_axis(columns, order, axis=1)
    weights = weight * known
    cumulative = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
    low, median, high = (inverse_cdf_quantile(ranked, cumulative, share) for share in (0.25, 0.5, 0.75))
    scale = (high - low) / NORMAL_QUARTILES
    for j in np.flatnonzero(~(scale > 0)):
        known_values, shares = values[known[j], j], weights[j, known[j]] / weights[j].sum()
        scale[j] = np.sqrt(shares @ (known_values - shares @ known_values) ** 2)
    return median, np.where(scale > 0, scale, 1.0)


def _encoded_parts(table: Table, parts: Sequence[tuple[tuple[int, ...], Part]]) -> Array:
    """The columns of all parts, before standardization."""
    return np.concatenate([part.encode(table, columns) for columns, part in parts], axis=1)
