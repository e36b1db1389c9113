"""Compositions, rows of positive parts that sum to 1: the Dirichlet distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import gammaln, logsumexp, polygamma, psi

from calibayes.core.protocols import Array, Arrays, Generator, Layout
from calibayes.core.verify import TOLERANCE, require, require_arrays
from calibayes.families.prior_rows import LOST_DIGITS, ExponentialFamily, within_limits

TOTAL_STEPS, INVERSE_STEPS = 40, 6
LOG_TOTALS = -30.0, 40.0
"""Limits of the logarithm of the sum of the parameters."""


@dataclass(frozen=True)
class DirichletDensity(ExponentialFamily):
    """Rows of two or more positive parts that sum to 1, such as shares of a budget, with a Dirichlet density.

    The parameters are those of maximum likelihood: digamma(alpha_j) - digamma(sum of alpha) is the mean of log x_j. One missing
    part (NaN) of a row is 1 minus the others. Of rows with more missing parts predictions use the density of the known
    ones, and training leaves them out. `calibayes.families.Dirichlet` is another thing, a prior of probabilities.

    Parameters
    ----------
    prior_rows : float, default=0
        Pseudo-rows added to each class, distributed as the rows of all classes together.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X = [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.3, 0.6]]
    >>> model = GenerativeClassifier(families=[("shares", DirichletDensity(), every)]).fit(X, [0, 0, 1, 1])
    >>> model.predict([[0.7, 0.1, 0.2], [0.2, None, None]])
    array([0, 1])
    """

    reads: ClassVar[str] = "numbers"
    requirement: ClassVar[str] = "two different rows"

    def bind(self, layout: Layout) -> Self:
        if layout.classes and len(layout.columns) < 2:
            columns = ", ".join(map(repr, layout.columns))
            raise ValueError(f"a DirichletDensity needs two or more columns that sum to 1, got {columns}")
        return super().bind(layout)

    def in_support(self, x: Array) -> Array:
        """Which cells are above 0. Raises ValueError if the parts of a row do not sum to 1."""
        is_part = np.asarray(np.isfinite(x) & (x > 0))
        known = np.asarray(~np.isnan(x))
        total, complete = np.where(is_part, x, 0.0).sum(axis=1), np.asarray(known.all(axis=1))
        wrong = np.where(complete, np.abs(total - 1.0) > TOLERANCE, total >= 1.0)
        for row in np.flatnonzero(wrong & np.all(is_part | ~known, axis=1))[:1]:
            columns, parts = ", ".join(map(repr, self.layout.columns)), "" if complete[row] else "known "
            raise ValueError(
                f"the {parts}parts {columns} of a row sum to {total[row]:g}, and a DirichletDensity is one of parts "
                "that sum to 1: divide each row by its sum"
            )
        return is_part

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        x = np.asarray(columns, dtype=np.float64)
        is_missing = np.isnan(x)
        used = is_missing.sum(axis=1) <= 1
        with np.errstate(all="ignore"):
            logs = np.log(np.where(is_missing, 1.0 - np.nansum(x, axis=1, keepdims=True), x))
        sums = weights.T @ np.where(used[:, None], logs, 0.0)
        return {"count": weights.T @ used[:, None].astype(np.float64), "log": sums}

    def has_hidden(self, columns: Array) -> bool:
        return False  # rows with several missing parts are left out, so the statistics do not depend on the parameters

    def has_estimate(self, statistics: Arrays) -> Array:
        with np.errstate(all="ignore"):
            mean_log = statistics["log"] / statistics["count"]
            return np.asarray(logsumexp(mean_log, axis=1, keepdims=True) < -LOST_DIGITS)

    def estimate(self, statistics: Arrays) -> Arrays:
        return {"alpha": alpha_of(statistics["log"] / statistics["count"])}

    def log_likelihood(self, statistics: Arrays, parameters: Arrays) -> Array:
        alpha = parameters["alpha"]
        logs = (alpha - 1.0) * statistics["log"] - statistics["count"] * gammaln(alpha)
        return np.asarray(logs.sum(axis=1) + (statistics["count"] * gammaln(_total(alpha)))[:, 0])

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        """All missing parts of a row together are one part of a Dirichlet density, whose alpha is their sum."""
        x, alpha = np.asarray(columns, dtype=np.float64), parameters["alpha"]
        known, rest = ~np.isnan(x), 1.0 - np.nansum(x, axis=1)
        complete = np.asarray(known.all(axis=1))
        with np.errstate(all="ignore"):
            logs, log_rest = np.log(np.where(known, x, 1.0)), np.log(rest)
        density = gammaln(alpha.sum(axis=1)) + logs @ (alpha - 1.0).T - known @ gammaln(alpha).T
        of_rest = ~known[~complete] @ alpha.T
        density[~complete] += (of_rest - 1.0) * log_rest[~complete, None] - gammaln(of_rest)
        is_composition = np.where(complete, np.abs(rest) <= TOLERANCE, rest > 0) & (logs > -np.inf).all(
            axis=1
        )
        return np.where(is_composition[:, None], density, -np.inf)

    def natural(self, parameters: Arrays) -> Arrays:
        return {"log": parameters["alpha"]}

    def from_natural(self, natural: Arrays) -> Arrays:
        return {"alpha": within_limits(natural["log"])}

    def expected(self, parameters: Arrays) -> Arrays:
        return {"log": psi(parameters["alpha"]) - psi(_total(parameters["alpha"]))}

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        """The parts that are not given share what the others leave."""
        amounts = np.maximum(rng.standard_gamma(parameters["alpha"][classes]), np.finfo(np.float64).tiny)
        if given is None:
            return np.asarray(amounts / _total(amounts))
        return _shared(given, amounts)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing parts replaced by their expected value, classes weighted by the posterior."""
        by_class = [_shared(columns, np.broadcast_to(alpha, columns.shape)) for alpha in parameters["alpha"]]
        expected = sum(of_class * p[:, None] for of_class, p in zip(by_class, posterior.T, strict=True))
        return np.where(np.isnan(columns), expected, columns)

    def verify_statistics(self, statistics: Arrays) -> None:
        k = len(self.layout.classes)
        require_arrays("statistics", statistics, {"count": (k, 1), "log": (k, len(self.layout.columns))})
        require(bool(np.all(statistics["count"] >= 0)), "count contains numbers below 0")

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("parameters", parameters, {"alpha": shape})
        require(bool((parameters["alpha"] > 0).all()), "alpha contains numbers that are not positive")

    def _shapes_of_pseudo(self) -> Arrays:
        return {"count": np.zeros((1, 1)), "log": np.zeros((1, len(self.layout.columns)))}


def _total(parts: Array) -> Array:
    return np.asarray(parts.sum(axis=1, keepdims=True))


def _shared(columns: Array, amounts: Array) -> Array:
    """The rows, with what is left of 1 divided among the missing parts in proportion to amounts."""
    is_missing = np.isnan(columns)
    rest, total = 1.0 - np.nansum(columns, axis=1, keepdims=True), _total(is_missing * amounts)
    return np.where(is_missing, amounts * (rest / np.where(total > 0, total, 1.0)), columns)


def alpha_of(mean_log: Array) -> Array:
    """The parameters of the Dirichlet densities with these means of log x, (k, d).

    Given the sum s of the parameters, each is the inverse digamma function of digamma(s) + mean_log (Minka 2000). The s for
    which they sum to s is found by Newton steps on log s, within bounds that shrink as in bisection.
    """
    low, high = (np.full((len(mean_log), 1), bound) for bound in LOG_TOTALS)
    start = (mean_log.shape[1] - 1.0) / (
        2.0 * (1.0 - _total(np.exp(mean_log)))
    )  # for nearly normal densities
    log_total = np.clip(np.log(np.where(start > 0, start, 1.0)), low, high)
    for _ in range(TOTAL_STEPS):
        total = np.exp(log_total)
        alpha = inverse_psi(psi(total) + mean_log)
        excess = _total(alpha) - total
        low, high = np.where(excess > 0, log_total, low), np.where(excess > 0, high, log_total)
        slope = total * (polygamma(1, total) * _total(1.0 / polygamma(1, alpha)) - 1.0)
        moved = log_total - excess / slope
        log_total = np.where((moved >= low) & (moved <= high), moved, (low + high) / 2.0)
    return np.asarray(inverse_psi(psi(np.exp(log_total)) + mean_log))


def inverse_psi(value: Array) -> Array:
    """The number from 0 on whose digamma function is a value: Newton steps from the start of Minka (2000)."""
    known = np.where(np.isfinite(value), value, 0.0)
    x = np.where(known >= -2.22, np.exp(known) + 0.5, -1.0 / (np.minimum(known, -2.0) + np.euler_gamma))
    for _ in range(INVERSE_STEPS):
        x = x - (psi(x) - known) / polygamma(1, x)
    return np.where(np.isfinite(value), x, np.nan)
