"""Numbers in bins."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import Encoder, counted, numbers, refuse_empty
from calibayes.kernels.levels import description_length
from calibayes.kernels.levels.codes import code_type
from calibayes.kernels.numbers import kmeans
from calibayes.tables.read import Table

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, kw_only=True)
class Bins(ABC):
    """What all bins share, once their inner edges are known.

    Values beyond the ends belong to the outer bins, a missing cell to none (code -1). Sampled codes become their value
    where a column has one bin a value, else numbers spread evenly over their bin.
    """

    indices: tuple[int, ...] = ()
    edges: tuple[Array, ...] = ()
    """Ends and inner edges of each column's bins."""
    values: tuple[Array | None, ...] = ()
    """The value of each bin where a column has one bin a value."""
    distinct: tuple[int, ...] = ()
    """Number of distinct values of each column."""

    @abstractmethod
    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        """Edges between the bins, ascending.

        ``values`` are distinct and ascending; ``row`` says which of them each row has. The codes of the classes are
        there for bins that ask for them, -1 for a row without a label.
        """

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Self:
        columns = numbers(table, indices).astype(np.float64)
        known = ~np.isnan(columns)
        refuse_empty(table, indices, ~known)
        found, inner = [], []
        for column, there in zip(columns.T, known.T, strict=True):
            values, row = np.unique(column[there], return_inverse=True)
            found.append(values)
            inner.append(self.inner(values, row, weight[there], None if codes is None else codes[there]))
        pairs = list(zip(found, inner, strict=True))
        return replace(
            self,
            indices=tuple(indices),
            edges=tuple(np.concatenate([values[:1], edges, values[-1:]]) for values, edges in pairs),
            values=tuple(values if len(values) == len(edges) + 1 else None for values, edges in pairs),
            distinct=tuple(len(values) for values in found),
        )

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices)
        kind = code_type(max((len(edges) for edges in self.edges), default=1))
        codes = np.empty(columns.shape, dtype=kind)
        for j, (edges, column) in enumerate(zip(self.edges, columns.T, strict=True)):
            codes[:, j] = np.where(np.isnan(column), -1, np.searchsorted(edges[1:-1], column, side="right"))
        return codes

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        uniform = np.full(encoded.shape, 0.5) if rng is None else rng.random(encoded.shape)
        return [
            edges[codes] + share * (edges[codes + 1] - edges[codes]) if values is None else values[codes]
            for edges, values, codes, share in zip(self.edges, self.values, encoded.T, uniform.T, strict=True)
        ]

    def layout(self) -> Mapping[str, Any]:
        levels = tuple(len(edges) - 1 for edges in self.edges)
        widths = [
            np.diff(edges) if values is None else np.ones(len(values))
            for edges, values in zip(self.edges, self.values, strict=True)
        ]
        return {
            "levels": levels,
            "ordered": levels,
            "log_volume": np.log(np.maximum(np.concatenate(widths), TINY)),
        }

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None

    def unite(self, other: Self) -> tuple[Self, None, None]:
        if not all(np.array_equal(a, b) for a, b in zip(self.edges, other.edges, strict=True)):
            raise ValueError(
                "the models have different bins: numbers that were binned apart cannot be added up"
            )
        return self, None, None

    def restricted_to(self, counts: Array) -> tuple[Self, None]:
        return self, None

    data_dependence = "bins of numbers are found in the training rows"

    def remarks(self) -> list[str]:
        return [
            f"{counted(distinct, 'distinct value')}, {counted(len(edges) - 1, 'bin')}"
            for distinct, edges in zip(self.distinct, self.edges, strict=True)
        ]


@dataclass(frozen=True)
class Bounded(Bins):
    """Bins of a given number; a column with no more distinct values than that gets one bin a value.

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
    def among_many(self, values: Array, mass: Array) -> Array:
        """Inner edges for more distinct values than bins, from the values, ascending, and their weights."""

    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        if len(values) <= self.most:
            return middles_between(values)
        return self.among_many(values, np.bincount(row, weight))


class KMeansBins(Bounded):
    """Bins around the centers that k-means finds in each column, started from even spacing, as in the papers."""

    def among_many(self, values: Array, mass: Array) -> Array:
        even = np.linspace(values[0], values[-1], self.most + 1)
        return middles_between(np.unique(kmeans.centers(values, mass, middles_between(even))))


class QuantileBins(Bounded):
    """Bins of equal weight, as nearly as cuts between distinct values allow."""

    def among_many(self, values: Array, mass: Array) -> Array:
        below = np.cumsum(mass)
        wanted = below[-1] * np.arange(1, self.most) / self.most
        above = np.searchsorted(below[:-2], wanted)
        under = np.maximum(above - 1, 0)
        nearest = np.where(wanted - below[under] <= below[above] - wanted, under, above)
        return middles_between(values)[np.unique(nearest)]


class UniformBins(Bounded):
    """Bins of equal width."""

    def among_many(self, values: Array, mass: Array) -> Array:
        return np.linspace(values[0], values[-1], self.most + 1)[1:-1]


@dataclass(frozen=True)
class AdaptiveBins(Bins):
    """One bin a value while there are few, else bins at quantiles of the rows and at quantiles of the distinct values.

    The former are fine where rows are dense, the latter keep far values from sharing one bin.

    Parameters
    ----------
    few : int, default=64
        Most distinct values of a column that have a bin each.
    parts : int, default=32
        Number of parts that each of the two sets of quantiles makes.
    """

    few: int = 64
    parts: int = 32

    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        between = middles_between(values)
        if len(values) <= self.few:
            return between
        below = np.cumsum(np.bincount(row, weight))[:-1]
        shares = np.arange(1, self.parts) / self.parts
        of_rows = np.searchsorted(below, shares * weight.sum())
        of_values = (shares * len(values)).astype(np.intp)
        return between[np.unique(np.minimum(np.concatenate([of_rows, of_values]), len(between) - 1))]


@dataclass(frozen=True)
class MDLBins(Bins):
    """Cuts that say something about the class: those of minimum description length (Fayyad and Irani 1993).

    Rows without a label are left out. A column with no cut worth its description becomes one bin, which says nothing.
    """

    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        if codes is None:
            raise ValueError("MDLBins needs the class codes of the rows")
        labeled, k = codes >= 0, max(int(codes.max()), 0) + 1
        cells = row[labeled] * k + codes[labeled]
        counts = np.bincount(cells, weight[labeled], minlength=len(values) * k).reshape(-1, k)
        told = counts.any(axis=1)
        return middles_between(values[told])[description_length.cuts(counts[told]) - 1]

    def remarks(self) -> list[str]:
        silent = [
            "" if len(edges) > 2 else ": no cut is worth it, so it says nothing" for edges in self.edges
        ]
        return [f"{remark}{rest}" for remark, rest in zip(super().remarks(), silent, strict=True)]


BINS: Mapping[str, Callable[[int], Encoder]] = {
    "kmeans": KMeansBins,
    "quantile": QuantileBins,
    "uniform": UniformBins,
    "mdl": lambda most: MDLBins(),
    "adaptive": lambda most: AdaptiveBins(),
}
"""Short name -> bins, told the most bins of a column; the last two find the number themselves."""


def bins_named(name: str | Encoder, most: int) -> Encoder:
    """The bins that a name stands for, or the given ones."""
    if isinstance(name, str) and name in BINS:
        return BINS[name](most)
    if not isinstance(name, Bins):
        names = ", ".join(repr(known) for known in BINS)
        raise ValueError(f"discretize must be one of {names}, or bins such as KMeansBins(), got {name!r}")
    return name


def middles_between(values: Array) -> Array:
    return np.asarray((values[1:] + values[:-1]) / 2)


FEWEST = 4
"""Bins that a column may have however many columns there are."""


@dataclass(frozen=True)
class PairBins(AdaptiveBins):
    """Adaptive bins that get coarser as columns get more, so that the tables of all pairs of columns stay small.

    Parameters
    ----------
    few, parts
        As in `AdaptiveBins`, for few columns.
    budget : int, default=2**23
        Cells of all pairs together that columns with ``few`` bins each may have.
    """

    budget: int = 2**23

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Self:
        pairs = max(math.comb(len(indices), 2), 1)
        most = max(math.isqrt(self.budget // pairs), FEWEST)
        few, parts = min(self.few, most), min(self.parts, most // 2)
        return super(PairBins, replace(self, few=few, parts=parts)).fit(table, indices, weight, codes)


@dataclass(frozen=True)
class InformedBins(PairBins):
    """Such bins, cut also where that says something about the class, as in `MDLBins`.

    Numbers of few values have one bin a value anyway; others get no more further cuts than that.
    """

    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        plain = super().inner(values, row, weight, codes)
        if len(values) <= self.few:
            return plain
        told = MDLBins().inner(values, row, weight, codes)
        some = np.unique(np.linspace(0, len(told) - 1, min(len(told), self.few)).astype(int))
        return np.union1d(plain, told[some])
