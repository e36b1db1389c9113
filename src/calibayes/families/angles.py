"""Angles, times of day and other periodic numbers: the von Mises distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import i0e, i1e

from calibayes.core.protocols import Array, Arrays, Generator
from calibayes.core.verify import require, require_number
from calibayes.families.prior_rows import LEAST, LOST_DIGITS, ExponentialFamily, PriorRowsByColumn

NEARLY_ONE = 1.0 - 5e-5
"""From this mean resultant length on, three terms of a series give the concentration with all digits."""
CONCENTRATION_STEPS = 12


@dataclass(frozen=True)
class VonMises(ExponentialFamily, PriorRowsByColumn):
    """Angles with density exp(concentration * cos(x - mean)) / (2 pi I0(concentration)); a missing value is skipped.

    The statistics are sums of cosines and sines. Their mean is a vector, whose direction is the mean angle and whose length
    is I1 / I0 of the concentration (maximum likelihood).

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class and column, distributed as the rows of all classes together.
    period : float, default=2 pi
        Numbers that differ by a period are the same: 24 for hours of the day, 360 for degrees. The mean lies between 0 and the
        period, and the density is that of the numbers in their own unit.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> hours, y = [[23.5], [0.5], [1.0], [11.0], [12.0], [14.0]], ["night"] * 3 + ["day"] * 3
    >>> model = GenerativeClassifier(families=[("hour", VonMises(period=24.0), every)]).fit(hours, y)
    >>> model.predict([[22.0], [10.0]]).tolist()
    ['night', 'day']
    """

    period: float = 2.0 * math.pi

    requirement: ClassVar[str] = "two different angles"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number("period", self.period, LEAST)

    def _radians(self, x: Array) -> Array:
        return x * (2.0 * math.pi / self.period)

    def _numbers(self, radians: Array) -> Array:
        """Numbers from 0 to the period."""
        return np.asarray(np.mod(radians * (self.period / (2.0 * math.pi)), self.period))

    def cell_statistics(self, x: Array) -> Arrays:
        radians = self._radians(x)
        return {"cos": np.cos(radians), "sin": np.sin(radians)}

    def in_support(self, x: Array) -> Array:
        return np.isfinite(x)

    def has_estimate(self, statistics: Arrays) -> Array:
        length = np.hypot(statistics["cos"], statistics["sin"])
        return np.asarray(length < (1.0 - LOST_DIGITS) * statistics["count"])

    def estimate(self, statistics: Arrays) -> Arrays:
        cos, sin = statistics["cos"] / statistics["count"], statistics["sin"] / statistics["count"]
        mean = self._numbers(np.arctan2(sin, cos))
        return {"mean": mean, "concentration": concentration_of(np.hypot(cos, sin))}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        natural, concentration = self.natural(parameters), parameters["concentration"]
        known = sum(statistics[name] * eta for name, eta in natural.items())
        return np.asarray(known - statistics["count"] * (np.log(i0e(concentration)) + concentration))

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        """In the form 2 sin^2(a / 2) of 1 - cos(a), which keeps the digits of small angles."""
        concentration = parameters["concentration"]
        half = self._radians(x - parameters["mean"]) / 2.0
        constant = np.log(i0e(concentration)) + math.log(self.period)
        return np.asarray(-2.0 * concentration * np.sin(half) ** 2 - constant)

    def natural(self, parameters: Arrays) -> Arrays:
        mean, concentration = self._radians(parameters["mean"]), parameters["concentration"]
        return {"cos": concentration * np.cos(mean), "sin": concentration * np.sin(mean)}

    def from_natural(self, natural: Arrays) -> Arrays:
        mean = self._numbers(np.arctan2(natural["sin"], natural["cos"]))
        return {"mean": mean, "concentration": np.hypot(natural["cos"], natural["sin"])}

    def expected(self, parameters: Arrays) -> Arrays:
        mean, length = self._radians(parameters["mean"]), mean_length(parameters["concentration"])
        return {"cos": length * np.cos(mean), "sin": length * np.sin(mean)}

    def expected_cell(self, parameters: Arrays) -> Array:
        return parameters["mean"]

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the direction of the mean vector, classes weighted by the posterior."""
        expected = self.expected(parameters)
        mean = self._numbers(np.arctan2(posterior @ expected["sin"], posterior @ expected["cos"]))
        return np.where(np.isnan(columns), mean, columns)

    def draw(self, parameters: Arrays, rng: Generator) -> Array:
        drawn = rng.vonmises(self._radians(parameters["mean"]), parameters["concentration"])
        return self._numbers(drawn)

    def interval_ends(self, place: int, size: int) -> Array:
        """Ends of intervals over which the density of a column can be integrated: one period."""
        return np.linspace(0.0, self.period, size + 1)

    def verify_parameters(self, parameters: Arrays) -> None:
        super().verify_parameters(parameters)
        is_positive = bool((parameters["concentration"] >= 0).all())
        require(is_positive, "concentration contains numbers below 0")


def mean_length(concentration: Array) -> Array:
    """I1 / I0: the length of the mean vector of a von Mises distribution."""
    return np.asarray(i1e(concentration) / i0e(concentration))


def concentration_of(length: Array) -> Array:
    """The concentration whose `mean_length` is a number from 0 to 1, (...).

    Newton steps from the approximation of Banerjee et al. (2005). For long vectors (R near 1) the series
    1 / (2 (1 - R) - (1 - R)^2 - (1 - R)^3), whose error is of the fourth order (Fisher 1993).
    """
    gap = 1.0 - length
    is_long = length > NEARLY_ONE
    some = np.where(is_long | ~(length > 0), 0.5, length)
    concentration = some * (2.0 - some**2) / (1.0 - some**2)
    for _ in range(CONCENTRATION_STEPS):
        ratio = mean_length(concentration)
        moved = concentration - (ratio - some) / (1.0 - ratio / concentration - ratio**2)
        concentration = np.where(moved > 0, moved, concentration / 2.0)
    of_long = 1.0 / np.where(is_long, 2.0 * gap - gap**2 - gap**3, 1.0)
    return np.where(is_long, of_long, np.where(length > 0, concentration, 0.0))
