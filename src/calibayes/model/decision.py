"""Decisions from posterior probabilities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import numbers_given
from calibayes.kernels.posterior import first_largest


def most_probable(log_posterior: Array) -> Array:
    """Code of the class with the highest posterior, the first of ties, (n,)."""
    return first_largest(log_posterior)


def log_odds(log_posterior: Array) -> Array:
    """Log odds of the second of two classes, (n,)."""
    return log_posterior[:, 1] - log_posterior[:, 0]


def least_cost(posterior: Array, costs: Array) -> Array:
    """Code of the decision with the lowest expected cost, (n,); ``costs[i, j]`` is the cost of deciding j in class i."""
    return np.argmin(posterior @ costs, axis=1)


def above_thresholds(posterior: Array, thresholds: Array) -> Array:
    """Code of the class whose posterior is the largest multiple of its threshold, (n,)."""
    return np.argmax(posterior / thresholds, axis=1)


def rejected(posterior: Array, evidence: Array, least_posterior: float, least_density: float) -> Array:
    """Rows to abstain from, (n,) booleans: no class is probable enough, or the density of the row is too low."""
    return (posterior.max(axis=1) < least_posterior) | (evidence < least_density)


def tempered(log_posterior: Array, temperature: float) -> Array:
    """Log posterior divided by a temperature and normalized again; above 1 probabilities are less extreme."""
    scaled = log_posterior / temperature
    return scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)


def checked_costs(costs: ArrayLike, k: int) -> Array:
    """The cost matrix as an array. Raises ValueError if it is not one."""
    matrix = numbers_given("costs", costs)
    if matrix.shape != (k, k):
        raise ValueError(f"costs must be a matrix of {k} classes by {k} decisions, got shape {matrix.shape}")
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        advice = "express a gain as a lower cost of that decision"
        raise ValueError(f"costs must be finite and not negative: {advice}")
    if (matrix < np.diag(matrix)[:, None]).any():
        raise ValueError("a wrong decision must not cost less than the right one of its class")
    return matrix
