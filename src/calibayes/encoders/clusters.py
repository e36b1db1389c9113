"""Numbers as they are, with the places where the components of each class begin."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import DataIndependent, Numbers, counted
from calibayes.kernels.numbers import clusters
from calibayes.tables.read import Table


class FewRowsWarning(UserWarning):
    """A class has fewer distinct rows than it was to have components."""


@dataclass(frozen=True)
class Clusters(DataIndependent):
    """Numbers, and clusters that k-means finds among the rows of each class, columns in units of their spread.

    Rows without a label are left out; a missing cell counts as the mean of its column in the class. The result does not
    depend on the order of the rows, and rows of weight w count as w rows. A class with fewer distinct rows than
    components gets one component a row, with a warning.

    Parameters
    ----------
    components : int or sequence of int, default=2
        Number of components of every class, or of each class in order.
    seed : int, default=0
        Of the random rows that k-means begins with.
    """

    components: int | Sequence[int] = 2
    seed: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    seeds: tuple[Array, ...] = ()
    """Centers of each class's clusters, (components, d)."""

    def __post_init__(self) -> None:
        counts = np.asarray(self.components)
        if counts.dtype.kind not in "iu" or counts.ndim > 1 or counts.size == 0 or (counts < 1).any():
            raise ValueError(
                f"components must be a whole number from 1 on, or one for each class, got {self.components!r}"
            )

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Self:
        plain = Numbers().fit(table, indices, weight, codes)
        rows = plain.encode(table).astype(np.float64)
        numbers = replace(plain, variance=_moments(rows, weight, plain.center)[1])
        fitted = replace(self, numbers=numbers)
        return fitted if codes is None else replace(fitted, seeds=fitted._found(rows, weight, codes))

    def encode(self, table: Table) -> Array:
        return self.numbers.encode(table)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return self.numbers.decode(encoded, rng)

    def _found(self, rows: Array, weight: Array, codes: Array) -> tuple[Array, ...]:
        k = int(codes.max(initial=-1)) + 1
        counts = np.asarray(self.components)
        if counts.ndim and len(counts) < k:
            raise ValueError(f"components are given for {len(counts)} classes, but there are {k}")
        center, variance = self.numbers.center, self.numbers.variance
        spread = np.sqrt(np.where(variance > 0, variance, 1.0))
        overall, _ = _moments(rows, weight, center)
        found = []
        for c, count in enumerate(counts[:k] if counts.ndim else np.full(k, counts)):
            own = codes == c
            middle, _ = _moments(rows[own], weight[own], overall)
            filled = np.where(np.isnan(rows[own]), middle, rows[own])
            found.append(
                _centers((filled - center) / spread, weight[own], int(count), self.seed) * spread + center
            )
        _warn_of_few(found, counts, np.bincount(codes[codes >= 0], minlength=k))
        return tuple(found)

    def layout(self) -> Mapping[str, Any]:
        return {**self.numbers.layout(), "seeds": self.seeds}

    @property
    def data_dependence(self) -> str:  # type: ignore[override]
        several = any(len(seeds) > 1 for seeds in self.seeds)
        return "clusters are found in the training rows" if several else ""

    def unite(self, other: Self) -> tuple[Self, None, None]:
        if (self.data_dependence or other.data_dependence) and not _same(self.seeds, other.seeds):
            raise ValueError(
                "the models have different clusters: components that were found apart cannot be added up"
            )
        return self, None, None

    def remarks(self) -> list[str]:
        return [counted(sum(len(seeds) for seeds in self.seeds), "component")] * len(self.numbers.indices)


def _moments(rows: Array, weight: Array, instead: Array) -> tuple[Array, Array]:
    """Weighted mean and variance of the known cells of each column; ``instead`` where none is known."""
    known = ~np.isnan(rows) * weight[:, None]
    mass = known.sum(axis=0)
    some, filled = np.where(mass > 0, mass, 1.0), np.where(np.isnan(rows), 0.0, rows - instead)
    shift = (known * filled).sum(axis=0) / some
    return instead + shift, (known * (filled - shift) ** 2).sum(axis=0) / some


def _centers(rows: Array, weight: Array, count: int, seed: int) -> Array:
    """Centers among rows that may repeat, of which there may be fewer than centers, or none."""
    if not len(rows):
        return np.zeros((1, rows.shape[1]))
    distinct, row = np.unique(rows, axis=0, return_inverse=True)
    mass = np.bincount(row.ravel(), weight, minlength=len(distinct))
    return clusters.centers(distinct, mass, min(count, len(distinct)), seed)


def _warn_of_few(found: Sequence[Array], counts: Array, rows: Array) -> None:
    """A sentence on classes with too few rows; one with none at all is another matter."""
    wanted = np.broadcast_to(counts, max(len(found), counts.size))[: len(found)]
    few = [f"{c} ({len(own)} rows)" for c, own in enumerate(found) if rows[c] and len(own) < wanted[c]]
    if few:
        warnings.warn(
            f"fewer distinct rows than components in class number {', '.join(few)}: such a class gets one component a row",
            FewRowsWarning,
            stacklevel=8,
        )


def _same(left: Sequence[Array], right: Sequence[Array]) -> bool:
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))
