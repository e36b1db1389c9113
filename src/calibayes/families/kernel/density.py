"""Columns with independent kernel densities given the class: kernel naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.kernel.smoothed_counts import SmoothedCounts, cell_encoding
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.counts import smooth, smoothing_matrices

LARGEST_MATRICES = 2**22
"""Most elements of smoothing matrices that are stored: 32 MiB."""


class SmoothingMatrices(NamedTuple):
    """Kernel matrices of the columns with ordered cells, padded to the largest number of cells."""

    cells: Array
    """Position of each cell, (columns, largest number of cells); that of the padding cell for missing ones."""
    is_cell: Array
    """False for padding, (columns, largest number of cells)."""
    matrices: Array
    """Share of each cell's count that every cell receives, (columns, cells, cells)."""


@dataclass(frozen=True)
class KernelDensity(SmoothedCounts):
    """One kernel density for each class and column, over the ordered cells of the column.

    Columns are bins, points of a grid (`calibayes.encoders.Grid`) or levels, as their encoder determines; cells without
    an order are not smoothed. The statistics are counts on cells; the parameters are the log density of the smoothed
    counts with the prior added. Bandwidths and prior are fixed by `prepare`. A smoothed density does not maximize the
    likelihood: rules that ascend an objective rely on their step control. Missing values are skipped, and filled by the
    most probable bin or level, or by the mean position on a grid.
    """

    @property
    def _table_shape(self) -> tuple[int, ...]:
        return (self.layout.cells,)

    def _margins(self, count: Array) -> list[Array]:
        return self._by_column(count)

    def _totals(self, count: Array) -> Array:
        return counts.sums_by_column(count, self._first)

    def _log_volumes(self) -> Array:
        return self._log_volume

    def _smooth(self, count: Array) -> Array:
        smoothed = np.array(count, dtype=np.float64)
        stored = self._stored_matrices
        if stored is None:
            for columns, cells in self._columns_by_size:
                smoothed[:, cells] = smooth(count[:, cells], self.bandwidths[:, columns])
            return smoothed
        padded = np.concatenate([smoothed, np.zeros((len(count), 1))], axis=1)  # the last cell is the padding
        by_column = np.matmul(padded[:, stored.cells].transpose(1, 0, 2), stored.matrices)
        smoothed[:, stored.cells[stored.is_cell]] = by_column.transpose(1, 0, 2)[:, stored.is_cell]
        return smoothed

    @cached_property
    def _stored_matrices(self) -> SmoothingMatrices | None:
        """Kernel matrices, if all classes have the same bandwidths and the matrices are small; else None."""
        columns = np.flatnonzero(self._ordered > 0)
        sizes, widths = self._ordered[columns], self.bandwidths[:, columns]
        most = int(sizes.max(initial=0))
        if not len(columns) or (widths != widths[:1]).any() or len(columns) * most**2 > LARGEST_MATRICES:
            return None
        is_cell = np.arange(most) < sizes[:, None]
        cells = np.where(is_cell, self._first[columns][:, None] + np.arange(most), self._first[-1])
        return SmoothingMatrices(cells, is_cell, smoothing_matrices(widths[0], sizes))

    @cached_property
    def _columns_by_size(self) -> list[tuple[Array, Array]]:
        """Columns with equally many ordered cells, and the positions of these, (columns, cells)."""
        sizes = np.unique(self._ordered[self._ordered > 0])
        by_size = [np.flatnonzero(self._ordered == size) for size in sizes]
        return [
            (columns, self._first[columns][:, None] + np.arange(size))
            for columns, size in zip(by_size, sizes, strict=True)
        ]

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": self._cells.counts(columns, weights)}

    def statistics_by_column(self, columns: Sequence[tuple[Array, Array]]) -> Arrays:
        encodings = [
            cell_encoding(replace(self.layout, levels=(size,), ordered=self.layout.ordered[j : j + 1]))
            for j, size in enumerate(self.layout.levels)
        ]
        tables = [
            encoding.counts(entries[:, None], weights)
            for encoding, (entries, weights) in zip(encodings, columns, strict=True)
        ]
        return {"count": np.concatenate(tables, axis=1)}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.total(columns, parameters["log_density"])

    def _tables(self, parameters: Arrays) -> list[Array]:
        """Probabilities of the cells of each column, (k, cells)."""
        return self._by_column(np.exp(self._log_probability(parameters)))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = [counts.draw(table[classes], rng) for table in self._tables(parameters)]
        rows = self._cells.sample_within(np.stack(drawn, axis=1), rng)
        return rows if given is None else np.where(self._cells.missing(given), rows, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        has_missing_cell = self.layout.gappy or (False,) * len(self.layout.levels)
        tables = [  # the cell for missing values is no candidate
            table[:, : max(table.shape[1] - last_is_missing, 1)]
            for table, last_is_missing in zip(self._tables(parameters), has_missing_cell, strict=True)
        ]
        estimates = [self._cells.point_estimate(posterior @ table, j) for j, table in enumerate(tables)]
        return np.where(self._cells.missing(columns), np.stack(estimates, axis=1), columns)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.terms(columns, parameters["log_density"])

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].sum(axis=0))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": counts.recode_counts(statistics["count"], codes, levels)}
