"""Families over event counts: Poisson rates of independent columns, or multinomial rows such as the words of documents."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from calibayes.core import verify
from calibayes.core.abilities import GradientStep, LeftOut
from calibayes.core.protocols import Array, Arrays, Generator, Layout, ValidStatistics
from calibayes.families import counts
from calibayes.families.density import UNBOUND
from calibayes.families.priors import Gamma
from calibayes.kernels import event_counts, moments
from calibayes.kernels.event_counts import is_sparse
from calibayes.kernels.posterior import LARGEST_LOG, log_project


@dataclass(frozen=True)
class Poisson(counts.SkipsMissing):
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
        pseudo_rows, statistics = self.pseudo_rows, start if pooled is None else pooled
        if self.prior is not None:
            count = statistics["count"].sum(axis=0)
            mean = statistics["sum"].sum(axis=0) / np.where(count > 0, count, 1.0)
            pseudo_rows = self.prior.pseudo_rows(np.maximum(mean, counts.LEAST_SHARE))
        empty = ~(start["count"] + pseudo_rows > 0)
        if empty.any():
            c, j = np.argwhere(empty)[0]
            raise ValueError(
                f"class {self.layout.classes[c]!r} has no known cell in column {self.layout.columns[j]!r}: "
                "give a prior (prior=Gamma()) or leave the column out"
            )
        return replace(self, pseudo_rows=pseudo_rows)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {
            "count": event_counts.known_weights(columns, weights),
            "sum": event_counts.totals(event_counts.filled(columns), weights),
        }

    def parameters(self, statistics: Arrays) -> Arrays:
        rows = statistics["count"] + self.pseudo_rows
        rate = (statistics["sum"] + self._pseudo_events) / rows
        rate = counts.floored(rate, rate.sum(axis=0), self._pseudo_events / rows)
        return {"rate": rate, "log_rate": np.log(rate)}

    def verify(self) -> None:
        self.layout.verify()
        if np.ndim(self.pseudo_rows) or self.layout.classes:
            shape = (len(self.layout.columns),) if np.ndim(self.pseudo_rows) else ()
            verify.require_finite("pseudo_rows", self.pseudo_rows, shape, least=0.0)

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("parameters", parameters, {"rate": shape, "log_rate": shape})
        rate, log_rate = parameters["rate"], parameters["log_rate"]
        verify.require(bool((rate > 0).all()), "rate contains numbers that are not positive")
        verify.require_close("log_rate", log_rate, np.log(rate), 1.0 + np.abs(log_rate))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("statistics", statistics, {"count": shape, "sum": shape}, least=0.0)

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        event_scores = event_counts.scores(event_counts.filled(columns), parameters["log_rate"])
        expected = event_counts.sum_over_known(columns, parameters["rate"])
        return np.asarray(event_scores - expected - event_counts.log_factorials(columns)[:, None])

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class and column whose sum would be negative, or whose count would not be positive, keeps both."""
        invalid = ~((proposed["count"] > 0) & (proposed["sum"] >= 0))
        statistics = {name: np.where(invalid, current[name], value) for name, value in proposed.items()}
        return ValidStatistics(statistics, len(statistics) * int(invalid.sum()), np.all(invalid, axis=1))

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log rates."""
        gradient = direction["sum"] - direction["count"] * parameters["rate"]
        moved = np.clip(parameters["log_rate"] + rate * gradient, np.log(counts.LEAST_SHARE), LARGEST_LOG)
        return GradientStep({"rate": np.exp(moved), "log_rate": moved}, None)

    def log_prior(self, parameters: Arrays) -> float:
        """Log prior density of the log rates."""
        events = self._pseudo_events * parameters["log_rate"]
        return float(np.sum(events - self.pseudo_rows * parameters["rate"]))

    def prior_direction(self, parameters: Arrays) -> Arrays:
        return {"sum": self._pseudo_events - self.pseudo_rows * parameters["rate"]}

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
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
            pseudo_rows = self.prior.pseudo_rows(np.maximum(mean, counts.LEAST_SHARE))
        own = left_out.codes == np.arange(k)[:, None]
        count, total = (
            np.maximum(left_out.statistics[name][:, None, :] - own[:, :, None] * removed[name], 0.0)
            for name in ("count", "sum")
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (total + self._pseudo_events) / (count + pseudo_rows)
            rate = counts.floored(rate, rate.sum(axis=0), self._pseudo_events / (count + pseudo_rows))
            terms = np.where(known, x * np.log(rate) - rate, 0.0)
        density = np.asarray(terms.sum(axis=2).T - event_counts.log_factorials(columns)[:, None])
        density[~(count + pseudo_rows > 0).all(axis=(0, 2))] = np.nan
        return density


# -- Base of families over event counts: the number of events of each column in each class -------------------


@dataclass(frozen=True)
class EventCounts(counts.PseudoCounts):
    """Statistics: events of each class and column (k, d), and rows of each class (k,)."""

    reads = "counts"

    @property
    def _pseudo(self) -> Array:
        d = len(self.layout.columns)
        return self.pseudo_counts([d] * d)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": event_counts.totals(columns, weights), "rows": moments.zeroth(weights)}

    def verify_statistics(self, statistics: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("statistics", statistics, {"count": (k, d), "rows": (k,)}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """An event count that would be negative, or a row count that would not be positive, keeps its value."""
        return counts.keep_nonnegative(current, proposed, positive="rows")

    @abstractmethod
    def event_weights(self, parameters: Arrays) -> Array:
        """Contribution of one event of each column to the log density of each class, (k, d)."""

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        dense = event_counts.as_dense(columns, len(self.layout.classes))
        return np.asarray(dense[:, None, :] * self.event_weights(parameters))


def nonzero_cells(columns: Array) -> tuple[Array, Array, Array]:
    """Row, column and value of each cell that is not 0, of a dense or sparse table."""
    if is_sparse(columns):
        rows = np.repeat(np.arange(columns.shape[0]), np.diff(columns.indptr))
        return rows, np.asarray(columns.indices), np.asarray(columns.data, dtype=np.float64)
    rows, cells = np.nonzero(columns)
    return rows, cells, np.asarray(columns[rows, cells], dtype=np.float64)


# -- Event counts with a multinomial density given the class, such as the words of a document ----------------

ROUNDING = 1e-9
"""Events below this share of those of a row that was subtracted are rounding errors of the subtraction."""


@dataclass(frozen=True)
class Multinomial(EventCounts, counts.LogProbabilities):
    """For each class, the probability that an event falls into each column.

    The density is that of a row given its length (number of events), multinomial coefficient included: it sums to one
    over all rows of a length. The length does not depend on the class; sampled rows have Poisson lengths with the mean
    of the training rows. Counts need not be integers (tf-idf, for example): the coefficient then uses gamma functions
    and the sum is no longer one. ``alpha`` is a pseudo-count of events per column; ``prior``, a `Dirichlet`, may be
    given instead of it. Missing values are not supported.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[3, 0], [2, 1], [0, 4], [1, 5]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("words", Multinomial(alpha=1.0), every)]).fit(X, y).predict([[2, 0]])
    array([0])
    """

    def parameters(self, statistics: Arrays) -> Arrays:
        pseudo = self._pseudo
        count = event_counts.fortran_order(statistics["count"] + pseudo)
        count = event_counts.fortran_order(counts.floored(count, count.sum(axis=1, keepdims=True), pseudo))
        length = statistics["count"].sum() / statistics["rows"].sum()
        total = count.sum(axis=1, keepdims=True)
        log_probability = event_counts.log_in_place(count)
        log_probability -= np.log(total)
        return {"log_probability": log_probability, "length": np.atleast_1d(length)}

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("parameters", parameters, {"log_probability": shape, "length": (1,)})
        verify.require_finite("length", parameters["length"], (1,), least=0.0)
        probability = verify.probabilities_of("log_probability", parameters["log_probability"])
        verify.require_sums_of_one("log_probability", probability.sum(axis=1))

    def prior_direction(self, parameters: Arrays) -> Arrays:
        pseudo = self._pseudo
        return {"count": pseudo - pseudo.sum() * np.exp(parameters["log_probability"])}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        coefficient = event_counts.log_multinomial_coefficients(columns)
        return event_counts.scores(columns, parameters["log_probability"]) + coefficient[:, None]

    def contrast(self, columns: Array, parameters: Arrays) -> Array:
        """The log density without the multinomial coefficient, which is the same for all classes."""
        return event_counts.scores(columns, parameters["log_probability"])

    def event_weights(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["log_probability"])

    def _projected(self, log_probability: Array) -> Array:
        return log_project(log_probability)

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        if given is not None and not np.isnan(given).all():
            raise ValueError(
                "Multinomial cannot sample rows in which some cells are given: sample whole rows instead"
            )
        lengths = rng.poisson(parameters["length"], size=len(classes))
        probability = np.exp(parameters["log_probability"])
        probability = probability / probability.sum(axis=1, keepdims=True)
        rows = np.zeros((len(classes), probability.shape[1]))
        for c, class_probability in enumerate(probability):
            rows[classes == c] = rng.multinomial(lengths[classes == c], class_probability)
        return rows

    def leave_one_out(self, columns: Array, left_out: LeftOut) -> Array | None:
        pseudo, own = self._pseudo, left_out.codes
        count = left_out.statistics["count"] + pseudo
        rows, cells, values = nonzero_cells(columns)
        removed = values * left_out.weight[rows]
        n, total = columns.shape[0], count.sum(axis=1)
        lengths = np.bincount(rows, values, minlength=n)
        left = np.maximum(total[own] - lengths * left_out.weight, 0.0)
        remaining = np.maximum(count[own[rows], cells] - removed, 0.0)
        remaining[remaining <= ROUNDING * removed] = 0.0
        raised = counts.floored(remaining, left[rows], pseudo[cells])
        # Cells of count 0 are raised to the least share, and add to the total.
        empty = np.sum(count == 0, axis=1)[own] * counts.LEAST_SHARE * np.where(left > 0, left, 1.0)
        sums = left + empty + np.bincount(rows, raised - remaining, minlength=n)
        scores = np.bincount(rows, values * np.log(raised), minlength=n) - lengths * np.log(sums)
        density = np.array(self.log_density(columns, left_out.parameters))
        density[np.arange(n), own] = scores + event_counts.log_multinomial_coefficients(columns)
        return density


# -- Complement naive Bayes (Rennie, Shih, Teevan and Karger 2003): event weights from the counts of all other classes


@dataclass(frozen=True)
class Complement(EventCounts):
    """A weight for each class and column: minus the log probability of the column's events in all other classes.

    `log_density` returns a score, the sum of the weights of a row's events. The score is not a density: it does not
    integrate to one, cannot be sampled from, and should be trained in closed form only. ``alpha`` is a pseudo-count
    of events per column; ``prior``, a `Dirichlet`, may be given instead of it.

    Parameters
    ----------
    norm : bool, default=False
        Whether the weights of a class are divided by their sum, the second normalization of the paper.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[3, 0], [2, 1], [0, 4], [1, 5]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("words", Complement(alpha=1.0), every)], rule="ml").fit(X, y).predict([[2, 0]])
    array([0])
    """

    norm: bool = False

    def parameters(self, statistics: Arrays) -> Arrays:
        count = statistics["count"]
        pseudo = self._pseudo
        others = count.sum(axis=0) - count + pseudo
        others = counts.floored(others, others.sum(axis=1, keepdims=True), pseudo)
        log_probability = np.log(others) - np.log(others.sum(axis=1, keepdims=True))
        if self.norm:
            total = log_probability.sum(axis=1, keepdims=True)  # 0 for a single column, whose weight is 0
            return {"weight": log_probability / np.where(total < 0, total, 1.0)}
        return {"weight": -log_probability}

    def verify_parameters(self, parameters: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("parameters", parameters, {"weight": (k, d)}, least=-verify.TOLERANCE)
        weight = parameters["weight"]
        if not self.norm:
            weight = verify.probabilities_of("weight", -weight)
        if not self.norm or d > 1:
            verify.require_sums_of_one("weight", weight.sum(axis=1))

    def event_weights(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["weight"])

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        """Score of each class, (n, k); not a density."""
        return event_counts.scores(columns, parameters["weight"])
