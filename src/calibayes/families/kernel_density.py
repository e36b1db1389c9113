"""Kernel densities: of independent columns given the class (kernel naive Bayes), or of two columns jointly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array, Arrays, Generator, Layout, ValidStatistics
from calibayes.families.counts import SkipsMissing, floored, keep_nonnegative
from calibayes.families.density import UNBOUND
from calibayes.families.kernel_bandwidths import Bandwidth, Silverman, bandwidths_in_cells, check_bandwidth
from calibayes.kernels import grids, level_counts
from calibayes.kernels.grids import Corners
from calibayes.kernels.level_counts import smooth, smoothing_matrices

# -- Base of kernel densities: counts on cells, smoothed over neighboring cells, with a prior from pooled counts
#
# The entries of binned columns are codes of cells (`Codes`), those of gridded columns positions between the points of a
# grid (`GridPositions`).

PRIOR_ROWS = 3.0
POOLED_PSEUDO_COUNT = 0.5
"""Pseudo-count of each cell of a column in the pooled counts, so that no cell has probability 0. The cells of a pair of
columns share the pseudo-counts of the cells of both."""


def cell_encoding(layout: Layout) -> Codes:
    """The encoding of a layout's columns."""
    return GridPositions(layout.levels, layout.ordered) if layout.gridded else Codes(layout.levels)


@dataclass(frozen=True)
class Codes:
    """Each entry is the code of its cell, negative where missing; the density is constant within a cell.

    These operations are others for columns of positions (`GridPositions`). A table (k, cells) has the cells of all columns
    side by side.
    """

    levels: tuple[int, ...]

    @property
    def _first(self) -> Array:
        return level_counts.offsets(self.levels)

    def missing(self, columns: Array) -> Array:
        """Which entries are missing, (n, d) booleans."""
        return np.asarray(columns < 0)

    def corners(self, columns: Array) -> Corners:
        """The cells on both sides of each entry, counted within its column."""
        local = np.where(columns < 0, np.array(self.levels), columns).astype(np.intp)
        return Corners(local, local, np.zeros(columns.shape), np.zeros(columns.shape))

    def counts(self, columns: Array, weights: Array) -> Array:
        """Sum of the weights per class and cell, (k, cells)."""
        return level_counts.weighted_counts(columns, weights, self._first)

    def terms(self, columns: Array, table: Array) -> Array:
        """Log density of each entry, (n, k, d), from that of the cells, (k, cells); 0 where an entry is missing."""
        return level_counts.look_up_each(columns, table, self._first)

    def total(self, columns: Array, table: Array) -> Array:
        """Log density of each row, (n, k): the sum of `terms` over columns."""
        return level_counts.look_up(columns, table, self._first)

    def sample_within(self, codes: Array, rng: Generator) -> Array:
        """Entries drawn from within given cells, (n, d)."""
        return codes

    def point_estimate(self, probability: Array, j: int) -> Array:
        """One entry of column j for each row, (n,), from the probabilities of its cells, (n, cells): the most probable."""
        return np.argmax(probability, axis=1)


@dataclass(frozen=True)
class GridPositions(Codes):
    """Each entry is a position on its column's grid, NaN where missing; the density is linear between points."""

    points: tuple[int, ...]

    def missing(self, columns: Array) -> Array:
        return np.isnan(columns)

    def corners(self, columns: Array) -> Corners:
        return grids.corners(columns, np.array(self.points))

    def counts(self, columns: Array, weights: Array) -> Array:
        return grids.position_counts(columns, np.array(self.points), weights, self._first)

    def terms(self, columns: Array, table: Array) -> Array:
        corners, tables = self.corners(columns), np.split(table, np.cumsum(self.levels)[:-1], axis=1)
        return np.stack([grids.interpolated(corners, j, cells) for j, cells in enumerate(tables)], axis=2)

    def total(self, columns: Array, table: Array) -> Array:
        return grids.position_scores(columns, np.array(self.points), table, self._first)

    def sample_within(self, codes: Array, rng: Generator) -> Array:
        return grids.draw_positions(codes, np.array(self.points), rng)

    def point_estimate(self, probability: Array, j: int) -> Array:
        """The mean position, given that it is on the grid."""
        inside = probability[:, : self.points[j]]
        return np.asarray(inside @ grids.mean_positions(self.points[j]) / inside.sum(axis=1))


@dataclass(frozen=True)
class SmoothedCounts(SkipsMissing, ABC):
    """
    Parameters
    ----------
    bandwidth : Bandwidth, default=Silverman()
        A rule of `calibayes.families.kernel_bandwidths`.
    prior_rows : float, default=3
        Pseudo-rows in each class, distributed as the pooled rows of all classes: a Dirichlet prior on the smoothed
        counts. With 0 the family is a plain kernel density, whose cells have a share of at least 1e-12.
    """

    bandwidth: Bandwidth = field(default_factory=Silverman)
    prior_rows: float = PRIOR_ROWS
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)
    bandwidths: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    """Bandwidths in cells, (k, d), set by `prepare`."""
    pooled: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)
    """Probabilities of the cells over all classes together, set by `prepare`."""

    reads: ClassVar[str] = "cells"
    _dimension: ClassVar[int] = 1
    """Number of columns of each density."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.prior_rows) and self.prior_rows >= 0):
            raise ValueError(f"prior_rows must be finite and must not be negative, got {self.prior_rows}")
        check_bandwidth(self.bandwidth)

    @abstractmethod
    def _margins(self, count: Array) -> list[Array]:
        """Marginal counts on the cells of each column, (k, cells) each."""

    @abstractmethod
    def _smooth(self, count: Array) -> Array:
        """Counts smoothed by the kernel."""

    @abstractmethod
    def _totals(self, count: Array) -> Array:
        """Sum over the cells of each density, broadcastable to the counts."""

    @abstractmethod
    def _log_volumes(self) -> Array:
        """Log of the volume of each cell, in the shape of the counts of one class."""

    @property
    @abstractmethod
    def _table_shape(self) -> tuple[int, ...]:
        """Shape of the counts of one class."""

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, bandwidths=np.zeros((0, 0)), pooled=np.zeros(0))

    def verify(self) -> None:
        self.layout.verify()
        k, d = len(self.layout.classes), len(self.layout.columns)
        verify.require_length("levels", self.layout.levels, d)
        if k and (self.bandwidths.size or self.pooled.size):  # prepared
            verify.require_finite("bandwidths", self.bandwidths, (k, d), least=0.0)
            verify.require_finite("pooled", self.pooled, self._table_shape, least=0.0)
            verify.require_sums_of_one("pooled", self._totals(self.pooled))

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = (len(self.layout.classes), *self._table_shape)
        verify.require_arrays("parameters", parameters, {"log_density": shape})
        probability = verify.probabilities_of("log_density", self._log_probability(parameters))
        verify.require_sums_of_one("log_density", self._totals(probability))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = (len(self.layout.classes), *self._table_shape)
        verify.require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the bandwidths and the pooled prior fixed from the counts of the data."""
        margins = self._margins(np.maximum(start["count"], 0.0))
        widths = bandwidths_in_cells(self.bandwidth, self.layout, margins, self._dimension, fewest=1)
        prepared = replace(self, bandwidths=widths)
        total = np.maximum(prepared._smooth((pooled or start)["count"]).sum(axis=0), 0.0)
        total = total + POOLED_PSEUDO_COUNT * self._first[-1] / total.size
        return replace(prepared, pooled=total / self._totals(total))

    @cached_property
    def _first(self) -> Array:
        """Position of the first cell of each column, and the number of all cells, (d + 1,)."""
        return level_counts.offsets(self.layout.levels)

    @cached_property
    def _ordered(self) -> Array:
        """Number of ordered cells of each column, (d,)."""
        return np.array(self.layout.ordered or (0,) * len(self.layout.levels))

    @cached_property
    def _log_volume(self) -> Array:
        """Log of the width of each cell, all columns side by side."""
        return self.layout.log_volume if len(self.layout.log_volume) else np.zeros(self._first[-1])

    @cached_property
    def _cells(self) -> Codes:
        return cell_encoding(self.layout)

    def _by_column(self, table: Array) -> list[Array]:
        """The cells of each column, from an array with the cells of all columns side by side."""
        return np.split(table, self._first[1:-1], axis=-1)

    def parameters(self, statistics: Arrays) -> Arrays:
        count = np.maximum(self._smooth(statistics["count"]), 0.0) + self.prior_rows * self.pooled
        count = floored(count, self._totals(count))
        return {"log_density": np.log(count) - np.log(self._totals(count)) - self._log_volumes()}

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].reshape(len(statistics["count"]), -1))

    def conjugate(self) -> Self:
        return self if self.prior_rows else replace(self, prior_rows=PRIOR_ROWS)

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        return float(self.prior_rows * np.sum(self.pooled * self._log_probability(parameters)))

    def _log_probability(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["log_density"] + self._log_volumes())


# -- Columns with independent kernel densities given the class: kernel naive Bayes ---------------------------

LARGEST_MATRICES = 2**22
"""Most elements of smoothing matrices that are stored: 32 MiB."""


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
        return level_counts.sums_by_column(count, self._first)

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
        cells, is_cell, matrices = stored
        by_column = np.matmul(padded[:, cells].transpose(1, 0, 2), matrices)
        smoothed[:, cells[is_cell]] = by_column.transpose(1, 0, 2)[:, is_cell]
        return smoothed

    @cached_property
    def _stored_matrices(self) -> tuple[Array, Array, Array] | None:
        """Kernel matrices, if all classes have the same bandwidths and the matrices are small; else None.

        Columns with ordered cells are padded to the largest number of cells. The first two arrays, (columns, largest number
        of cells), are the position of each cell, that of the padding cell for missing ones, and False for padding. The
        third is the share of each cell's count that every cell receives, (columns, cells, cells).
        """
        columns = np.flatnonzero(self._ordered > 0)
        sizes, widths = self._ordered[columns], self.bandwidths[:, columns]
        most = int(sizes.max(initial=0))
        if not len(columns) or (widths != widths[:1]).any() or len(columns) * most**2 > LARGEST_MATRICES:
            return None
        is_cell = np.arange(most) < sizes[:, None]
        cells = np.where(is_cell, self._first[columns][:, None] + np.arange(most), self._first[-1])
        return cells, is_cell, smoothing_matrices(widths[0], sizes)

    @cached_property
    def _columns_by_size(self) -> list[tuple[Array, Array]]:
        """Columns with equally many ordered cells, and the positions of these, (columns, cells)."""
        parts = []
        for size in np.unique(self._ordered[self._ordered > 0]):
            columns = np.flatnonzero(self._ordered == size)
            parts.append((columns, self._first[columns][:, None] + np.arange(size)))
        return parts

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": self._cells.counts(columns, weights)}

    def statistics_by_column(self, columns: Sequence[tuple[Array, Array]]) -> Arrays:
        tables, layout = [], self.layout
        for j, (entries, weights) in enumerate(columns):
            of_column = replace(layout, levels=layout.levels[j : j + 1], ordered=layout.ordered[j : j + 1])
            tables.append(cell_encoding(of_column).counts(entries[:, None], weights))
        return {"count": np.concatenate(tables, axis=1)}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.total(columns, parameters["log_density"])

    def _tables(self, parameters: Arrays) -> list[Array]:
        """Probabilities of the cells of each column, (k, cells)."""
        return self._by_column(np.exp(self._log_probability(parameters)))

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        drawn = [level_counts.draw(table[classes], rng) for table in self._tables(parameters)]
        rows = self._cells.sample_within(np.stack(drawn, axis=1), rng)
        return rows if given is None else np.where(self._cells.missing(given), rows, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        estimates, has_missing_cell = [], self.layout.gappy or (False,) * len(self.layout.levels)
        for j, table in enumerate(self._tables(parameters)):
            candidates = max(table.shape[1] - has_missing_cell[j], 1)  # not the cell for missing values
            estimates.append(self._cells.point_estimate(posterior @ table[:, :candidates], j))
        return np.where(self._cells.missing(columns), np.stack(estimates, axis=1), columns)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return self._cells.terms(columns, parameters["log_density"])

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].sum(axis=0))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": level_counts.recode_counts(statistics["count"], codes, levels)}


# -- A joint kernel density of two columns -------------------------------------------------------------------


@dataclass(frozen=True)
class KernelPair(SmoothedCounts):
    """One density for each class over the pairs of cells of two columns, smoothed by a product of kernels.

    On a grid each row is counted at the four points around it, and the density is bilinear between them. A row with a
    missing value is not counted; its density is the marginal density of the known cell.

    Examples
    --------
    Two dependent columns jointly, the others independently:

    >>> from calibayes import GenerativeClassifier
    >>> from calibayes.families import Gaussian, KernelPair
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> families = [("petal", KernelPair(), [2, 3]), ("sepal", Gaussian(), [0, 1])]
    >>> bool(GenerativeClassifier(families=families).fit(X, y).score(X, y) > 0.95)
    True
    """

    _dimension: ClassVar[int] = 2

    def bind(self, layout: Layout) -> Self:
        if len(layout.columns) != 2:
            raise ValueError(f"a KernelPair takes two columns, got {len(layout.columns)}")
        return super().bind(layout)

    @property
    def _table_shape(self) -> tuple[int, ...]:
        return self.layout.levels

    def verify(self) -> None:
        super().verify()
        verify.require_length("columns", self.layout.columns, 2 if self.layout.classes else 0)

    def _margins(self, count: Array) -> list[Array]:
        return [count.sum(axis=2), count.sum(axis=1)]

    def _totals(self, count: Array) -> Array:
        return np.asarray(count.sum(axis=(-2, -1), keepdims=True))

    def _log_volumes(self) -> Array:
        left, right = self._by_column(self._log_volume)
        return np.asarray(left[:, None] + right)

    def _smooth(self, count: Array) -> Array:
        return self._smooth_along(self._smooth_along(np.asarray(count, dtype=np.float64), 0), 1)

    def _smooth_along(self, count: Array, axis: int) -> Array:
        """Counts smoothed along the ordered cells of one column."""
        moved, ordered = np.moveaxis(count, axis + 1, -1), self._ordered[axis]
        if not ordered:
            return count
        widths = np.repeat(self.bandwidths[:, axis, None], moved.shape[1], axis=1)
        smoothed = smooth(moved[..., :ordered], widths)
        return np.moveaxis(np.concatenate([smoothed, moved[..., ordered:]], axis=-1), -1, axis + 1)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": grids.weighted_counts(self._cells.corners(columns), weights, self.layout.levels)}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        table = grids.with_margins(parameters["log_density"], self._by_column(self._log_volume))
        return grids.interpolated_pairs(self._cells.corners(columns), table)

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        probability = np.exp(self._log_probability(parameters))
        rows = self._cells.sample_within(grids.draw(probability, classes, rng), rng)
        if given is None:
            return rows
        missing = self._cells.missing(given)
        for axis in (0, 1):
            conditional = np.flatnonzero(missing[:, axis] & ~missing[:, 1 - axis])
            by_class = self._given_the_other(given[conditional], probability, axis)
            row_probability = by_class[np.arange(len(conditional)), classes[conditional]]
            codes = np.zeros((len(conditional), 2), dtype=np.intp)
            codes[:, axis] = level_counts.draw(row_probability, rng)
            rows[conditional, axis] = self._cells.sample_within(codes, rng)[:, axis]
        return np.where(missing, rows, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        missing, filled = self._cells.missing(columns), np.array(columns)
        probability = np.exp(self._log_probability(parameters))
        for axis in (0, 1):
            incomplete = np.flatnonzero(missing[:, axis])
            by_class = self._given_the_other(columns[incomplete], probability, axis)
            averaged = np.einsum("nk,nkc->nc", posterior[incomplete], by_class)
            filled[incomplete, axis] = self._cells.point_estimate(averaged, axis)
        return filled

    def _given_the_other(self, columns: Array, probability: Array, axis: int) -> Array:
        """Probabilities of the cells of a column, given the other column where it is known, (n, k, cells)."""
        volume = np.exp(self._by_column(self._log_volume)[1 - axis])
        density = np.moveaxis(probability, axis + 1, -1) / volume[:, None]
        margin = probability.sum(axis=2 - axis)
        table = np.concatenate([density, margin[:, None]], axis=1)
        return grids.conditional(self._cells.corners(columns), table, 1 - axis)

    def occurrences(self, statistics: Arrays) -> Array:
        return np.concatenate([margin.sum(axis=0) for margin in self._margins(statistics["count"])])

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": level_counts.recode_table(statistics["count"], codes, levels)}
