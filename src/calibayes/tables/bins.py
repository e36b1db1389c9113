"""Numbers as levels: columns cut into bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import kmeans
from calibayes.tables.encode import numbers, refuse_empty
from calibayes.tables.read import Table


@dataclass(frozen=True)
class Bins:
    """Bins around the centres that k-means finds in each column, as in the papers.

    A column with no more distinct values than bins gets one bin a value. Values beyond the ends belong to the outer
    bins. Sampled codes become their value, or numbers spread evenly over their bin.

    Parameters
    ----------
    most : int, default=5
        Largest number of bins of a column.
    """

    most: int = 5
    indices: tuple[int, ...] = ()
    edges: tuple[Array, ...] = ()
    """Ends and inner edges of each column's bins."""
    values: tuple[Array | None, ...] = ()
    """The value of each bin where a column has one bin a value."""

    def fit(self, table: Table, indices: Sequence[int], weight: Array) -> Bins:
        columns = numbers(table, indices).astype(np.float64)
        known = ~np.isnan(columns)
        refuse_empty(table, indices, ~known)
        edges = tuple(
            kmeans_edges(column[there], self.most, weight[there])
            for column, there in zip(columns.T, known.T, strict=True)
        )
        distinct = [np.unique(column[there]) for column, there in zip(columns.T, known.T, strict=True)]
        values = tuple(found if len(found) <= self.most else None for found in distinct)
        return replace(self, indices=tuple(indices), edges=edges, values=values)

    def encode(self, table: Table) -> Array:
        columns = numbers(table, self.indices)
        codes = [
            np.where(np.isnan(column), -1, np.searchsorted(edges[1:-1], column, side="right"))
            for edges, column in zip(self.edges, columns.T, strict=True)
        ]
        return np.stack(codes, axis=1)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        uniform = np.full(encoded.shape, 0.5) if rng is None else rng.random(encoded.shape)
        return [
            edges[codes] + share * (edges[codes + 1] - edges[codes]) if values is None else values[codes]
            for edges, values, codes, share in zip(self.edges, self.values, encoded.T, uniform.T, strict=True)
        ]

    def layout(self) -> Mapping[str, Any]:
        return {"levels": tuple(len(edges) - 1 for edges in self.edges)}

    def extend(self, table: Table) -> tuple[Self, None]:
        return self, None

    def unite(self, other: Self) -> tuple[Self, None, None]:
        if not all(np.array_equal(a, b) for a, b in zip(self.edges, other.edges, strict=True)):
            raise ValueError(
                "the models have different bins: numbers that were binned apart cannot be added up"
            )
        return self, None, None

    def seen_in(self, counts: Array) -> tuple[Self, None]:
        return self, None

    shaped = "bins of numbers are found in the training rows"


def kmeans_edges(column: Array, most: int, weight: Array) -> Array:
    """Midpoints between the centres of k-means in one dimension, started from even spacing."""
    values, row = np.unique(column, return_inverse=True)
    centres = values
    if len(values) > most:
        even = np.linspace(values[0], values[-1], most + 1)
        start = (even[1:] + even[:-1]) / 2
        centres = np.unique(kmeans.centres(values, np.bincount(row, weight), start))
    return np.concatenate([values[:1], (centres[1:] + centres[:-1]) / 2, values[-1:]])
