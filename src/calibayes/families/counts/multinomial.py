"""Counts over columns as draws of one multinomial: words of a document."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays
from calibayes.families.counts.event_counts import EventCounts
from calibayes.families.counts.pseudo_counts import floored
from calibayes.kernels.numbers import events
from calibayes.kernels.posterior import simplex


@dataclass(frozen=True)
class Multinomial(EventCounts):
    """The probability that an event of a class falls into each column.

    The density is that of a row given its length (number of events): with the multinomial coefficient, so that it sums
    to one over all rows of a length. The length itself says nothing about the class; new rows have Poisson lengths
    with the mean of the training rows. Counts need not be whole (such as tf-idf): the coefficient is then one of gamma
    functions, and the sum is one no more. ``alpha`` is a pseudo-count of events per column, ``prior`` a `Dirichlet`
    instead of it. Missing cells cannot be used.
    """

    def parameters(self, statistics: Arrays) -> Arrays:
        count = events.fortran_order(statistics["count"] + self._pseudo)
        count = floored(count, count.sum(axis=1, keepdims=True))
        length = statistics["count"].sum() / statistics["rows"].sum()
        whole = count.sum(axis=1, keepdims=True)
        log_probability = events.log_in_place(count)
        log_probability -= np.log(whole)
        return {
            "log_probability": log_probability,
            "length": np.atleast_1d(length),
        }

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        coefficient = gammaln(columns.sum(axis=1) + 1.0) - events.log_factorials(columns)
        return events.scores(columns, parameters["log_probability"]) + coefficient[:, None]

    def contrast(self, columns: Array, parameters: Arrays) -> Array:
        """Without the coefficient, which all classes share."""
        return np.asarray(events.scores(columns, parameters["log_probability"]))

    def weights_of(self, parameters: Arrays) -> Array:
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
                "a multinomial cannot be drawn given some of its columns: their events depend on the others"
            )
        lengths = rng.poisson(parameters["length"], size=len(classes))
        probability = np.exp(parameters["log_probability"])
        probability = probability / probability.sum(axis=1, keepdims=True)
        rows = np.zeros((len(classes), probability.shape[1]))
        for c, own in enumerate(probability):
            rows[classes == c] = rng.multinomial(lengths[classes == c], own)
        return rows
