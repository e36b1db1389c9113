"""Whether the class frequencies of new rows moved, and whether anything else did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from calibayes.core.protocols import Array
from calibayes.estimators.interface.trust.class_frequencies import (
    estimated_frequencies,
    likelihood_ratios,
    log_likelihood,
)
from calibayes.estimators.interface.trust.held_out import HeldOut
from calibayes.estimators.interface.trust.posterior_calibration import (
    BiasedTemperature,
    fitted_calibration,
    resampled_changes,
)

COARSE = 1e-5
"""Tolerance of frequencies that are estimated for one of many draws."""


@dataclass(frozen=True)
class LabeledSample:
    """Held-out rows, the calibration of their posteriors and their class frequencies."""

    log_posterior: Array
    codes: Array
    weight: Array
    calibration: BiasedTemperature

    @classmethod
    def of(cls, record: HeldOut) -> LabeledSample:
        """The sample of a record, with weights that sum to their effective number (Kish)."""
        weight = record.weight * record.weight.sum() / (record.weight**2).sum()
        calibration = fitted_calibration(record.log_posterior, record.codes, weight)
        return cls(record.log_posterior, record.codes, weight, calibration)

    @property
    def rows(self) -> float:
        """Effective number of rows."""
        return float(self.weight.sum())

    @property
    def frequencies(self) -> Array:
        return _frequencies(self.codes, self.weight, self.log_posterior.shape[1])

    def ratios(self, log_posterior: Array) -> Array:
        """p(x | class) of rows up to a factor of the row, (n, k), from their uncalibrated posteriors."""
        return likelihood_ratios(self.calibration.log_posterior(log_posterior), self.frequencies)

    def shifted_weight(self, frequencies: Array) -> Array:
        """Weights under which the rows have these class frequencies; they sum to one."""
        weight = self.weight * (frequencies / self.frequencies)[self.codes]
        return np.asarray(weight / weight.sum())

    def redrawn(self, draws: int, rng: np.random.Generator) -> Iterator[LabeledSample]:
        """Samples of the Bayesian bootstrap (Rubin 1981): weights are multiplied by exponential numbers, so that no class is lost."""
        times = rng.exponential(size=(draws, len(self.codes)))
        changes = resampled_changes(self.calibration, self.log_posterior, self.codes, times * self.weight)
        for number, change in zip(times, changes, strict=True):
            weight = self.weight * number
            yield LabeledSample(self.log_posterior, self.codes, weight, self.calibration.moved(change))


def _frequencies(codes: Array, weight: Array, k: int) -> Array:
    mass = np.bincount(codes, weight, minlength=k)
    return np.asarray(mass / mass.sum())


def no_shift_p_value(sample: LabeledSample, log_posterior: Array, estimate: Array) -> float:
    """p-value of the class frequencies being those of the sample: a likelihood-ratio test.

    The sample's own error is as that of the new rows, in the proportion of their numbers: the statistic is divided by
    1 + n / m, and has the chi-squared distribution with k - 1 degrees of freedom then.
    """
    ratios = sample.ratios(log_posterior)
    gain = log_likelihood(estimate, ratios) - log_likelihood(sample.frequencies, ratios)
    statistic = 2 * max(gain, 0.0) / (1 + len(log_posterior) / sample.rows)
    return float(chi2.sf(statistic, len(estimate) - 1))


def bootstrap_frequencies(
    sample: LabeledSample, log_posterior: Array, estimate: Array, draws: int, rng: np.random.Generator
) -> Array:
    """Frequencies estimated from redrawn new rows and redrawn held-out rows, (draws, k)."""
    found, n = np.empty((draws, len(estimate))), len(log_posterior)
    for draw, redrawn in enumerate(sample.redrawn(draws, rng)):
        rows = rng.integers(0, n, n)
        found[draw] = estimated_frequencies(
            redrawn.ratios(log_posterior[rows]), redrawn.frequencies, 0.0, COARSE, estimate
        )
    return found


class Comparison:
    """Distances between the distributions of a number in new rows and in held-out rows, for any weights of both."""

    def __init__(self, held_out: Array, new: Array) -> None:
        values, places = np.unique(np.concatenate([held_out, new]), return_inverse=True)
        self._size = len(values)
        self._held_out, self._new = places[: len(held_out)], places[len(held_out) :]

    def distance(self, weight: Array) -> float:
        """Kolmogorov-Smirnov distance of the new rows from held-out rows with weights that sum to one."""
        new = np.bincount(self._new, minlength=self._size) / len(self._new)
        return self._largest(weight, new)

    def distance_within(self, weight: Array, times: Array) -> float:
        """The same if the new rows were held-out rows, drawn so often."""
        new = np.bincount(self._held_out, times, minlength=self._size) / times.sum()
        return self._largest(weight, new)

    def _largest(self, weight: Array, new: Array) -> float:
        held_out = np.bincount(self._held_out, weight, minlength=self._size)
        return float(np.abs(np.cumsum(new - held_out)).max())


def classes_alone_p_value(
    sample: LabeledSample,
    comparisons: Sequence[Comparison],
    size: int,
    estimate: Array,
    draws: int,
    rng: np.random.Generator,
) -> float:
    """p-value of the class frequencies being all that moved, from the largest of the standardized distances.

    The distribution of the distances without another shift is that of ``size`` rows drawn from the held-out ones with the
    estimated class frequencies, which are compared with redrawn held-out rows after estimating their frequencies anew.
    """
    expected = sample.shifted_weight(estimate)
    observed = np.array([comparison.distance(expected) for comparison in comparisons])
    distances = np.empty((draws, len(comparisons)))
    for draw, redrawn in enumerate(sample.redrawn(draws, rng)):
        times = rng.multinomial(size, expected)
        drawn = np.repeat(np.arange(len(times)), times)
        ratios = redrawn.ratios(sample.log_posterior[drawn])
        frequencies = estimated_frequencies(ratios, redrawn.frequencies, 0.0, COARSE, estimate)
        weight = redrawn.shifted_weight(frequencies)
        distances[draw] = [comparison.distance_within(weight, times) for comparison in comparisons]
    return _largest_p_value(observed, distances)


def _largest_p_value(observed: Array, drawn: Array) -> float:
    """p-value of the largest of several statistics, (j,), each standardized by its draws, (draws, j)."""
    mean, deviation = drawn.mean(axis=0), drawn.std(axis=0)
    varies = deviation > 0
    if not varies.any():
        return 1.0
    largest = ((observed - mean)[varies] / deviation[varies]).max()
    exceeding = np.sum(((drawn - mean)[:, varies] / deviation[varies]).max(axis=1) >= largest)
    return float((1 + exceeding) / (1 + len(drawn)))
