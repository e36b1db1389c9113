"""Columns of numbers: unchanged (for mixtures with clusters of each class), as indicators of a threshold, or as counts."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calibayes.core.notices import counted, warn
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_columns, require_finite
from calibayes.encoders.encoder import DataIndependent, FixedLayout, is_same
from calibayes.kernels import cut_points
from calibayes.kernels.event_counts import columns_where, is_sparse
from calibayes.tables.summary import TableSummary, content_order
from calibayes.tables.table import Table, numeric_matrix

SCALED_DIGITS = 9
"""Decimals of scaled rows by which rows are told apart and ordered."""


class PlainNumbers(DataIndependent):
    """Base of encoders of numbers, also in sparse tables, that learn nothing from the columns."""

    sparse: ClassVar[bool] = True

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Self:
        summary.check_numbers(indices)
        fitted: Self = replace(self, indices=tuple(indices))  # type: ignore[type-var]
        return fitted

    def layout(self) -> Mapping[str, Any]:
        return {}


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

    def layout(self) -> Mapping[str, Any]:
        return {"center": self.center, "variance": self.variance}


@dataclass(frozen=True)
class Flags(PlainNumbers):
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

    def __post_init__(self) -> None:
        given: Any = self.threshold
        if given is not None and not (isinstance(given, numbers.Real) and math.isfinite(float(given))):
            raise ValueError(f"a threshold (binarize) must be a finite number or None, got {given!r}")

    def encode(self, table: Table) -> Array:
        columns = numeric_matrix(table, self.indices, booleans=True)
        if self.threshold is not None:
            return _above(columns, self.threshold)
        invalid = columns_where(columns, lambda values: ~(np.isin(values, (0, 1)) | np.isnan(values)))
        if len(invalid):
            name = table.names[self.indices[invalid[0]]]
            raise ValueError(f"column {name!r} has values other than 0 and 1: give a threshold (binarize)")
        return columns.astype(np.float64)


@dataclass(frozen=True)
class Counts(PlainNumbers):
    """Counts: numbers that are not negative, unchanged. Raises ValueError if one is negative.

    ``reader`` is what reads them, for the error message.
    """

    indices: tuple[int, ...] = ()
    reader: str = "a model of counts"

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


def _above(columns: Array, threshold: float) -> Array:
    """1 for numbers above a threshold, else 0; NaN stays. Raises ValueError if a sparse table would become dense."""
    if not is_sparse(columns):
        return np.where(np.isnan(columns), np.nan, columns > threshold)
    if threshold < 0:
        raise ValueError(
            f"zero is above the threshold (binarize) {threshold:g}: a sparse table would be all ones"
        )
    return (columns > threshold).astype(np.float64)


# -- Numbers unchanged, with clusters of each class from which the components of a mixture are started -------


class FewRowsWarning(UserWarning):
    """A class has fewer distinct rows than the requested number of components.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", FewRowsWarning)  # an error instead of a warning
    """


@dataclass(frozen=True)
class Clusters(FixedLayout):
    """Numbers unchanged, with k-means centers of the rows of each class: initial means of mixture components.

    k-means runs on columns divided by their standard deviation. Rows without a label are ignored; a missing value counts
    as the mean of its column in the class. Of more than 131,072 rows, about as many are used, drawn by row number. The centers do not depend on the order of the rows, and a row of weight w
    counts as w rows. A class with fewer distinct rows than components gets one component for each of them, with a
    `FewRowsWarning`.

    Parameters
    ----------
    components : int or sequence of int, default=2
        Number of components of every class, or of each class in order.
    seed : int, default=0
        Seed of the random rows from which k-means is started.

    Examples
    --------
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> X, y = [[0.0], [0.5], [9.0], [9.5], [4.0], [4.5], [5.0], [5.5]], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> MixtureDiscriminantAnalysis(n_components=[2, 1], random_state=0).fit(X, y).score(X, y)  # its encoder is Clusters
    1.0
    """

    components: int | Sequence[int] = 2
    seed: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    seeds: tuple[Array, ...] = ()
    """Cluster centers of each class, (components, d)."""

    def __post_init__(self) -> None:
        counts = np.asarray(self.components)
        if counts.dtype.kind not in "iu" or counts.ndim > 1 or counts.size == 0 or (counts < 1).any():
            raise ValueError(
                f"components must be a positive integer, or one for each class, got {self.components!r}"
            )

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Self:
        unweighted, (table, weight, codes) = Numbers().fit(summary, indices), summary.sample
        rows = unweighted.encode(table).astype(np.float64)
        numbers = replace(unweighted, variance=_weighted_moments(rows, weight, unweighted.center)[1])
        fitted = replace(self, numbers=numbers)
        if codes is None:
            return fitted
        return replace(fitted, seeds=fitted._class_centers(rows, weight, codes, summary.k))

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        counts, d = np.asarray(self.components), len(self.numbers.indices)
        require(counts.ndim == 0 or len(self.seeds) <= len(counts), "seeds has more classes than components")
        requested = np.broadcast_to(counts, max(len(self.seeds), counts.size))
        for seeds, count in zip(self.seeds, requested, strict=False):
            require_finite("seeds", seeds, (None, d))
            require(0 < len(seeds) <= count, f"seeds of a class must be 1 to {count} rows, got {len(seeds)}")

    def encode(self, table: Table) -> Array:
        return self.numbers.encode(table)

    def decode(self, encoded: Array, rng: np.random.Generator | None) -> list[Array]:
        return self.numbers.decode(encoded, rng)

    def _class_centers(self, rows: Array, weight: Array, codes: Array, k: int) -> tuple[Array, ...]:
        """Cluster centers of each of k classes, (components, d) in the units of the columns."""
        counts = np.asarray(self.components)
        if counts.ndim and len(counts) < k:
            raise ValueError(f"components are given for {len(counts)} classes, but there are {k}")
        variance = self.numbers.variance
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        overall_mean, _ = _weighted_moments(rows, weight, self.numbers.center)
        class_centers = []
        for c, count in enumerate(counts[:k] if counts.ndim else np.full(k, counts)):
            in_class = codes == c
            class_rows, class_weight = rows[in_class], weight[in_class]
            mean, _ = _weighted_moments(class_rows, class_weight, overall_mean)
            scaled = (np.where(np.isnan(class_rows), mean, class_rows) - mean) / deviation
            centers = _centers(scaled, class_weight, int(count), self.seed)
            class_centers.append(centers * deviation + mean)
        _warn_of_few_rows(class_centers, counts, np.bincount(codes[codes >= 0], minlength=k))
        return tuple(class_centers)

    def layout(self) -> Mapping[str, Any]:
        return {**self.numbers.layout(), "seeds": self.seeds}

    @property
    def data_dependence(self) -> str:
        has_several = any(len(seeds) > 1 for seeds in self.seeds)
        return "clusters are found in the training rows" if has_several else ""

    def unite(self, other: Self) -> tuple[Self, None, None]:
        if (self.data_dependence or other.data_dependence) and not is_same(self.seeds, other.seeds):
            raise ValueError("models with different clusters (initial components) cannot be merged")
        return self, None, None

    def remarks(self) -> list[str]:
        return [counted(sum(len(seeds) for seeds in self.seeds), "component")] * len(self.numbers.indices)


def _weighted_moments(rows: Array, weight: Array, default: Array) -> tuple[Array, Array]:
    """Weighted mean and variance of the known values of each column, (d,) each; the mean is ``default`` without any."""
    known = ~np.isnan(rows) * weight[:, None]
    total = known.sum(axis=0)
    divisor, filled = np.where(total > 0, total, 1.0), np.where(np.isnan(rows), 0.0, rows - default)
    shift = (known * filled).sum(axis=0) / divisor
    return default + shift, (known * (filled - shift) ** 2).sum(axis=0) / divisor


def _centers(scaled: Array, weight: Array, count: int, seed: int) -> Array:
    """k-means centers of centered rows, at most as many as there are distinct ones; a row of zeros if there are no rows.

    Distinct rows are ordered by the ranks of the numbers in each column, whatever the units or the order of the columns.
    """
    if not len(scaled):
        return np.zeros((1, scaled.shape[1]))
    spread = float(np.abs(scaled[weight > 0]).max(initial=0.0)) or 1.0
    scaled = scaled / spread
    rounded = scaled.round(SCALED_DIGITS) + 0.0  # means that fill gaps have rounding errors
    _, first, positions = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
    weights = np.bincount(positions.ravel(), weight, minlength=len(first))
    ranks = [np.unique(column, return_inverse=True)[1] for column in rounded[first].T]
    order = content_order(np.transpose(ranks), weights, np.zeros(len(first), dtype=np.intp))
    return spread * cut_points.cluster_centers(
        scaled[first[order]], weights[order], min(count, len(first)), seed
    )


def _warn_of_few_rows(class_centers: Sequence[Array], counts: Array, rows: Array) -> None:
    """Warn of classes with fewer distinct rows than components; classes without rows are refused elsewhere."""
    requested = np.broadcast_to(counts, max(len(class_centers), counts.size))[: len(class_centers)]
    few = [
        f"{c} ({counted(len(centers), 'row')})"
        for c, centers in enumerate(class_centers)
        if rows[c] and len(centers) < requested[c]
    ]
    if few:
        warn(
            f"fewer distinct rows than components in class number {', '.join(few)}: "
            "such a class gets one component for each distinct row",
            FewRowsWarning,
        )
