"""Euclidean projection onto the probability simplex."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

PROBABILITY_FLOOR = 1e-12
"""Least probability after a projection, so that its logarithm is finite."""
LARGEST_LOG = 30.0
"""Logarithms above this are shifted down before they are exponentiated."""


def project(rows: Array) -> Array:
    """Nearest probability vector to each row of (n, k), by sorting (Held, Wolfe and Crowder 1974)."""
    descending = np.sort(rows, axis=1)[:, ::-1]
    excess = np.cumsum(descending, axis=1) - 1.0
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.sum(descending * ranks > excess, axis=1)
    threshold = excess[np.arange(len(rows)), support - 1] / support
    return np.maximum(rows - threshold[:, None], 0.0)


def log_project(log_rows: Array) -> Array:
    """Logarithms of the nearest probability vectors to exp(log_rows), (n, k), at least log of `PROBABILITY_FLOOR`."""
    # In a row far above one only the largest entries matter to the projection, so the row may be scaled down.
    excess = np.maximum(log_rows.max(axis=1, keepdims=True) - LARGEST_LOG, 0.0)
    probability = np.maximum(project(np.exp(log_rows - excess)), PROBABILITY_FLOOR)
    return np.asarray(np.log(probability / probability.sum(axis=1, keepdims=True)))
