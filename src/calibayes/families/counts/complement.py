"""Complement naive Bayes (Rennie, Shih, Teevan and Karger 2003): how unlike the other classes a row is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.families.counts.event_counts import EventCounts
from calibayes.families.counts.pseudo_counts import floored
from calibayes.kernels.numbers import events


@dataclass(frozen=True)
class Complement(EventCounts):
    """A weight for each class and column: minus the log probability of the column's events in all other classes.

    What stands in for the log density is a score, the sum of the weights of a row's events. It is no density: it does
    not integrate to one, nothing can be sampled, and only the closed form is sensible. ``alpha`` is a pseudo-count of
    events per column, ``prior`` a `Dirichlet` instead of it.

    Parameters
    ----------
    norm : bool, default=False
        Whether a class's weights are divided by their sum, the second normalization of the paper.
    """

    norm: bool = False

    def parameters(self, statistics: Arrays) -> Arrays:
        count = statistics["count"]
        others = count.sum(axis=0) - count + self._pseudo
        others = floored(others, others.sum(axis=1, keepdims=True))
        logged = np.log(others) - np.log(others.sum(axis=1, keepdims=True))
        return {"weight": logged / logged.sum(axis=1, keepdims=True) if self.norm else -logged}

    def weights_of(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["weight"])

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        """A score, no density."""
        return events.scores(columns, parameters["weight"])
