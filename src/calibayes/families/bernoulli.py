"""Columns of zeros and ones with independent Bernoulli densities given the class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.abilities import GradientStep, LeftOut
from calibayes.core.protocols import Array, Arrays, ValidStatistics
from calibayes.core.verify import probabilities_of, require_arrays, require_sums_of_one
from calibayes.families.counts import PseudoCounts, floored, keep_nonnegative, log_share, replace_own_class
from calibayes.kernels import event_counts, level_counts, moments
from calibayes.kernels import posterior as simplex


@dataclass(frozen=True)
class Bernoulli(PseudoCounts):
    """The probability of a one for each class and column. A missing value (NaN) is skipped.

    ``alpha`` is a pseudo-count of zeros and of ones; ``prior``, a `Dirichlet`, may be given instead of it.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0, 1], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("flags", Bernoulli(alpha=1.0), every)]).fit(X, y).predict([[1, 0]])
    array([1])
    """

    reads = "flags"

    @property
    def _pseudo(self) -> Array:
        return self.pseudo_counts([2] * len(self.layout.columns))

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        zeros, ones = level_counts.flag_counts(columns, weights)
        return {"zeros": zeros, "ones": ones}

    def parameters(self, statistics: Arrays) -> Arrays:
        pseudo = self._pseudo
        ones, zeros = statistics["ones"] + pseudo, statistics["zeros"] + pseudo
        ones, zeros = floored(ones, ones + zeros, pseudo), floored(zeros, ones + zeros, pseudo)
        log_total = np.log(ones + zeros)
        return {"log_one": np.log(ones) - log_total, "log_zero": np.log(zeros) - log_total}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return level_counts.flag_scores(columns, parameters["log_zero"], parameters["log_one"])

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("parameters", parameters, {"log_one": shape, "log_zero": shape})
        one, zero = (probabilities_of(name, parameters[name]) for name in ("log_one", "log_zero"))
        require_sums_of_one("log_one and log_zero", one + zero)

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("statistics", statistics, {"zeros": shape, "ones": shape}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.concatenate([statistics["zeros"], statistics["ones"]], axis=1)

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        zero = parameters["log_zero"] + rate * direction["zeros"]
        one = parameters["log_one"] + rate * direction["ones"]
        moved = simplex.log_project(np.stack([zero.ravel(), one.ravel()], axis=1))
        return GradientStep(
            {"log_one": moved[:, 1].reshape(one.shape), "log_zero": moved[:, 0].reshape(one.shape)}, None
        )

    def has_hidden(self, columns: Array) -> bool:
        return False  # missing values are not counted, so the statistics do not depend on the parameters

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo * (parameters["log_one"] + parameters["log_zero"])))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        probability = np.exp(parameters["log_one"])[classes]
        drawn = (rng.random(probability.shape) < probability).astype(np.float64)
        return drawn if given is None else np.where(np.isnan(given), drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        dense = event_counts.as_dense(columns)
        most_probable = (posterior @ np.exp(parameters["log_one"]) > 0.5).astype(np.float64)
        return np.where(np.isnan(dense), most_probable, dense)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        known, ones = moments.known_and_filled(event_counts.as_dense(columns, len(self.layout.classes)))
        log_one, log_zero = parameters["log_one"], parameters["log_zero"]
        return ones[:, None, :] * (log_one - log_zero) + known[:, None, :] * log_zero

    def leave_one_out(self, columns: Array, left_out: LeftOut) -> Array | None:
        pseudo = self._pseudo
        zeros, ones = left_out.statistics["zeros"] + pseudo, left_out.statistics["ones"] + pseudo
        total, even = zeros + ones, np.broadcast_to(pseudo, zeros.shape)

        def scores(rows: Array, weight: float) -> Array:
            zero = log_share(zeros, total, (ones == 0).astype(np.float64), even, weight)
            one = log_share(ones, total, (zeros == 0).astype(np.float64), even, weight)
            return level_counts.flag_scores(rows, zero, one)

        density = np.array(self.log_density(columns, left_out.parameters))
        return replace_own_class(density, columns, left_out, scores)
