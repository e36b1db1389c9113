"""Whether the class frequencies of new rows moved, and whether anything else did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.stats import chi2

from calibayes.core.protocols import Array
from calibayes.kernels.posterior import indicators, log_normalize
from calibayes.model.training_rows import HeldOut

# -- Bias-corrected temperature scaling: one factor for all log posteriors and one constant for each class ---
#
# Alexandari, Kundaje and Shrikumar (2020, ICML) recommend it for the estimation of class frequencies: after it, the mean
# posterior of the held-out rows is their class frequencies, so that these frequencies are the maximum-likelihood ones.

LOWEST = -700.0
"""Lowest log posterior that is used: exp of less is zero."""
MOST_FACTOR = 20.0
FACTOR_RIDGE, BIAS_RIDGE = 1.0, 1e-3
"""Weights of the squared distances of factor and constants from no change: errors of few rows do not make them infinite."""


@dataclass(frozen=True)
class BiasedTemperature:
    """log p(class | x) becomes ``factor * log p(class | x) + bias``, normalized."""

    coefficients: Array
    """Factor and constants, (1 + k,)."""

    def log_posterior(self, log_posterior: Array) -> Array:
        """Calibrated log posteriors, (n, k)."""
        factor, bias = self.coefficients[0], self.coefficients[1:]
        return log_normalize(factor * floored(log_posterior) + bias)[0]

    def moved(self, change: Array) -> BiasedTemperature:
        """With other coefficients; the factor stays at zero or above."""
        coefficients = self.coefficients + change
        coefficients[0] = np.clip(coefficients[0], 0.0, MOST_FACTOR)
        return BiasedTemperature(coefficients)


def floored(log_posterior: Array) -> Array:
    """Log posteriors without infinities."""
    return np.maximum(log_posterior, LOWEST)


def fitted_calibration(log_posterior: Array, codes: Array, weight: Array) -> BiasedTemperature:
    """The calibration with the lowest penalized log loss on labeled rows."""
    k = log_posterior.shape[1]
    bounds = [(0.0, MOST_FACTOR), *[(None, None)] * k]

    def objective(coefficients: Array) -> tuple[float, Array]:
        loss, gradients = _losses(BiasedTemperature(coefficients), log_posterior, codes)
        away = coefficients - _unchanged(k)
        penalty = _ridge(k) * away
        return float(weight @ loss + penalty @ away / 2), weight @ gradients + penalty

    found = minimize(objective, _unchanged(k), jac=True, method="L-BFGS-B", bounds=bounds, tol=1e-10)
    return BiasedTemperature(found.x)


def resampled_changes(
    calibration: BiasedTemperature, log_posterior: Array, codes: Array, weights: Array
) -> Array:
    """Changes of the coefficients if rows had other weights, (draws, 1 + k), from weights (draws, n): one Newton step each."""
    k = log_posterior.shape[1]
    _, gradients = _losses(calibration, log_posterior, codes)
    penalty = _ridge(k) * (calibration.coefficients - _unchanged(k))
    hessian = _hessian(calibration, log_posterior, weights.mean(axis=0))
    return -np.linalg.solve(hessian, (weights @ gradients + penalty).T).T


def _unchanged(k: int) -> Array:
    return np.concatenate([[1.0], np.zeros(k)])


def _ridge(k: int) -> Array:
    return np.concatenate([[FACTOR_RIDGE], np.full(k, BIAS_RIDGE)])


def _losses(calibration: BiasedTemperature, log_posterior: Array, codes: Array) -> tuple[Array, Array]:
    """Log loss of each row, (n,), and its gradient, (n, 1 + k)."""
    calibrated = calibration.log_posterior(log_posterior)
    residual = np.exp(calibrated) - indicators(codes, calibrated.shape[1])
    by_factor = np.sum(residual * floored(log_posterior), axis=1)
    return -calibrated[np.arange(len(codes)), codes], np.column_stack([by_factor, residual])


def _hessian(calibration: BiasedTemperature, log_posterior: Array, weight: Array) -> Array:
    """Second derivatives of the penalized log loss, (1 + k, 1 + k)."""
    posterior, values = np.exp(calibration.log_posterior(log_posterior)), floored(log_posterior)
    centered = values - np.sum(posterior * values, axis=1, keepdims=True)
    hessian = np.diag(_ridge(posterior.shape[1]))
    hessian[0, 0] += weight @ np.sum(posterior * centered**2, axis=1)
    hessian[0, 1:] = hessian[1:, 0] = weight @ (posterior * centered)
    hessian[1:, 1:] += np.diag(weight @ posterior) - (posterior * weight[:, None]).T @ posterior
    return hessian


# -- Class frequencies of unlabeled rows from their posteriors under other frequencies: maximum likelihood by EM
#
# Saerens, Latinne and Decaestecker (2002, Neural Computation 14): with p(x | class) unchanged, the likelihood of unlabeled rows is
# the product over rows of sum_c f_c p(c | x) / q_c, q being the frequencies that the posteriors belong to. It is concave in f.

MOST_STEPS = 500
TOLERANCE = 1e-8


def likelihood_ratios(log_posterior: Array, frequencies: Array) -> Array:
    """p(x | class) of each row up to a factor of the row, (n, k), from posteriors under these frequencies."""
    log_ratio = log_posterior - np.log(frequencies)
    return np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))


def estimated_frequencies(
    ratios: Array,
    prior: Array,
    pseudo_rows: float = 0.0,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
) -> Array:
    """The most probable frequencies, (k,), with a Dirichlet prior of ``pseudo_rows`` rows that have frequencies ``prior``.

    EM steps with SQUAREM extrapolation (Varadhan and Roland 2008): three EM steps, of which the last one starts from an
    extrapolation of the others. ``start`` is where to begin, halfway from ``prior``: EM never leaves a frequency of zero.
    """
    current = prior if start is None else (prior + start) / 2
    for _ in range(MOST_STEPS):
        first = _em_step(current, ratios, prior, pseudo_rows)
        second = _em_step(first, ratios, prior, pseudo_rows)
        if np.abs(second - first).max() <= tolerance:
            return second
        current = _em_step(_extrapolated(current, first, second), ratios, prior, pseudo_rows)
        if _objective(current, ratios, prior, pseudo_rows) < _objective(second, ratios, prior, pseudo_rows):
            current = second
    return current


def _em_step(frequencies: Array, ratios: Array, prior: Array, pseudo_rows: float) -> Array:
    """Expected class counts of the rows and the pseudo-rows, divided by their number."""
    counts = frequencies * ((1.0 / (ratios @ frequencies)) @ ratios)
    mean: Array = (counts + pseudo_rows * prior) / (len(ratios) + pseudo_rows)
    return mean / mean.sum()


def _extrapolated(start: Array, first: Array, second: Array) -> Array:
    """The limit that three EM iterates point to; probabilities stay positive."""
    change, bend = first - start, second - 2 * first + start
    size = float(np.linalg.norm(bend))
    if size == 0.0:
        return second
    step = max(float(np.linalg.norm(change)) / size, 1.0)
    aim = np.maximum(start + 2 * step * change + step**2 * bend, second / 10)
    return np.asarray(aim / aim.sum())


def log_likelihood(frequencies: Array, ratios: Array) -> float:
    """Log likelihood of the rows, up to a term that does not depend on the frequencies."""
    return float(np.log(ratios @ frequencies).sum())


def _objective(frequencies: Array, ratios: Array, prior: Array, pseudo_rows: float) -> float:
    penalty = 0.0 if pseudo_rows == 0 else pseudo_rows * float(prior @ np.log(frequencies))
    return log_likelihood(frequencies, ratios) + penalty


# -- Whether the class frequencies of new rows moved, and whether anything else did --------------------------

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
        mass = np.bincount(self.codes, self.weight, minlength=self.log_posterior.shape[1])
        return np.asarray(mass / mass.sum())

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
        ratios = redrawn.ratios(log_posterior[rows])
        found[draw] = estimated_frequencies(ratios, redrawn.frequencies, 0.0, COARSE, estimate)
    return found


class Comparison:
    """Distances between the distributions of a number in new rows and in held-out rows, for any weights of both."""

    def __init__(self, held_out: Array, new: Array) -> None:
        values, places = np.unique(np.concatenate([held_out, new]), return_inverse=True)
        self._size = len(values)
        self._held_out, self._new = places[: len(held_out)], places[len(held_out) :]

    def distance(self, weight: Array) -> float:
        """Kolmogorov-Smirnov distance of the new rows from held-out rows with weights that sum to one."""
        return self._largest(weight, np.bincount(self._new, minlength=self._size) / len(self._new))

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
