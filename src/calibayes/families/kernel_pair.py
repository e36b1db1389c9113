"""A joint kernel density of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.core.verify import require_length
from calibayes.families.kernel_density import SmoothedCounts
from calibayes.kernels import grids, level_counts
from calibayes.kernels.level_counts import smooth


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
        require_length("columns", self.layout.columns, 2 if self.layout.classes else 0)

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

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
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
