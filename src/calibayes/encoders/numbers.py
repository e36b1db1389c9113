"""Columns of numbers: unchanged, as indicators of a threshold, or as counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_columns, require_finite
from calibayes.encoders.encoder import DataIndependent
from calibayes.kernels.event_counts import columns_where, is_sparse
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table, numeric_matrix


@dataclass(frozen=True)
class Numbers(DataIndependent):
    """Numbers unchanged (NaN where missing), with a center about which moments are summed and a variance per column.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Gaussian
    >>> X, y = [[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("numbers", Gaussian(), every, Numbers())]).fit(X, y).predict([[4.0]])
    array([1])
    """

    indices: tuple[int, ...] = ()
    center: Array = field(default_factory=lambda: np.zeros(0))
    variance: Array = field(default_factory=lambda: np.zeros(0))

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Numbers:
        return Numbers(tuple(indices), *summary.moments(indices))

    def verify(self) -> None:
        require_columns("indices", self.indices)
        require_finite("center", self.center, (len(self.indices),))
        require_finite("variance", self.variance, (len(self.indices),), least=0.0)

    def encode(self, table: Table) -> Array:
        return numeric_matrix(table, self.indices)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {"center": self.center, "variance": self.variance}


@dataclass(frozen=True)
class Flags(DataIndependent):
    """1 for numbers above a threshold, else 0, NaN where missing; without a threshold all values must be 0 or 1.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Bernoulli
    >>> X, y = [[1.0], [2.0], [5.0], [6.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("large", Bernoulli(1.0), every, Flags(threshold=3.0))]).fit(X, y).predict([[4.0]])
    array([1])
    """

    threshold: float | None = 0.0
    indices: tuple[int, ...] = ()

    sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"a threshold must be finite, got {self.threshold}")

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Flags:
        summary.check_numbers(indices)
        return replace(self, indices=tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numeric_matrix(table, self.indices, booleans=True)
        if self.threshold is not None:
            return _above(columns, self.threshold)
        invalid = columns_where(columns, lambda values: ~(np.isin(values, (0, 1)) | np.isnan(values)))
        if len(invalid):
            name = table.names[self.indices[invalid[0]]]
            raise ValueError(f"column {name!r} has values other than 0 and 1: give a threshold (binarize)")
        return columns.astype(np.float64)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True)
class Counts(DataIndependent):
    """Counts: numbers that are not negative, unchanged. Raises ValueError if one is negative.

    ``reader`` is what reads them, for the error message.
    """

    indices: tuple[int, ...] = ()
    reader: str = "a model of counts"

    sparse: ClassVar[bool] = True

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Counts:
        summary.check_numbers(indices)
        return replace(self, indices=tuple(indices))

    def encode(self, table: Table) -> Array:
        columns = numeric_matrix(table, self.indices, booleans=True)
        if table.value_range(columns)[0] >= 0:
            return columns
        # The minimum is NaN if a value is missing: then there may be no negative one.
        negative = columns_where(columns, lambda values: values < 0)
        if len(negative):
            raise ValueError(
                f"Negative values in data passed to {self.reader} (input X): "
                f"column {table.names[self.indices[negative[0]]]!r} cannot hold counts"
            )
        return columns

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return list(encoded.T)

    def layout(self) -> Mapping[str, Any]:
        return {}


def _above(columns: Array, threshold: float) -> Array:
    """1 for numbers above a threshold, else 0; NaN stays. Raises ValueError if a sparse table would become dense."""
    if not is_sparse(columns):
        return np.where(np.isnan(columns), np.nan, columns > threshold)
    if threshold < 0:
        raise ValueError(
            f"zero is above the threshold (binarize) {threshold:g}: a sparse table would be all ones"
        )
    return (columns > threshold).astype(np.float64)
