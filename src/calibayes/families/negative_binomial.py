"""Counts whose variance exceeds their mean: the negative binomial distribution, estimated by moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammaln

from calibayes.core.protocols import Array, Arrays, Generator
from calibayes.core.verify import require
from calibayes.families.counts import floored
from calibayes.families.positive_numbers import mean_and_variance
from calibayes.families.prior_rows import PriorRowsByColumn

LEAST_DISPERSION = 1e-15
"""A smaller dispersion is 0: the variance differs from the mean by a rounding error."""
ROUNDING = 1e-9
"""Share by which a mean of squares may lie below the square of the mean."""


@dataclass(frozen=True)
class NegativeBinomial(PriorRowsByColumn):
    """Counts 0, 1, 2, ... with mean m and variance m + dispersion * m^2; a missing value (NaN) is skipped.

    The parameters are those of the moments, dispersion = (variance - m) / m^2. Where the variance of a class is not above
    its mean, the dispersion is 0, and the distribution that of Poisson. As for `Poisson`, a mean of 0 is raised to 1e-12 of the
    sum of the column's means. In the notation of SciPy, n = 1 / dispersion and p = 1 / (1 + dispersion * m).

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class and column, distributed as the rows of all classes together.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0], [9], [1], [14], [5], [6], [4], [5]], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> family = NegativeBinomial()
    >>> GenerativeClassifier(families=[("visits", family, every)], rule="ml").fit(X, y).predict([[5], [20]])
    array([1, 0])
    """

    has_counts: ClassVar[bool] = True
    nonnegative: ClassVar[tuple[str, ...]] = ("sum", "squares")
    positive: ClassVar[tuple[str, ...]] = ("mean",)

    def cell_statistics(self, x: Array) -> Arrays:
        return {"sum": x, "squares": x**2}

    def in_support(self, x: Array) -> Array:
        return np.isfinite(x) & (x >= 0) & (x == np.floor(x))

    def has_estimate(self, statistics: Arrays) -> Array:
        return np.asarray(
            statistics["squares"] * statistics["count"] >= (1.0 - ROUNDING) * statistics["sum"] ** 2
        )

    def estimate(self, statistics: Arrays) -> Arrays:
        mean, variance = mean_and_variance(statistics)
        excess = variance - mean
        mean = floored(mean, mean.sum(axis=0))
        dispersion = excess / mean**2
        return {"mean": mean, "dispersion": np.where(dispersion > LEAST_DISPERSION, dispersion, 0.0)}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        return np.zeros(1)  # the estimate by moments is of no maximum

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        mean, dispersion = parameters["mean"], parameters["dispersion"]
        is_poisson = dispersion == 0
        some = np.where(is_poisson, 1.0, dispersion)
        log_rest = np.log1p(some * mean)
        rest = np.where(is_poisson, mean, (x + 1.0 / some) * log_rest)
        rising = np.where(is_poisson, 0.0, _log_rising(x, some))
        return np.where(x >= 0, rising - gammaln(x + 1.0) + x * np.log(mean) - rest, -np.inf)

    def expected_cell(self, parameters: Arrays) -> Array:
        return parameters["mean"]

    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        """Poisson counts whose rates have a gamma distribution."""
        mean, dispersion = parameters["mean"], parameters["dispersion"]
        is_poisson = dispersion == 0
        some = np.where(is_poisson, 1.0, dispersion)
        rate = mean * rng.gamma(1.0 / some) * some
        return rng.poisson(np.where(is_poisson, mean, rate)).astype(np.float64)

    def verify_parameters(self, parameters: Arrays) -> None:
        super().verify_parameters(parameters)
        require(bool((parameters["dispersion"] >= 0).all()), "dispersion contains numbers below 0")


def _log_rising(x: Array, dispersion: Array) -> Array:
    """log of the product of 1 + dispersion * i over i = 0, ..., x - 1, without differences of large numbers."""
    positive = np.where(x > 0, x, 1.0)
    logs = gammaln(positive) - betaln(1.0 / dispersion, positive) + positive * np.log(dispersion)
    return np.where(x > 0, logs, 0.0)
