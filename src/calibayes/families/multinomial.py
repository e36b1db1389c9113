"""Event counts with a multinomial density given the class, such as the words of a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.abilities import GradientStep, LeftOut
from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import (
    TOLERANCE,
    probabilities_of,
    require_arrays,
    require_finite,
    require_sums_of_one,
)
from calibayes.families.counts import LEAST_SHARE, EventCounts, floored, nonzero_cells
from calibayes.kernels import event_counts as events
from calibayes.kernels import posterior as simplex

ROUNDING = 1e-9
"""Events below this share of those of a row that was subtracted are rounding errors of the subtraction."""


@dataclass(frozen=True)
class Multinomial(EventCounts):
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
        count = events.fortran_order(statistics["count"] + pseudo)
        count = events.fortran_order(floored(count, count.sum(axis=1, keepdims=True), pseudo))
        length = statistics["count"].sum() / statistics["rows"].sum()
        total = count.sum(axis=1, keepdims=True)
        log_probability = events.log_in_place(count)
        log_probability -= np.log(total)
        return {
            "log_probability": log_probability,
            "length": np.atleast_1d(length),
        }

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        require_arrays("parameters", parameters, {"log_probability": shape, "length": (1,)})
        require_finite("length", parameters["length"], (1,), least=0.0)
        probability = probabilities_of("log_probability", parameters["log_probability"])
        require_sums_of_one("log_probability", probability.sum(axis=1))

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        coefficient = events.log_multinomial_coefficients(columns)
        return events.scores(columns, parameters["log_probability"]) + coefficient[:, None]

    def contrast(self, columns: Array, parameters: Arrays) -> Array:
        """The log density without the multinomial coefficient, which is the same for all classes."""
        return events.scores(columns, parameters["log_probability"])

    def event_weights(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["log_probability"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        moved = parameters["log_probability"] + rate * direction["count"]
        return GradientStep({**parameters, "log_probability": simplex.log_project(moved)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo * parameters["log_probability"]))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
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
        raised = floored(remaining, left[rows], pseudo[cells])
        # Cells of count 0 are raised to the least share, and add to the total.
        empty = np.sum(count == 0, axis=1)[own] * LEAST_SHARE * np.where(left > 0, left, 1.0)
        sums = left + empty + np.bincount(rows, raised - remaining, minlength=n)
        scores = np.bincount(rows, values * np.log(raised), minlength=n) - lengths * np.log(sums)
        density = np.array(self.log_density(columns, left_out.parameters))
        density[np.arange(n), own] = scores + events.log_multinomial_coefficients(columns)
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
        others = floored(others, others.sum(axis=1, keepdims=True), pseudo)
        log_probability = np.log(others) - np.log(others.sum(axis=1, keepdims=True))
        if self.norm:
            total = log_probability.sum(axis=1, keepdims=True)  # 0 for a single column, whose weight is 0
            return {"weight": log_probability / np.where(total < 0, total, 1.0)}
        return {"weight": -log_probability}

    def verify_parameters(self, parameters: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        require_arrays("parameters", parameters, {"weight": (k, d)}, least=-TOLERANCE)
        if not self.norm:
            require_sums_of_one("weight", probabilities_of("weight", -parameters["weight"]).sum(axis=1))
        elif d > 1:
            require_sums_of_one("weight", parameters["weight"].sum(axis=1))

    def event_weights(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["weight"])

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        """Score of each class, (n, k); not a density."""
        return events.scores(columns, parameters["weight"])
