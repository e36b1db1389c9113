"""Columns of numbers as codes of bins (discretization), or as positions on a uniform grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import Array, resolve
from calibayes.core.verify import require, require_ascending, require_columns, require_finite, require_length
from calibayes.encoders.encoder import Encoder, FixedLayout, is_same
from calibayes.kernels.cut_points import bin_codes, bin_columns, cuts, kmeans_centers
from calibayes.kernels.dispatch import ordered_map
from calibayes.kernels.grids import TAILS, log_volumes
from calibayes.tables.summary import MOST_DISTINCT, ColumnSummary, TableSummary
from calibayes.tables.table import LARGEST, Table, numeric_matrix, refuse_other_kind

TINY = float(np.finfo(np.float64).tiny)
FEWEST_BINS = 4
"""Number of bins that `PairBins` gives a column at least, however many columns there are."""


@dataclass(frozen=True, kw_only=True)
class Bins(FixedLayout, ABC):
    """Base class of discretizers: a number becomes the code of its bin, 0 to the number of bins minus 1.

    A value equal to an edge belongs to the upper bin, values outside the training range to the outermost bins; a
    missing value has code -1. Decoded, a code becomes the value of its bin where each distinct value has its own bin,
    else a number uniformly distributed over the bin. Subclasses define `inner_edges`.
    """

    indices: tuple[int, ...] = ()
    edges: tuple[Array, ...] = ()
    """Edges of the bins of each column, with minimum and maximum, (bins + 1,)."""
    bin_values: tuple[Array | None, ...] = ()
    """The value of each bin of each column, (bins,); None for a column whose bins hold several distinct values."""
    distinct_counts: tuple[int, ...] = ()
    """Number of distinct values of each column."""

    data_dependence = "bins of numbers are found in the training rows"

    @abstractmethod
    def inner_edges(self, column: ColumnSummary) -> Array:
        """Edges between the bins of a column, ascending, without minimum and maximum."""

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Self:
        columns = list(ordered_map(summary.numbers, indices))  # in parallel: each is sorted
        pairs = [(column, self.inner_edges(column)) for column in columns]
        has_bin_each = [column.is_exact and len(column.low) == len(inner) + 1 for column, inner in pairs]
        return replace(
            self,
            indices=tuple(indices),
            edges=tuple(np.concatenate([column.low[:1], inner, column.high[-1:]]) for column, inner in pairs),
            bin_values=tuple(c.low if has else None for (c, _), has in zip(pairs, has_bin_each, strict=True)),
            distinct_counts=tuple(column.distinct_count for column, _ in pairs),
        )

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        for name in ("edges", "bin_values", "distinct_counts"):
            require_length(name, getattr(self, name), len(self.indices))
        for edges, values, distinct in zip(self.edges, self.bin_values, self.distinct_counts, strict=True):
            require_finite("edges", edges, (None,))
            require(len(edges) > 1, "edges of bins must be at least a minimum and a maximum")
            # Not strictly: the midpoint of two neighboring floating-point numbers is one of them.
            require_ascending("edges", edges, strictly=False)
            require(distinct > 0, "distinct_counts must be positive")
            if values is not None:
                require_finite("bin_values", values, (len(edges) - 1,))
                require_ascending("bin_values", values)
                are_ends = values[0] == edges[0] and values[-1] == edges[-1]
                require(are_ends, "bin_values are not those of the edges")

    def encode(self, table: Table) -> Array:
        inner = [edges[1:-1] for edges in self.edges]
        if not isinstance(table.content, tuple):
            return bin_codes(numeric_matrix(table, self.indices), inner)
        refuse_other_kind(table, self.indices, "fiu")
        codes, is_beyond = bin_columns([table.column(j) for j in self.indices], inner, LARGEST)
        if is_beyond.any():
            numeric_matrix(table, self.indices)  # raises an error that names the column
        return codes

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        shares = np.full(encoded.shape, 0.5) if rng is None else rng.random(encoded.shape)
        columns = zip(self.edges, self.bin_values, encoded.T, shares.T, strict=True)
        return [
            edges[codes] + share * (edges[codes + 1] - edges[codes]) if values is None else values[codes]
            for edges, values, codes, share in columns
        ]

    def layout(self) -> Mapping[str, Any]:
        levels = tuple(len(edges) - 1 for edges in self.edges)
        bins = zip(self.edges, self.bin_values, strict=True)
        widths = [np.diff(edges) if values is None else np.ones(len(values)) for edges, values in bins]
        log_volume = np.log(np.maximum(np.concatenate(widths), TINY))
        return {"levels": levels, "ordered": levels, "log_volume": log_volume}

    def unite(self, other: Self) -> tuple[Self, None, None]:
        if not is_same(self.edges, other.edges):
            raise ValueError("models with different bins of numbers cannot be merged")
        return self, None, None

    def remarks(self) -> list[str]:
        pairs = zip(self.distinct_counts, self.edges, strict=True)
        return [f"{_distinct_text(distinct)}, {counted(len(edges) - 1, 'bin')}" for distinct, edges in pairs]


@dataclass(frozen=True)
class BoundedBins(Bins):
    """Base class of bins of a given number; a column with no more distinct values than that gets a bin for each.

    Parameters
    ----------
    most : int, default=5
        Largest number of bins of a column.
    """

    most: int = 5

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"a column needs at least one bin, got {self.most}")

    @abstractmethod
    def edges_of_many(self, column: ColumnSummary) -> Array:
        """Inner edges of a column with more cells than bins."""

    def inner_edges(self, column: ColumnSummary) -> Array:
        return column.midpoints if len(column.low) <= self.most else self.edges_of_many(column)


class KMeansBins(BoundedBins):
    """Bins around the centers of k-means in each column, started from evenly spaced centers, as in scikit-learn."""

    def edges_of_many(self, column: ColumnSummary) -> Array:
        even = np.linspace(column.low[0], column.high[-1], self.most + 1)
        centers = kmeans_centers(column.values, column.weight, midpoints(even))
        return midpoints(np.unique(centers))


class QuantileBins(BoundedBins):
    """Bins of equal weight, as nearly as edges midway between distinct values allow."""

    def edges_of_many(self, column: ColumnSummary) -> Array:
        cumulative = np.cumsum(column.weight)
        targets = cumulative[-1] * np.arange(1, self.most) / self.most
        upper = np.searchsorted(cumulative[:-2], targets)
        lower = np.maximum(upper - 1, 0)
        nearest = np.where(targets - cumulative[lower] <= cumulative[upper] - targets, lower, upper)
        return column.midpoints[np.unique(nearest)]


class UniformBins(BoundedBins):
    """Bins of equal width."""

    def edges_of_many(self, column: ColumnSummary) -> Array:
        return np.linspace(column.low[0], column.high[-1], self.most + 1)[1:-1]


@dataclass(frozen=True)
class AdaptiveBins(Bins):
    """A bin for each distinct value if these are few, else edges at quantiles of the rows and of the distinct values.

    The quantiles of the rows make narrow bins where there are many rows; those of the distinct values keep outliers
    from sharing one wide bin.

    Parameters
    ----------
    few : int, default=64
        Largest number of distinct values that get a bin each.
    parts : int, default=32
        Number of parts into which each of the two sets of quantiles divides a column.
    """

    few: int = 64
    parts: int = 32

    def inner_edges(self, column: ColumnSummary) -> Array:
        candidates = column.midpoints
        if len(column.low) <= self.few:
            return candidates
        shares = np.arange(1, self.parts) / self.parts
        of_rows = np.searchsorted(np.cumsum(column.weight)[:-1], shares * column.weight.sum())
        distinct = np.cumsum(column.distinct)
        of_values = np.searchsorted(distinct, shares * distinct[-1], side="right")
        chosen = np.minimum(np.concatenate([of_rows, of_values]), len(candidates) - 1)
        return candidates[np.unique(chosen)]


@dataclass(frozen=True)
class MDLBins(Bins):
    """Bins whose edges separate the classes, by entropy and minimum description length (Fayyad and Irani 1993).

    Rows without a label are ignored. A column in which no edge gains more than its description length becomes a single
    bin, which has no influence on the class.
    """

    def inner_edges(self, column: ColumnSummary) -> Array:
        counts = column.class_weights[:, :-1]
        if not counts.shape[1]:
            raise ValueError("MDLBins needs the class codes of the rows")
        labeled = np.flatnonzero(counts.any(axis=1))
        if not len(labeled):
            return np.zeros(0)
        edges = (column.low[labeled[1:]] + column.high[labeled[:-1]]) / 2
        return np.asarray(edges[cuts(counts[labeled]) - 1])

    def remarks(self) -> list[str]:
        endings = ["" if len(edges) > 2 else ": it does not separate the classes" for edges in self.edges]
        return [f"{remark}{ending}" for remark, ending in zip(super().remarks(), endings, strict=True)]


@dataclass(frozen=True)
class PairBins(AdaptiveBins):
    """`AdaptiveBins` that become coarser with the number of columns, for models that count all pairs of columns.

    With d columns there are d (d - 1) / 2 tables of counts, one for each pair of columns; the number of bins of a column
    is limited so that these tables have about ``budget`` cells together.

    Parameters
    ----------
    few, parts
        As in `AdaptiveBins`: upper limits, reached if there are few columns.
    budget : int, default=2**23
        Approximate largest number of cells of the tables of all pairs together.
    """

    budget: int = 2**23

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Self:
        pairs = max(math.comb(len(indices), 2), 1)
        most = max(math.isqrt(self.budget // pairs), FEWEST_BINS)
        few, parts = min(self.few, most), min(self.parts, most // 2)
        return super(PairBins, replace(self, few=few, parts=parts)).fit(summary, indices)


@dataclass(frozen=True)
class InformedBins(PairBins):
    """`PairBins` with further edges where they separate the classes: those of `MDLBins`.

    A column with at most ``few`` distinct values has a bin for each, and no further edges; other columns get at most
    ``few`` further edges, evenly chosen among those of `MDLBins`.
    """

    def inner_edges(self, column: ColumnSummary) -> Array:
        adaptive = super().inner_edges(column)
        if len(column.low) <= self.few:
            return adaptive
        informed = MDLBins().inner_edges(column)
        chosen = np.unique(np.linspace(0, len(informed) - 1, min(len(informed), self.few)).astype(int))
        return np.union1d(adaptive, informed[chosen])


BINS: Mapping[str, Callable[[int], Encoder]] = {
    "kmeans": KMeansBins,
    "quantile": QuantileBins,
    "uniform": UniformBins,
    "mdl": lambda most: MDLBins(),
    "adaptive": lambda most: AdaptiveBins(),
}
"""Name -> function of the largest number of bins of a column; "mdl" and "adaptive" choose the number themselves."""


def bins_named(name: str | Encoder, most: int) -> Encoder:
    """The bins of a name in `BINS`, or ``name`` itself if it is an encoder of bins. Raises ValueError otherwise."""
    names = {short: partial(make, most) for short, make in BINS.items()}
    return resolve("discretize", name, names, ability="inner_edges", example="KMeansBins()")


def _distinct_text(distinct: int) -> str:
    """A number of distinct values, of which the summary of a column counts so many."""
    if distinct > MOST_DISTINCT:
        return f"more than {MOST_DISTINCT} distinct values"
    return counted(distinct, "distinct value")


def midpoints(values: Array) -> Array:
    """The midpoints between neighbors, (v - 1,)."""
    return np.asarray((values[1:] + values[:-1]) / 2)


# -- Columns of numbers as positions on a uniform grid, for kernel densities ---------------------------------

REACH = 5.0
"""Largest distance of a grid from the quartiles, in interquartile ranges: about seven standard deviations of a normal."""
PADDING = 3.0
"""Margin beyond the values on a grid, in bandwidths of the normal reference rule."""
LEAST_PADDING = 1e-9
"""Least margin, relative to the values on a grid: neighboring points must differ in floating point."""
ZERO_PADDING = 0.5
"""Margin of a column that is all zero."""
MOST_CELLS, MOST_POINTS = 2**24, 128
"""Points of all columns of an encoder from a model file: at most the first number, or the second in each column."""


@dataclass(frozen=True)
class Grid(FixedLayout):
    """Numbers as positions on a uniform grid over the bulk of each column: 0 is the first point, 1 the second, ...

    The grid covers the range of the values, cut at five interquartile ranges beyond the quartiles, with a margin of
    three bandwidths on both sides. Positions are not rounded; outliers beyond the grid have positions below 0 or above
    ``points - 1``. A missing value is NaN.

    Parameters
    ----------
    points : int, default=128
        Number of points of the grid of each column.
    """

    points: int = 128
    indices: tuple[int, ...] = ()
    origin: Array = field(default_factory=lambda: np.zeros(0))
    """Value at the first point of each column, (d,)."""
    step: Array = field(default_factory=lambda: np.zeros(0))
    """Distance between neighboring points of each column, (d,)."""
    outliers: tuple[int, ...] = ()
    """Number of training rows beyond the grid of each column."""

    data_dependence = "grids over numbers are found in the training rows"

    def __post_init__(self) -> None:
        if self.points < 4:
            raise ValueError(f"a grid needs at least four points, got {self.points}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Grid:
        columns = [summary.numbers(j) for j in indices]
        ends = np.array([grid_ends(column) for column in columns])
        step = (ends[:, 1] - ends[:, 0]) / (self.points - 1)
        outliers = tuple(_rows_beyond(column, *pair) for column, pair in zip(columns, ends, strict=True))
        return Grid(self.points, tuple(indices), ends[:, 0], step, outliers)

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        require_columns("indices", self.indices)
        d = len(self.indices)
        problem = f"{self.points} points in each of {d} columns are more than {MOST_CELLS} together"
        require(self.points * d <= max(MOST_CELLS, MOST_POINTS * d), problem)
        require_finite("origin", self.origin, (d,))
        require(bool((require_finite("step", self.step, (d,)) > 0).all()), "step must be positive")
        require_length("outliers", self.outliers, d)
        require(all(outliers >= 0 for outliers in self.outliers), "outliers contains negative numbers")

    def encode(self, table: Table) -> Array:
        columns = numeric_matrix(table, self.indices).astype(np.float64)
        with np.errstate(over="ignore"):  # far beyond the grid
            return np.clip((columns - self.origin) / self.step, -LARGEST, LARGEST)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list((self.origin + self.step * encoded).T)

    def layout(self) -> Mapping[str, Any]:
        d = len(self.indices)
        levels, ordered = (self.points + TAILS,) * d, (self.points,) * d
        log_volume = np.concatenate([log_volumes(self.points, step) for step in self.step])
        return {"levels": levels, "ordered": ordered, "log_volume": log_volume, "gridded": True}

    def unite(self, other: Grid) -> tuple[Grid, None, None]:
        if not (np.array_equal(self.origin, other.origin) and np.array_equal(self.step, other.step)):
            raise ValueError("models with different grids of numbers cannot be merged")
        return self, None, None

    def remarks(self) -> list[str]:
        notes = (f", {counted(rows, 'row')} beyond them" if rows else "" for rows in self.outliers)
        return [f"{self.points} points{note}" for note in notes]


def grid_ends(column: ColumnSummary) -> tuple[float, float]:
    """First and last point of the grid of a column; rows of weight 0 are ignored."""
    has_weight = column.weight > 0 if column.weight.any() else column.weight == 0
    values = column.values[has_weight]
    weights = column.weight[has_weight] if column.weight.any() else np.ones(len(values))
    low, high = _quartiles(values, weights)
    if low == high:  # half of the rows have one value: take the quartiles of the distinct values
        low, high = _quartiles(values, column.distinct[has_weight])
    reach = REACH * (high - low)
    first, last = column.low[has_weight][0], column.high[has_weight][-1]
    ends = max(first, low - reach), min(last, high + reach)
    padding = PADDING * _bandwidth(values, weights, ends)
    padding = max(padding, LEAST_PADDING * max(abs(ends[0]), abs(ends[1]))) or ZERO_PADDING
    return float(ends[0] - padding), float(ends[1] + padding)


def _rows_beyond(column: ColumnSummary, first: float, last: float) -> int:
    """Number of rows beyond the first and last point of a grid."""
    return int(column.rows[(column.low < first) | (column.high > last)].sum())


def _quartiles(values: Array, weights: Array) -> Array:
    """Lower and upper quartile of ascending values: the smallest value whose cumulative weight reaches the share."""
    cumulative = np.cumsum(weights)
    return np.asarray(values[np.searchsorted(cumulative, np.array([0.25, 0.75]) * cumulative[-1])])


def _bandwidth(values: Array, weights: Array, ends: tuple[float, float]) -> float:
    """Bandwidth of the normal reference rule, standard deviation times n ** -0.2, for the values between the ends."""
    inside = (values >= ends[0]) & (values <= ends[1])
    n = float(weights[inside].sum())
    mean = np.average(values[inside], weights=weights[inside])
    variance = np.average((values[inside] - mean) ** 2, weights=weights[inside])
    return float(np.sqrt(variance) * max(n, 1.0) ** -0.2)
