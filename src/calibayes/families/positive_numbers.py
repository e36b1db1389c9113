"""Densities of positive numbers: exponential, gamma (by maximum likelihood or by moments) and log-normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, psi, zeta

from calibayes.core.protocols import Array, Arrays, Generator
from calibayes.families.prior_rows import LOST_DIGITS, ExponentialFamily, PriorRowsByColumn, within_limits
from calibayes.kernels.gaussian_density import LOG_TWO_PI

SMALLEST, LARGEST = 1e-12, 1e6
"""Range over which densities are integrated, in units of the mean of all rows."""


class PositiveNumbers(PriorRowsByColumn):
    """Base of densities of positive numbers."""

    def interval_ends(self, place: int, size: int) -> Array:
        """Ends of intervals over which the density of a column can be integrated: of one size on a logarithmic scale."""
        center = self.layout.center[place] if np.size(self.layout.center) else 1.0
        return np.asarray(center * np.append(0.0, np.geomspace(SMALLEST, LARGEST, size)))


@dataclass(frozen=True)
class Exponential(ExponentialFamily, PositiveNumbers):
    """Numbers from 0 on with density rate * exp(-rate * x), such as waiting times; a missing value (NaN) is skipped.

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class and column, distributed as the rows of all classes together; 0 is maximum
        likelihood, where the rate is 1 / mean.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0.1], [0.3], [1.5], [4.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("waits", Exponential(), every)]).fit(X, y).predict([[0.2]])
    array([0])
    """

    requirement: ClassVar[str] = "a value above 0"
    nonnegative: ClassVar[tuple[str, ...]] = ("sum",)
    positive: ClassVar[tuple[str, ...]] = ("rate",)

    def cell_statistics(self, x: Array) -> Arrays:
        return {"sum": x}

    def in_support(self, x: Array) -> Array:
        return np.isfinite(x) & (x >= 0)

    def has_estimate(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["sum"] > 0)

    def estimate(self, statistics: Arrays) -> Arrays:
        return {"rate": statistics["count"] / statistics["sum"]}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        rate = parameters["rate"]
        return np.asarray(statistics["count"] * np.log(rate) - rate * statistics["sum"])

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        logs = np.log(parameters["rate"]) - parameters["rate"] * x
        return np.where(x >= 0, logs, -np.inf)

    def natural(self, parameters: Arrays) -> Arrays:
        return {"sum": -parameters["rate"]}

    def from_natural(self, natural: Arrays) -> Arrays:
        return {"rate": within_limits(-natural["sum"])}

    def expected(self, parameters: Arrays) -> Arrays:
        return {"sum": 1.0 / parameters["rate"]}

    def expected_cell(self, parameters: Arrays) -> Array:
        return np.asarray(1.0 / parameters["rate"])

    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        return rng.exponential(1.0 / parameters["rate"])


# -- Gamma densities, rate^shape / Gamma(shape) * x^(shape - 1) * exp(-rate * x) -----------------------------

NEARLY_NORMAL = 1e4
"""From this shape on two terms of the series of log(shape) - psi(shape) have all digits."""
SHAPE_STEPS = 12


def gamma_shape(excess: Array) -> Array:
    """The shape whose log(shape) - psi(shape) is a number above 0, (...).

    Thom (1958) solves 1 / (2 shape) + 1 / (12 shape^2) = excess, which has all digits of large shapes; smaller ones are
    improved by the generalized Newton steps of Minka (2002).
    """
    shape = np.asarray((1.0 + np.sqrt(1.0 + 4.0 * excess / 3.0)) / (4.0 * excess))
    is_small = (excess > 0) & (shape < NEARLY_NORMAL)
    small = np.where(is_small, shape, 1.0)
    for _ in range(SHAPE_STEPS):
        residual = np.log(small) - psi(small) - excess
        slope = small - small**2 * zeta(2.0, small)  # zeta(2, x) is the derivative of psi
        moved = 1.0 / (1.0 / small + residual / slope)
        small = np.where(is_small, np.where(moved > 0, moved, small / 2.0), 1.0)
    return np.where(is_small, small, shape)


@dataclass(frozen=True)
class GammaDensity(ExponentialFamily, PositiveNumbers):
    """Positive numbers with a gamma density; a missing value (NaN) is skipped.

    The parameters are those of maximum likelihood: the shape solves log(shape) - psi(shape) = log(mean) - mean(log x), with
    the digamma function psi, and the rate is shape / mean. `calibayes.families.Gamma` is another thing, a prior of rates.

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class and column, distributed as the rows of all classes together.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0.1], [0.3], [1.5], [4.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("amounts", GammaDensity(), every)]).fit(X, y).predict([[0.2]])
    array([0])
    """

    requirement: ClassVar[str] = "two different values above 0"
    nonnegative: ClassVar[tuple[str, ...]] = ("sum",)
    positive: ClassVar[tuple[str, ...]] = ("shape", "rate")

    def cell_statistics(self, x: Array) -> Arrays:
        with np.errstate(all="ignore"):
            return {"sum": x, "log": np.log(x)}

    def in_support(self, x: Array) -> Array:
        return np.isfinite(x) & (x > 0)

    def has_estimate(self, statistics: Arrays) -> Array:
        with np.errstate(all="ignore"):
            log_mean, mean_log = self._logs(statistics)
            return np.asarray(log_mean - mean_log > LOST_DIGITS * (1.0 + np.abs(mean_log)))

    def _logs(self, statistics: Arrays) -> tuple[Array, Array]:
        """Logarithm of the mean, and mean of the logarithms."""
        return np.log(statistics["sum"] / statistics["count"]), statistics["log"] / statistics["count"]

    def estimate(self, statistics: Arrays) -> Arrays:
        log_mean, mean_log = self._logs(statistics)
        shape = gamma_shape(log_mean - mean_log)
        return {"shape": shape, "rate": shape * np.exp(-log_mean)}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        shape, rate = parameters["shape"], parameters["rate"]
        logs = (shape - 1.0) * statistics["log"] + statistics["count"] * _log_constant(shape, rate)
        return np.asarray(logs - rate * statistics["sum"])

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        shape, rate = parameters["shape"], parameters["rate"]
        with np.errstate(all="ignore"):
            logs = (shape - 1.0) * np.log(x) - rate * x + _log_constant(shape, rate)
        return np.where(x > 0, logs, -np.inf)

    def natural(self, parameters: Arrays) -> Arrays:
        return {"sum": -parameters["rate"], "log": parameters["shape"]}

    def from_natural(self, natural: Arrays) -> Arrays:
        return {"shape": within_limits(natural["log"]), "rate": within_limits(-natural["sum"])}

    def expected(self, parameters: Arrays) -> Arrays:
        shape, rate = parameters["shape"], parameters["rate"]
        return {"sum": shape / rate, "log": psi(shape) - np.log(rate)}

    def expected_cell(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["shape"] / parameters["rate"])

    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        drawn = rng.gamma(parameters["shape"], 1.0 / parameters["rate"])
        return np.maximum(drawn, np.finfo(np.float64).tiny)  # with a small shape it can be 0


def _log_constant(shape: Array, rate: Array) -> Array:
    return np.asarray(shape * np.log(rate) - gammaln(shape))


@dataclass(frozen=True)
class GammaByMoments(PositiveNumbers):
    """Gamma densities as in `GammaDensity`, with shape mean^2 / variance and rate mean / variance.

    The estimate does not depend on logarithms, so that a few values near 0 change it little, but it has a larger variance
    than that of maximum likelihood. It is of no maximum, so that training by GDT reads no log prior, and there are no
    gradient steps.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0.1], [0.3], [1.5], [4.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("amounts", GammaByMoments(), every)]).fit(X, y).predict([[0.2]])
    array([0])
    """

    requirement: ClassVar[str] = GammaDensity.requirement
    nonnegative: ClassVar[tuple[str, ...]] = ("sum", "squares")
    positive: ClassVar[tuple[str, ...]] = GammaDensity.positive

    def cell_statistics(self, x: Array) -> Arrays:
        return {"sum": x, "squares": x**2}

    in_support = GammaDensity.in_support
    cell_log_density = GammaDensity.cell_log_density
    expected_cell = GammaDensity.expected_cell
    draw = GammaDensity.draw

    def has_estimate(self, statistics: Arrays) -> Array:
        mean, variance = mean_and_variance(statistics)
        return np.asarray((mean > 0) & (variance > LOST_DIGITS * mean**2))

    def estimate(self, statistics: Arrays) -> Arrays:
        mean, variance = mean_and_variance(statistics)
        return {"shape": mean**2 / variance, "rate": mean / variance}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        return np.zeros(1)


def mean_and_variance(statistics: Arrays) -> tuple[Array, Array]:
    """Mean and variance from a count, a sum and a sum of squares; not finite without rows."""
    with np.errstate(all="ignore"):
        mean = statistics["sum"] / statistics["count"]
        return mean, statistics["squares"] / statistics["count"] - mean**2


@dataclass(frozen=True)
class LogNormal(ExponentialFamily, PositiveNumbers):
    """Positive numbers whose logarithms have a normal distribution, such as sizes; a missing value (NaN) is skipped.

    The parameters are the mean and the variance of the logarithms.

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class and column, distributed as the rows of all classes together; 0 is maximum
        likelihood.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0.1], [0.3], [15.0], [400.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("sizes", LogNormal(), every)]).fit(X, y).predict([[20.0]])
    array([1])
    """

    requirement: ClassVar[str] = "two different values above 0"
    nonnegative: ClassVar[tuple[str, ...]] = ("squares",)
    positive: ClassVar[tuple[str, ...]] = ("variance",)

    def cell_statistics(self, x: Array) -> Arrays:
        with np.errstate(all="ignore"):
            logs = np.log(x)
        return {"sum": logs, "squares": logs**2}

    def in_support(self, x: Array) -> Array:
        return np.isfinite(x) & (x > 0)

    def has_estimate(self, statistics: Arrays) -> Array:
        mean, variance = mean_and_variance(statistics)
        return np.asarray(variance > LOST_DIGITS * (1.0 + mean**2))

    def estimate(self, statistics: Arrays) -> Arrays:
        mean, variance = mean_and_variance(statistics)
        return {"mean": mean, "variance": variance}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        mean, variance = parameters["mean"], parameters["variance"]
        count = statistics["count"]
        squares = statistics["squares"] - 2.0 * mean * statistics["sum"] + mean**2 * count
        return np.asarray(-0.5 * (squares / variance + count * np.log(variance)))

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        with np.errstate(all="ignore"):
            logs = np.log(x)
            squares = (logs - parameters["mean"]) ** 2 / parameters["variance"]
            density = -0.5 * (squares + np.log(parameters["variance"]) + LOG_TWO_PI) - logs
        return np.where(x > 0, density, -np.inf)

    def natural(self, parameters: Arrays) -> Arrays:
        variance = parameters["variance"]
        return {"sum": parameters["mean"] / variance, "squares": -0.5 / variance}

    def from_natural(self, natural: Arrays) -> Arrays:
        variance = 0.5 / within_limits(-natural["squares"])
        return {"mean": natural["sum"] * variance, "variance": variance}

    def expected(self, parameters: Arrays) -> Arrays:
        mean, variance = parameters["mean"], parameters["variance"]
        return {"sum": mean, "squares": mean**2 + variance}

    def expected_cell(self, parameters: Arrays) -> Array:
        return np.exp(parameters["mean"] + parameters["variance"] / 2.0)

    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        return rng.lognormal(parameters["mean"], np.sqrt(parameters["variance"]))
