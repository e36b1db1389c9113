"""Base of families over counts: pseudo-counts of a Dirichlet prior, and counts that stay nonnegative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import require_finite
from calibayes.families.model import UNBOUND
from calibayes.families.priors import Dirichlet

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
