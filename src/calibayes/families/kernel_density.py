"""Columns with kernel densities, independent given the class: counts on cells, smoothed over neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from calibayes.core.protocols import Admission, Array, Arrays, Layout
from calibayes.families.bandwidths import Bandwidth, Silverman
from calibayes.families.cells import Cells, cells_of
from calibayes.families.pseudo_counts import floored
from calibayes.kernels import counts
from calibayes.kernels.smoothing import smooth

PRIOR_ROWS = 3.0
HALF_A_ROW = 0.5
"""What each cell has in the pooled counts beside its rows: no class holds a cell for impossible."""


@dataclass(frozen=True)
class KernelDensity:
    """One density for each class and column, smoothed over the cells that lie in order; others stand alone.

    Columns are bins, points of a grid (`calibayes.tables.Grid`) or levels, as their encoder says. The counts are the
    statistics; smoothing them, adding the prior and normalising them is the learner. Bandwidths and prior are found in
    the counts of the start, and then fixed. A density that is smoothed is not the one of highest likelihood: rules that
    climb are guarded by their step control. A missing cell says nothing.

    Parameters
    ----------
    bandwidth : Bandwidth
        A rule of `calibayes.families.bandwidths`.
    prior_rows : float, default=3
        Rows, for each class and column, that lie as those of all classes together do: the mode of a Dirichlet prior
        on the smoothed counts. With 0 it is the plain kernel density, whose cells have a least share of 1e-12.
    """

    bandwidth: Bandwidth = field(default_factory=Silverman)
    prior_rows: float = PRIOR_ROWS
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False)
    bandwidths: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)
    """In cells, (k, d), once prepared."""
    pooled: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    """Probabilities of the cells in all classes together, (cells,), once prepared."""

    reads: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.prior_rows) and self.prior_rows >= 0):
            raise ValueError(f"prior_rows must be finite and must not be negative, got {self.prior_rows}")

    def bind(self, layout: Layout) -> KernelDensity:
        return replace(self, layout=layout)

    # -- what stays fixed ------------------------------------------------------------------------------------------

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> KernelDensity:
        found = replace(self, bandwidths=self._found_bandwidths(np.maximum(start["count"], 0.0)))
        everything = found._smoothed((pooled or start)["count"]).sum(axis=0)
        whole = np.maximum(everything, 0.0) + HALF_A_ROW
        return replace(found, pooled=whole / counts.sums_by_column(whole, self._first))

    def _found_bandwidths(self, count: Array) -> Array:
        found = np.zeros((len(count), len(self.layout.columns)))
        for j, (start, ordered) in enumerate(zip(self._first, self._ordered, strict=False)):
            if ordered:
                run = slice(start, start + ordered)
                found[:, j] = self.bandwidth.cells(count[:, run], self._log_volume[run])
        return found

    @property
    def _first(self) -> Array:
        return counts.offsets(self.layout.levels)

    @property
    def _ordered(self) -> Array:
        return np.array(self.layout.ordered or (0,) * len(self.layout.levels))

    @property
    def _log_volume(self) -> Array:
        return self.layout.log_volume if len(self.layout.log_volume) else np.zeros(self._first[-1])

    @property
    def _cells(self) -> Cells:
        return cells_of(self.layout)

    def _runs(self) -> Iterator[tuple[Array, Array]]:
        """Columns with equally many ordered cells, and these, (columns, cells)."""
        for size in np.unique(self._ordered[self._ordered > 0]):
            columns = np.flatnonzero(self._ordered == size)
            yield columns, self._first[columns][:, None] + np.arange(size)

    def _smoothed(self, count: Array) -> Array:
        result = np.array(count, dtype=np.float64)
        for columns, cells in self._runs():
            result[:, cells] = smooth(count[:, cells], self.bandwidths[:, columns])
        return result

    # -- the learner -----------------------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": self._cells.counts(columns, weights)}

    def parameters(self, statistics: Arrays) -> Arrays:
        count = np.maximum(self._smoothed(statistics["count"]), 0.0) + self.prior_rows * self.pooled
        count = floored(count, counts.sums_by_column(count, self._first))
        log_probability = np.log(count) - np.log(counts.sums_by_column(count, self._first))
        return {"log_density": log_probability - self._log_volume}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.total(columns, parameters["log_density"])

    def admit(self, current: Arrays, proposed: Arrays) -> Admission:
        """A cell whose count would fall below zero keeps its value."""
        keep = ~(proposed["count"] >= 0)
        count = np.where(keep, current["count"], proposed["count"])
        return Admission({"count": count}, int(keep.sum()), np.zeros(len(count), dtype=bool))

    # -- abilities -------------------------------------------------------------------------------------------------

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def hidden(self, columns: Array) -> bool:
        return False  # a missing cell is not counted, whatever the parameters

    def conjugate(self) -> KernelDensity:
        return self if self.prior_rows else replace(self, prior_rows=PRIOR_ROWS)

    def exact(self) -> KernelDensity:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        log_probability = parameters["log_density"] + self._log_volume
        return float(self.prior_rows * np.sum(self.pooled * log_probability))

    def _tables(self, parameters: Arrays) -> list[Array]:
        """Probabilities of the cells of each column, (k, cells)."""
        probability = np.exp(parameters["log_density"] + self._log_volume)
        return np.split(probability, self._first[1:-1], axis=1)

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = [counts.draw(table[classes], rng) for table in self._tables(parameters)]
        rows = self._cells.spread(np.stack(drawn, axis=1), rng)
        return rows if given is None else np.where(self._cells.missing(given), rows, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        tables = self._tables(parameters)
        likely = [self._cells.middle(posterior @ table, j) for j, table in enumerate(tables)]
        return np.where(self._cells.missing(columns), np.stack(likely, axis=1), columns)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.layout.columns

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.terms(columns, parameters["log_density"])

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].sum(axis=0))

    def regroup(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": counts.regrouped(statistics["count"], codes, levels)}
