"""Bases of densities of single columns: pseudo-rows as a prior, random and expected values, and gradient steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar, Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Generator, ValidStatistics
from calibayes.core.verify import require, require_arrays, require_number
from calibayes.families.density import ColumnDensity, Density

LOST_DIGITS = 1e-12
"""A difference of two means that is a smaller share of them is a rounding error."""
LEAST, MOST = 1e-300, 1e300
"""Limits of parameters that a gradient step has made."""


@dataclass(frozen=True)
class WithPriorRows(Density):
    """A density whose prior is pseudo-rows, added to each class, distributed as the rows of all classes together.

    A subclass defines `estimate`, the parameters of statistics that include the pseudo-rows, and `has_estimate`. For an
    exponential family this is the conjugate prior, and the estimate the mode of the posterior.
    """

    prior_rows: float = 0.0
    pseudo: Mapping[str, Array] = field(default_factory=dict, repr=False, compare=False, kw_only=True)
    """Statistics of the pseudo-rows, with a first axis of length 1, set by `prepare`; empty without a prior."""

    nonnegative: ClassVar[tuple[str, ...]] = ()
    """Statistics beside "count" that are sums of numbers from 0 on."""

    def __post_init__(self) -> None:
        require_number("prior_rows", self.prior_rows, 0.0)

    @abstractmethod
    def estimate(self, statistics: Arrays) -> Arrays:
        """The parameters of rows with these statistics."""

    @abstractmethod
    def has_estimate(self, statistics: Arrays) -> Array:
        """Where statistics with positive counts have an estimate, booleans."""

    def parameters(self, statistics: Arrays) -> Arrays:
        return self.estimate(self._with_pseudo(statistics))

    def is_valid(self, statistics: Arrays) -> Array:
        total = self._with_pseudo(statistics)
        are_sums = reduce(np.logical_and, (statistics[name] >= 0 for name in ("count", *self.nonnegative)))
        return np.asarray(are_sums & (total["count"] > 0) & self.has_estimate(total))

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        family = self
        if self.prior_rows:
            sums = {name: np.sum(value, axis=0, keepdims=True) for name, value in (pooled or start).items()}
            count = np.where(sums["count"] > 0, sums["count"], 1.0)
            pseudo = {name: self.prior_rows * value / count for name, value in sums.items()}
            family = replace(self, pseudo=pseudo)
        return super(WithPriorRows, family).prepare(start, pooled)

    def conjugate(self) -> Self:
        return self if self.prior_rows else replace(self, prior_rows=1.0)

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        """Log likelihood of the pseudo-rows of all classes, up to a constant."""
        if not self.pseudo:
            return 0.0
        return float(np.sum(self.log_likelihood(self.pseudo, parameters)))

    @abstractmethod
    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        """Log likelihood of rows with these statistics, up to a term that does not depend on the parameters."""

    def _with_pseudo(self, statistics: Arrays) -> Arrays:
        return {name: value + self.pseudo.get(name, 0.0) for name, value in statistics.items()}

    def verify(self) -> None:
        self.layout.verify()
        if self.pseudo:
            shapes = {name: value.shape for name, value in self._shapes_of_pseudo().items()}
            require_arrays("pseudo", self.pseudo, shapes)
            require(bool(np.all(self.pseudo["count"] >= 0)), "pseudo has a count below 0")

    @abstractmethod
    def _shapes_of_pseudo(self) -> Arrays:
        """Arrays of the names and shapes of the statistics of the pseudo-rows."""


class ExponentialFamily(WithPriorRows):
    """A density h(x) exp(sum of eta_t t(x) - A(eta)) of statistics t: gradient steps on eta, and the gradient of the prior."""

    @abstractmethod
    def natural(self, parameters: Arrays) -> Arrays:
        """The natural parameters eta by the names of the statistics they are multiplied by."""

    @abstractmethod
    def from_natural(self, natural: Arrays) -> Arrays:
        """The parameters; natural parameters outside of their domain are projected onto it."""

    @abstractmethod
    def expected(self, parameters: Arrays) -> Arrays:
        """The expected value of each statistic of a row."""

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Natural parameters plus ``rate`` times direction[t] - direction["count"] * E[t], projected."""
        natural, expected = self.natural(parameters), self.expected(parameters)
        moved = {
            name: eta + rate * (direction[name] - direction["count"] * expected[name])
            for name, eta in natural.items()
        }
        return GradientStep(self.from_natural(moved), None)

    def prior_direction(self, parameters: Arrays) -> Arrays:
        expected = self.expected(parameters) if self.pseudo else {}
        return {name: self.pseudo[name] - self.pseudo["count"] * value for name, value in expected.items()}


@dataclass(frozen=True)
class PriorRowsByColumn(WithPriorRows, ColumnDensity):
    """A `ColumnDensity` with pseudo-rows, random values, and missing values filled by the expected one."""

    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be positive."""

    @abstractmethod
    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        """A random cell for each entry of the parameters, (n, d)."""

    @abstractmethod
    def expected_cell(self, parameters: Arrays) -> Array:
        """The expected value of a cell, (k, d)."""

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class and column with invalid statistics or parameters keeps all its statistics; other columns move."""
        invalid = reduce(np.logical_or, self._invalid(proposed).values())
        statistics = {name: np.where(invalid, current[name], value) for name, value in proposed.items()}
        return ValidStatistics(statistics, len(statistics) * int(invalid.sum()), np.all(invalid, axis=1))

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        drawn = self.draw({name: value[classes] for name, value in parameters.items()}, rng)
        return drawn if given is None else np.where(np.isnan(given), drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the expected value, classes weighted by the posterior."""
        return np.where(np.isnan(columns), posterior @ self.expected_cell(parameters), columns)

    def verify_statistics(self, statistics: Arrays) -> None:
        super().verify_statistics(statistics)
        for name in self.nonnegative:
            require(bool((statistics[name] >= 0).all()), f"{name} contains numbers below 0")

    def verify_parameters(self, parameters: Arrays) -> None:
        super().verify_parameters(parameters)
        for name in self.positive:
            require(bool((parameters[name] > 0).all()), f"{name} contains numbers that are not positive")

    def _shapes_of_pseudo(self) -> Arrays:
        d = len(self.layout.columns)
        return self.statistics(np.empty((0, d)), np.empty((0, 1)))


def within_limits(parameter: Array) -> Array:
    """Positive parameters after a gradient step."""
    return np.clip(parameter, LEAST, MOST)
