"""What kernel densities share: cells, bandwidths and a pooled prior, found in the counts of the start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.counts.pseudo_counts import cell_by_cell, floored
from calibayes.families.kernel.bandwidths import Bandwidth, Silverman, check_rule
from calibayes.families.kernel.cells import Cells, cells_of
from calibayes.kernels.levels import counts

PRIOR_ROWS = 3.0
HALF_A_ROW = 0.5
"""What each cell of a column has in the pooled counts beside its rows: no class holds a cell for impossible. The cells of
a pair of columns share what the cells of both have."""


@dataclass(frozen=True)
class Smoothed(ABC):
    """
    Parameters
    ----------
    bandwidth : Bandwidth, default=Silverman()
        A rule of `calibayes.families.bandwidths`.
    prior_rows : float, default=3
        Rows in each class that lie as those of all classes together do: the mode of a Dirichlet prior on the smoothed
        counts. With 0 it is the plain kernel density, whose cells have a least share of 1e-12.
    """

    bandwidth: Bandwidth = field(default_factory=Silverman)
    prior_rows: float = PRIOR_ROWS
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)
    bandwidths: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    """In cells, (k, d), once prepared."""
    pooled: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    """Probabilities of the cells in all classes together, once prepared."""

    reads: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.prior_rows) and self.prior_rows >= 0):
            raise ValueError(f"prior_rows must be finite and must not be negative, got {self.prior_rows}")
        check_rule(self.bandwidth)

    @abstractmethod
    def _margins(self, count: Array) -> list[Array]:
        """Counts on the cells of each column alone, (k, cells) each."""

    @abstractmethod
    def _smooth(self, count: Array) -> Array:
        """Counts, shared out among neighbors."""

    @abstractmethod
    def _totals(self, count: Array) -> Array:
        """Sum over the cells that share one unit of probability, repeated for each of them."""

    @abstractmethod
    def _log_volumes(self) -> Array:
        """log of the volume of each cell, as it lies in the counts of a class."""

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        margins = self._margins(np.maximum(start["count"], 0.0))
        volumes = self._by_column(self._log_volume)
        found = np.zeros((len(start["count"]), len(margins)))
        for j, (margin, volume, ordered) in enumerate(zip(margins, volumes, self._ordered, strict=True)):
            if ordered:
                found[:, j] = self.bandwidth.cells(margin[:, :ordered], volume[:ordered], self._dimension)
        wide = replace(self, bandwidths=found)
        whole = np.maximum(wide._smooth((pooled or start)["count"]).sum(axis=0), 0.0)
        whole = whole + HALF_A_ROW * self._first[-1] / whole.size
        return replace(wide, pooled=whole / self._totals(whole))

    _dimension: ClassVar[int] = 1
    """Number of columns of each density."""

    @cached_property
    def _first(self) -> Array:
        return counts.offsets(self.layout.levels)

    @cached_property
    def _ordered(self) -> Array:
        return np.array(self.layout.ordered or (0,) * len(self.layout.levels))

    @cached_property
    def _log_volume(self) -> Array:
        return self.layout.log_volume if len(self.layout.log_volume) else np.zeros(self._first[-1])

    @cached_property
    def _cells(self) -> Cells:
        return cells_of(self.layout)

    def _by_column(self, table: Array) -> list[Array]:
        """The cells of each column of a table that has all of them side by side."""
        return np.split(table, self._first[1:-1], axis=-1)

    def parameters(self, statistics: Arrays) -> Arrays:
        count = np.maximum(self._smooth(statistics["count"]), 0.0) + self.prior_rows * self.pooled
        count = floored(count, self._totals(count))
        return {"log_density": np.log(count) - np.log(self._totals(count)) - self._log_volumes()}

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return cell_by_cell(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].reshape(len(statistics["count"]), -1))

    def has_hidden(self, columns: Array) -> bool:
        return False  # what is not known is not counted, whatever the parameters

    def conjugate(self) -> Self:
        return self if self.prior_rows else replace(self, prior_rows=PRIOR_ROWS)

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        return float(self.prior_rows * np.sum(self.pooled * self._log_probability(parameters)))

    def _log_probability(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["log_density"] + self._log_volumes())
