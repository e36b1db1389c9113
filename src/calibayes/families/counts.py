"""Base of families over event counts: the number of events of each column in each class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from calibayes.core.abilities import LeftOut
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import require_arrays, require_finite
from calibayes.families.density import UNBOUND
from calibayes.families.priors import Dirichlet
from calibayes.kernels import event_counts, moments
from calibayes.kernels.event_counts import is_sparse

# -- Base of families over counts: pseudo-counts of a Dirichlet prior, and counts that stay nonnegative ------

LEAST_SHARE = 1e-12
"""Smallest share of a cell in its column, so that the log probability of an empty cell is finite."""


def floored(count: Array, total: Array, pseudo_count: Array | float = 0.0) -> Array:
    """Counts raised to the least share of their column's total; all equal where the total is 0.

    The floor is never above a pseudo-count that is part of the count.
    """
    least = LEAST_SHARE * np.where(total > 0, total, 1.0)
    if np.any((pseudo_count > 0) & (pseudo_count < least)):
        least = np.where(pseudo_count > 0, np.minimum(pseudo_count, least), least)
    return np.maximum(count, least)


def keep_nonnegative(current: Arrays, proposed: Arrays) -> ValidStatistics:
    """The proposed counts; a count that would be negative keeps its current value. No class is frozen as a whole."""
    negative = {name: ~(count >= 0) for name, count in proposed.items()}
    counts = {name: np.where(negative[name], current[name], count) for name, count in proposed.items()}
    frozen = sum(int(mask.sum()) for mask in negative.values())
    k = len(next(iter(counts.values())))
    return ValidStatistics(counts, frozen, np.zeros(k, dtype=bool))


@dataclass(frozen=True)
class PseudoCounts:
    """
    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, for all columns or column by column; 0 is maximum likelihood.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    """

    alpha: float | Array = 0.0
    prior: Dirichlet | None = None
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Dirichlet):
            raise ValueError(f"the prior of counts must be a Dirichlet() or None, got {self.prior!r}")
        if self.prior is not None and np.any(self.alpha):
            raise ValueError("give alpha or prior, not both")
        if not (np.isfinite(self.alpha).all() and np.all(np.asarray(self.alpha) >= 0)):
            raise ValueError(f"alpha must be finite and must not be negative, got {self.alpha}")

    def pseudo_counts(self, levels: Sequence[int]) -> Array:
        """Rows added to each level of each column, (d,)."""
        if self.prior is not None:
            return np.array([self.prior.pseudo_count(count) for count in levels])
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (len(levels),):
            raise ValueError(f"alpha has shape {alpha.shape}, but there are {len(levels)} columns")
        return np.array(np.broadcast_to(alpha, len(levels)))

    def verify(self) -> None:
        self.layout.verify()
        if self.layout.classes and np.ndim(self.alpha):
            require_finite("alpha", np.asarray(self.alpha), (len(self.layout.columns),), 0.0, "fiu")

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        return self

    def exact(self) -> Self:
        return self

    def conjugate(self) -> Self:
        return self if np.any(self.alpha) or self.prior else replace(self, prior=Dirichlet())


# -- Base of families over event counts: the number of events of each column in each class -------------------


@dataclass(frozen=True)
class EventCounts(PseudoCounts):
    """Statistics: events of each class and column (k, d), and rows of each class (k,)."""

    reads = "counts"

    @property
    def _pseudo(self) -> Array:
        d = len(self.layout.columns)
        return self.pseudo_counts([d] * d)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": event_counts.totals(columns, weights), "rows": moments.zeroth(weights)}

    def verify_statistics(self, statistics: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        require_arrays("statistics", statistics, {"count": (k, d), "rows": (k,)}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """An event count that would be negative, or a row count that would not be positive, keeps its value."""
        invalid = {"count": ~(proposed["count"] >= 0), "rows": ~(proposed["rows"] > 0)}
        counts = {name: np.where(invalid[name], current[name], value) for name, value in proposed.items()}
        frozen = sum(int(mask.sum()) for mask in invalid.values())
        return ValidStatistics(counts, frozen, np.zeros(len(counts["rows"]), dtype=bool))

    @abstractmethod
    def event_weights(self, parameters: Arrays) -> Array:
        """Contribution of one event of each column to the log density of each class, (k, d)."""

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = event_counts.as_dense(columns, len(self.layout.classes))
        return np.asarray(dense[:, None, :] * self.event_weights(parameters))

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])


# -- Exact leave-one-out probabilities of counts: a row subtracted from the counts of its class --------------

MOST_WEIGHTS = 64
"""Number of distinct row weights up to which a table is made for each of them."""


def log_share(count: Array, total: Array, empty: Array, pseudo: Array, weight: Array | float) -> Array:
    """log probability of a cell without a row of this weight in it, from counts that include pseudo-counts.

    ``total`` is that of the cell's column and ``empty`` the number of its other cells with a count of 0, which are raised to
    the least share, as `floored` does.
    """
    left = np.maximum(total - weight, 0.0)
    cell = floored(np.maximum(count - weight, 0.0), left, pseudo)
    others = np.maximum(total - count, 0.0) + LEAST_SHARE * empty * np.where(left > 0, left, 1.0)
    return np.asarray(np.log(cell) - np.log(cell + others))


def by_weight(left_out: LeftOut) -> Iterator[tuple[float, Array]] | None:
    """Each distinct weight and its rows; None if they are too many."""
    first = left_out.weight[:1]
    if (left_out.weight == first).all():
        return iter([(float(first[0]), np.arange(len(left_out.weight)))])
    weights = np.unique(left_out.weight)
    if len(weights) > MOST_WEIGHTS:
        return None
    return ((float(weight), np.flatnonzero(left_out.weight == weight)) for weight in weights)


def replace_own_class(
    density: Array, columns: Array, left_out: LeftOut, scores: Callable[[Array, float], Array]
) -> Array | None:
    """Log densities (n, k) with those of each row's own class replaced by scores without the row.

    ``scores`` are (n, k) sums of a table's entries, from rows and their weight. None if there are too many weights.
    """
    groups = by_weight(left_out)
    if groups is None:
        return None
    for weight, rows in groups:
        part = columns if len(rows) == len(density) else columns[rows]
        density[rows, left_out.codes[rows]] = scores(part, weight)[np.arange(len(rows)), left_out.codes[rows]]
    return density


def nonzero_cells(columns: Array) -> tuple[Array, Array, Array]:
    """Row, column and value of each cell that is not 0, of a dense or sparse table."""
    if is_sparse(columns):
        rows = np.repeat(np.arange(columns.shape[0]), np.diff(columns.indptr))
        return rows, np.asarray(columns.indices), np.asarray(columns.data, dtype=np.float64)
    rows, cells = np.nonzero(columns)
    return rows, cells, np.asarray(columns[rows, cells], dtype=np.float64)
