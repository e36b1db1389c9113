"""Complement naive Bayes (Rennie, Shih, Teevan and Karger 2003): event weights from the counts of all other classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import TOLERANCE, probabilities_of, require_arrays, require_sums_of_one
from calibayes.families.counts.event_counts import EventCounts
from calibayes.families.counts.pseudo_counts import floored
from calibayes.kernels.numbers import events


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
