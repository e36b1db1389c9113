"""Columns with kernel densities, independent given the class: counts on cells, smoothed over neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.kernel.smoothed import Smoothed
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.smoothing import smooth, smoothing_matrices

MOST_KEPT = 2**22
"""Most cells of kernels that are kept as matrices: 32 MiB."""


class SmoothingMatrices(NamedTuple):
    """Kernels of columns with ordered cells."""

    cells: Array
    """Where the cells of each column lie, (columns, most); behind the last of all where a column has fewer."""
    there: Array
    matrices: Array


@dataclass(frozen=True)
class KernelDensity(Smoothed):
    """One density for each class and column, smoothed over the cells that lie in order; others stand alone.

    Columns are bins, points of a grid (`calibayes.tables.Grid`) or levels, as their encoder says. The counts are the
    statistics; smoothing them, adding the prior and normalizing them is the learner. Bandwidths and prior are found in
    the counts of the start, and then fixed. A density that is smoothed is not the one of highest likelihood: rules that
    climb are guarded by their step control. A missing cell says nothing; it is filled by the most probable bin or
    level, or by the mean position on a grid.
    """

    def _margins(self, count: Array) -> list[Array]:
        return self._by_column(count)

    def _totals(self, count: Array) -> Array:
        return counts.sums_by_column(count, self._first)

    def _log_volumes(self) -> Array:
        return self._log_volume

    def _smooth(self, count: Array) -> Array:
        result = np.array(count, dtype=np.float64)
        kept = self._kept
        if kept is None:
            for columns, cells in self._runs:
                result[:, cells] = smooth(count[:, cells], self.bandwidths[:, columns])
            return result
        wide = np.concatenate(
            [result, np.zeros((len(count), 1))], axis=1
        )  # what a column lacks is the last cell
        smoothed = np.matmul(wide[:, kept.cells].transpose(1, 0, 2), kept.matrices)
        result[:, kept.cells[kept.there]] = smoothed.transpose(1, 0, 2)[:, kept.there]
        return result

    @cached_property
    def _kept(self) -> SmoothingMatrices | None:
        """The kernels as matrices, where all classes have the same ones and they are small."""
        columns = np.flatnonzero(self._ordered > 0)
        sizes, widths = self._ordered[columns], self.bandwidths[:, columns]
        most = int(sizes.max(initial=0))
        if not len(columns) or (widths != widths[:1]).any() or len(columns) * most**2 > MOST_KEPT:
            return None
        there = np.arange(most) < sizes[:, None]
        cells = np.where(there, self._first[columns][:, None] + np.arange(most), self._first[-1])
        return SmoothingMatrices(cells, there, smoothing_matrices(widths[0], sizes))

    @cached_property
    def _runs(self) -> list[tuple[Array, Array]]:
        """Columns with equally many ordered cells, and these, (columns, cells)."""
        sizes = np.unique(self._ordered[self._ordered > 0])
        chosen = [np.flatnonzero(self._ordered == size) for size in sizes]
        return [
            (columns, self._first[columns][:, None] + np.arange(size))
            for columns, size in zip(chosen, sizes, strict=True)
        ]

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": self._cells.counts(columns, weights)}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.total(columns, parameters["log_density"])

    def _tables(self, parameters: Arrays) -> list[Array]:
        """Probabilities of the cells of each column, (k, cells)."""
        return self._by_column(np.exp(self._log_probability(parameters)))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = [counts.draw(table[classes], rng) for table in self._tables(parameters)]
        rows = self._cells.spread(np.stack(drawn, axis=1), rng)
        return rows if given is None else np.where(self._cells.missing(given), rows, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        gaps = self.layout.gappy or (False,) * len(self.layout.levels)
        tables = [  # what is missing is to be guessed: that it is missing would be no guess
            table[:, : max(table.shape[1] - gap, 1)]
            for table, gap in zip(self._tables(parameters), gaps, strict=True)
        ]
        likely = [self._cells.middle(posterior @ table, j) for j, table in enumerate(tables)]
        return np.where(self._cells.missing(columns), np.stack(likely, axis=1), columns)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.layout.columns

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.terms(columns, parameters["log_density"])

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].sum(axis=0))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": counts.recode_counts(statistics["count"], codes, levels)}
