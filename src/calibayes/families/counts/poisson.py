"""Columns of counts, independent given the class, each a Poisson."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.counts.pseudo_counts import LEAST_SHARE, floored
from calibayes.families.priors import Gamma
from calibayes.kernels.numbers import events, sparse
from calibayes.kernels.posterior.simplex import LARGEST_LOG


@dataclass(frozen=True)
class Poisson:
    """The rate of events for each class and column. A missing cell (NaN) is skipped.

    Counts need not be whole: the density's factorial is then a gamma function, and sums to one no more.

    Parameters
    ----------
    prior : Gamma, optional
        Prior of the rates; None is maximum likelihood, where a column without events in a class has the least share
        of the column's rates.
    """

    prior: Gamma | None = None
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)
    rows: Array = field(default_factory=lambda: np.zeros(()), repr=False, compare=False)
    """Pseudo-rows of each column, (d,)."""

    reads = "counts"

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Gamma):
            raise ValueError(f"the prior of a Poisson is a Gamma() or None, got {self.prior!r}")

    def bind(self, layout: Layout) -> Poisson:
        return replace(self, layout=layout)

    def conjugate(self) -> Poisson:
        return self if self.prior else replace(self, prior=Gamma())

    def exact(self) -> Poisson:
        return self

    @property
    def _events(self) -> float:
        return self.prior.shape if self.prior else 0.0

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Poisson:
        return self._with_rows(start if pooled is None else pooled)._checked(start)

    def _with_rows(self, every: Arrays) -> Poisson:
        if self.prior is None:
            return self
        count = every["count"].sum(axis=0)
        mean = every["sum"].sum(axis=0) / np.where(count > 0, count, 1.0)
        return replace(self, rows=self.prior.rows(np.maximum(mean, LEAST_SHARE)))

    def _checked(self, start: Arrays) -> Poisson:
        lost = ~(start["count"] + self.rows > 0)
        if lost.any():
            c, j = np.argwhere(lost)[0]
            raise ValueError(
                f"class {self.layout.classes[c]!r} has no known cell in column {self.layout.columns[j]!r}: "
                "a prior (prior=Gamma()) or leaving the column out helps"
            )
        return self

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {
            "count": sparse.known_weights(columns, weights),
            "sum": events.totals(sparse.filled(columns), weights),
        }

    def parameters(self, statistics: Arrays) -> Arrays:
        rate = (statistics["sum"] + self._events) / (statistics["count"] + self.rows)
        rate = floored(rate, rate.sum(axis=0))
        return {"rate": rate, "log_rate": np.log(rate)}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        of_events = events.scores(sparse.filled(columns), parameters["log_rate"])
        expected = sparse.sum_over_known(columns, parameters["rate"])
        return np.asarray(of_events - expected - events.log_factorials(columns)[:, None])

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class and column whose sum would be negative, or its count not positive, keeps both."""
        keep = ~((proposed["count"] > 0) & (proposed["sum"] >= 0))
        kept = {name: np.where(keep, current[name], value) for name, value in proposed.items()}
        return ValidStatistics(kept, len(kept) * int(keep.sum()), keep.all(axis=1))

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient in the log rates."""
        gradient = direction["sum"] - direction["count"] * parameters["rate"]
        moved = np.clip(parameters["log_rate"] + rate * gradient, np.log(LEAST_SHARE), LARGEST_LOG)
        return GradientStep({"rate": np.exp(moved), "log_rate": moved}, None)

    def has_hidden(self, columns: Array) -> bool:
        return False  # a missing cell is not counted, whatever the parameters

    def log_prior(self, parameters: Arrays) -> float:
        """Of the log rates."""
        return float(np.sum(self._events * parameters["log_rate"] - self.rows * parameters["rate"]))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = rng.poisson(parameters["rate"][classes]).astype(np.float64)
        return drawn if given is None else np.where(np.isnan(given), drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """The mean number of events."""
        dense = sparse.as_dense(columns)
        return np.where(np.isnan(dense), posterior @ parameters["rate"], dense)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.layout.columns

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = sparse.as_dense(columns, len(self.layout.classes))
        cells = dense[:, None, :] * parameters["log_rate"] - parameters["rate"]
        return np.where(np.isnan(dense)[:, None, :], 0.0, cells)
