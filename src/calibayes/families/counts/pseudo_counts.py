"""What families that count share: a Dirichlet prior, given by pseudo-counts or by its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.priors import Dirichlet

LEAST_SHARE = 1e-12
"""Least share of a cell in its column: an empty cell is nearly, not wholly, impossible."""


def floored(count: Array, total: Array) -> Array:
    """Counts with no cell below the least share of its column's total; all equal where the total is nothing."""
    return np.maximum(count, LEAST_SHARE * np.where(total > 0, total, 1.0))


def cell_by_cell(current: Arrays, proposed: Arrays) -> ValidStatistics:
    """A cell whose count would fall below zero keeps its value."""
    keep = ~(proposed["count"] >= 0)
    count = np.where(keep, current["count"], proposed["count"])
    return ValidStatistics({"count": count}, int(keep.sum()), np.zeros(len(count), dtype=bool))


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
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Dirichlet):
            raise ValueError(f"the prior of counts is a Dirichlet(), got {self.prior!r}")
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

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        return self

    def exact(self) -> Self:
        return self

    def conjugate(self) -> Self:
        return self if np.any(self.alpha) or self.prior else replace(self, prior=Dirichlet())
