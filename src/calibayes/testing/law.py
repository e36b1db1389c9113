"""A law: a named check of a family, and the cases that it applies to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import AllowsMissing, Structured
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array, Arrays, Family, Layout

# -- Preparing and fitting a family without rule, engine or class prior --------------------------------------


def prepare(family: Family, columns: Array, weights: Array) -> Family:
    """The family after `Family.prepare` with the statistics of these rows."""
    sums = family.structure_statistics if isinstance(family, Structured) else family.statistics
    return family.prepare(sums(columns, weights))


def fit(family: Family, columns: Array, labels: Array, steps: int = 100) -> Arrays:
    """Parameters of maximum likelihood: the closed form, or ``steps`` steps of expectation maximization."""
    parameters = family.parameters(family.statistics(columns, labels))
    if isinstance(family, AllowsMissing) and family.has_hidden(columns):
        for _ in range(steps):
            parameters = family.parameters(family.statistics(columns, labels, parameters))
    return parameters


# -- What a law is checked on: a family and rows of data -----------------------------------------------------


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
    nonnegative : tuple of str, default=("count",)
        Statistics that are sums of numbers from 0 on, so that a negative one is damaged: a `Verifiable` family must refuse it.
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
    nonnegative: tuple[str, ...] = ("count",)
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


# -- A law: a named check of a family, and the cases that it applies to --------------------------------------

Condition: TypeAlias = Callable[[FamilyCase], bool]


@dataclass(frozen=True)
class Law:
    """A property that every family must have, or every family that meets the conditions.

    Parameters
    ----------
    name : str
    assertions : callable
        Raises AssertionError if the family of a case breaks the law.
    conditions : tuple of callables
        Functions of a case; the law applies where all of them are true.

    Examples
    --------
    >>> from calibayes.testing import FAMILY_LAWS
    >>> FAMILY_LAWS[0].name
    'statistics_are_linear_in_weights'
    """

    name: str
    assertions: Callable[[FamilyCase], None]
    conditions: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return self.name

    def applies(self, case: FamilyCase) -> bool:
        """Whether the case meets all conditions of the law."""
        return all(condition(case) for condition in self.conditions)

    def check(self, case: FamilyCase) -> None:
        """Raise AssertionError if the family breaks the law, ValueError if the law does not apply to the case."""
        if not self.applies(case):
            raise ValueError(
                f"law {self.name!r} does not apply to a case of {type(case.family).__name__}; "
                "check the laws that applicable_laws(case) returns"
            )
        self.assertions(case)


def law(*conditions: Condition) -> Callable[[Callable[[FamilyCase], None]], Law]:
    """Turn a function with assertions about a case into a `Law` of the same name."""

    def decorate(assertions: Callable[[FamilyCase], None]) -> Law:
        return Law(assertions.__name__, assertions, conditions)

    return decorate


def has(*abilities: Any) -> Condition:
    """Condition: the family has all of these abilities (protocols of `calibayes.core.abilities`)."""
    return lambda case: all(isinstance(case.family, ability) for ability in abilities)


def has_support(case: FamilyCase) -> bool:
    """Condition: the case has points over which the density can be integrated."""
    return case.support is not None


def is_scale_free(case: FamilyCase) -> bool:
    """Condition: the family has no prior."""
    return case.scale_free


def maximizes_likelihood(case: FamilyCase) -> bool:
    """Condition: the parameters are those of the highest likelihood."""
    return case.scale_free and case.maximizes_likelihood


def nothing_is_hidden(case: FamilyCase) -> bool:
    """Condition: the statistics of complete rows do not depend on the parameters."""
    return not case.has_hidden


# -- Assertions about statistics and parameters, array by array ----------------------------------------------


def assert_arrays_close(left: Any, right: Any, tolerance: float = 1e-10) -> None:
    """The same names, with arrays that are equal up to an absolute and relative tolerance."""
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


def assert_finite(arrays: Any) -> None:
    """No array has an infinite value or NaN."""
    map_leaves(_assert_finite_array, arrays)


def assert_constant_over_classes(difference: Array, tolerance: float) -> None:
    """Each row of an (n, k) array has the same value in all classes."""
    first_class = np.repeat(difference[:, :1], difference.shape[1], axis=1)
    assert_allclose(difference, first_class, atol=tolerance)


def _assert_finite_array(array: Array) -> None:
    assert np.isfinite(array).all()
