"""What a law is checked on: a family and rows of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from calibayes.core.abilities import AllowsMissing
from calibayes.core.protocols import Array, Arrays, Family, Layout
from calibayes.testing.laws.fitting import prepare


@dataclass(frozen=True)
class FamilyCase:
    """A bound family, rows of data, and the number of classes.

    Parameters
    ----------
    family : Family
        Already bound to its columns.
    columns : (n, d) array
        Complete rows in the encoding that the family reads; row i belongs to class i modulo k.
    k : int
        Number of classes.
    support : (points, volume), optional
        Five or more points of integration that cover the support of the density, and the volume of each: one number
        for all points, or the width of each point along each column, (points, d), in the units of the density.
    scale_free : bool
        Whether the family has no prior, so that its parameters do not depend on the number of rows.
    counts_per_row : (n,) array, optional
        Sum of the counts that each row adds to the statistics of a family with `CountStatistics`; d by default.
    maximizes_likelihood : bool
        Whether the parameters are those of the highest likelihood (or posterior). Those of a smoothed density are not.
    seed : int
        Of the random weights, orders and samples.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes.core.protocols import Layout
    >>> from calibayes.families import Poisson
    >>> FamilyCase(Poisson().bind(Layout(("a", "b"), ("x0",))), np.array([[1], [0], [4]]), k=2).k
    2
    """

    family: Family
    columns: Array
    k: int
    support: tuple[Array, float | Array] | None = None
    scale_free: bool = True
    counts_per_row: Array | None = None
    maximizes_likelihood: bool = True
    seed: int = 0

    @property
    def layout(self) -> Layout:
        """Layout that the family is bound to."""
        return cast(Layout, cast(Any, self.family).layout)

    @property
    def has_codes(self) -> bool:
        """Whether the columns are codes of levels, not numbers."""
        return self.columns.dtype.kind in "iu"

    @property
    def has_hidden(self) -> bool:
        """Whether the statistics of complete rows depend on the parameters."""
        return isinstance(self.family, AllowsMissing) and self.family.has_hidden(self.columns)

    def support_widths(self) -> tuple[Array, Array]:
        """Points of the support and the width of each along each column, both (points, d)."""
        points, volume = self.support or (self.columns[:0], 1.0)
        d = points.shape[1]
        widths = volume if np.ndim(volume) else np.full(points.shape, float(volume) ** (1.0 / d))
        return points, np.asarray(widths)

    def labels(self) -> Array:
        """One-hot labels with the classes in turn, (n, k)."""
        return np.eye(self.k)[np.arange(len(self.columns)) % self.k]

    def generator(self, number: int = 0) -> np.random.Generator:
        """A random generator; those of different numbers are independent."""
        return np.random.default_rng([self.seed, number] if self.seed else number)

    def weights(self, number: int = 0) -> Array:
        """Random class weights of both signs, (n, k)."""
        return self.generator(number).normal(size=(len(self.columns), self.k))

    def prepared(self) -> Family:
        """The family, prepared with the statistics of the labeled rows."""
        return prepare(self.family, self.columns, self.labels())

    def start(self) -> Arrays:
        """Statistics of the labeled rows."""
        return self.prepared().statistics(self.columns, self.labels())

    def missing_rows(self) -> Array:
        """Rows in which every value is missing, (n, d)."""
        return np.full_like(self.columns, -1 if self.has_codes else np.nan)

    def rows_with_missing(self) -> Array:
        """The rows with every seventh value missing, (n, d)."""
        is_missing = np.arange(self.columns.size).reshape(self.columns.shape) % 7 == 3
        return np.where(is_missing, -1 if self.has_codes else np.nan, self.columns)

    def tables(self) -> tuple[Array, ...]:
        """The complete rows and, if the family allows missing values, those with missing ones."""
        if isinstance(self.family, AllowsMissing):
            return self.columns, self.rows_with_missing()
        return (self.columns,)
