"""Event counts with independent Poisson densities given the class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.abilities import GradientStep, LeftOut
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import require, require_arrays, require_close, require_finite
from calibayes.families.counts import LEAST_SHARE, floored
from calibayes.families.density import UNBOUND
from calibayes.families.priors import Gamma
from calibayes.kernels import event_counts
from calibayes.kernels.posterior import LARGEST_LOG


@dataclass(frozen=True)
class Poisson:
    """The rate of events of each class and column. A missing value (NaN) is skipped.

    Counts need not be integers: the factorial of the density is then a gamma function, and the density no longer sums
    to one.

    Parameters
    ----------
    prior : Gamma, optional
        Prior of the rates; None is maximum likelihood. A rate of 0 is raised to 1e-12 of the sum of the column's rates.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[1, 4], [0, 3], [5, 1], [6, 1]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("events", Poisson(), every)]).fit(X, y).predict([[5, 0]])
    array([1])
    """

    prior: Gamma | None = None
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)
    pseudo_rows: Array = field(default_factory=lambda: np.zeros(()), repr=False, compare=False)
    """Pseudo-count of rows of each column, (d,), set by `prepare`."""

    reads = "counts"

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Gamma):
            raise ValueError(f"the prior of Poisson must be a Gamma() or None, got {self.prior!r}")

    def bind(self, layout: Layout) -> Poisson:
        return replace(self, layout=layout)

    def conjugate(self) -> Poisson:
        return self if self.prior else replace(self, prior=Gamma())

    def exact(self) -> Poisson:
        return self

    @property
    def _pseudo_events(self) -> float:
        return self.prior.shape if self.prior else 0.0

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Poisson:
        return self._with_pseudo_rows(start if pooled is None else pooled)._checked(start)

    def _with_pseudo_rows(self, statistics: Arrays) -> Poisson:
        if self.prior is None:
            return self
        count = statistics["count"].sum(axis=0)
        mean = statistics["sum"].sum(axis=0) / np.where(count > 0, count, 1.0)
        return replace(self, pseudo_rows=self.prior.pseudo_rows(np.maximum(mean, LEAST_SHARE)))

    def _checked(self, start: Arrays) -> Poisson:
        empty = ~(start["count"] + self.pseudo_rows > 0)
        if empty.any():
            c, j = np.argwhere(empty)[0]
            raise ValueError(
                f"class {self.layout.classes[c]!r} has no known cell in column {self.layout.columns[j]!r}: "
                "give a prior (prior=Gamma()) or leave the column out"
            )
        return self

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {
            "count": event_counts.known_weights(columns, weights),
            "sum": event_counts.totals(event_counts.filled(columns), weights),
        }

    def parameters(self, statistics: Arrays) -> Arrays:
        rows = statistics["count"] + self.pseudo_rows
        rate = (statistics["sum"] + self._pseudo_events) / rows
        rate = floored(rate, rate.sum(axis=0), self._pseudo_events / rows)
        return {"rate": rate, "log_rate": np.log(rate)}

    def verify(self) -> None:
        self.layout.verify()
        if np.ndim(self.pseudo_rows) or self.layout.classes:
            shape = (len(self.layout.columns),) if np.ndim(self.pseudo_rows) else ()
            require_finite("pseudo_rows", self.pseudo_rows, shape, least=0.0)

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("parameters", parameters, {"rate": shape, "log_rate": shape})
        rate, log_rate = parameters["rate"], parameters["log_rate"]
        require(bool((rate > 0).all()), "rate contains numbers that are not positive")
        require_close("log_rate", log_rate, np.log(rate), 1.0 + np.abs(log_rate))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("statistics", statistics, {"count": shape, "sum": shape}, least=0.0)

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        event_scores = event_counts.scores(event_counts.filled(columns), parameters["log_rate"])
        expected = event_counts.sum_over_known(columns, parameters["rate"])
        return np.asarray(event_scores - expected - event_counts.log_factorials(columns)[:, None])

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class and column whose sum would be negative, or whose count would not be positive, keeps both."""
        invalid = ~((proposed["count"] > 0) & (proposed["sum"] >= 0))
        statistics = {name: np.where(invalid, current[name], value) for name, value in proposed.items()}
        return ValidStatistics(statistics, len(statistics) * int(invalid.sum()), invalid.all(axis=1))

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log rates."""
        gradient = direction["sum"] - direction["count"] * parameters["rate"]
        moved = np.clip(parameters["log_rate"] + rate * gradient, np.log(LEAST_SHARE), LARGEST_LOG)
        return GradientStep({"rate": np.exp(moved), "log_rate": moved}, None)

    def has_hidden(self, columns: Array) -> bool:
        return False  # missing values are not counted, so the statistics do not depend on the parameters

    def log_prior(self, parameters: Arrays) -> float:
        """Log prior density of the log rates."""
        return float(
            np.sum(self._pseudo_events * parameters["log_rate"] - self.pseudo_rows * parameters["rate"])
        )

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = rng.poisson(parameters["rate"][classes]).astype(np.float64)
        return drawn if given is None else np.where(np.isnan(given), drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the expected number of events."""
        dense = event_counts.as_dense(columns)
        return np.where(np.isnan(dense), posterior @ parameters["rate"], dense)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = event_counts.as_dense(columns, len(self.layout.classes))
        cells = dense[:, None, :] * parameters["log_rate"] - parameters["rate"]
        return np.where(np.isnan(dense)[:, None, :], 0.0, cells)

    def leave_one_out(self, columns: Array, left_out: LeftOut) -> Array | None:
        """Rates of all classes without each row: the default prior depends on the mean of all rows."""
        x, k = event_counts.as_dense(columns, len(self.layout.classes)), len(self.layout.classes)
        known = ~np.isnan(x)
        rows = np.where(known, left_out.weight[:, None], 0.0)
        removed = {"count": rows, "sum": rows * np.where(known, x, 0.0)}
        others = {name: left_out.statistics[name].sum(axis=0) - value for name, value in removed.items()}
        mean = np.maximum(others["sum"], 0.0) / np.where(others["count"] > 0, others["count"], 1.0)
        pseudo_rows = np.zeros(x.shape)
        if self.prior is not None:
            fixed = self.prior.rate
            pseudo_rows = (
                self.prior.shape / np.maximum(mean, LEAST_SHARE) if fixed is None else pseudo_rows + fixed
            )
        own = left_out.codes == np.arange(k)[:, None]
        count, total = (
            np.maximum(left_out.statistics[name][:, None, :] - own[:, :, None] * removed[name], 0.0)
            for name in ("count", "sum")
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (total + self._pseudo_events) / (count + pseudo_rows)
            rate = floored(rate, rate.sum(axis=0), self._pseudo_events / (count + pseudo_rows))
            terms = np.where(known, x * np.log(rate) - rate, 0.0)
        density = np.asarray(terms.sum(axis=2).T - event_counts.log_factorials(columns)[:, None])
        density[~(count + pseudo_rows > 0).all(axis=(0, 2))] = np.nan
        return density
