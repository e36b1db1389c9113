"""Euclidean projection onto the probability simplex."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def project(rows: Array) -> Array:
    """The nearest probability vector of each row, by sorting (Held, Wolfe and Crowder 1974)."""
    descending = np.sort(rows, axis=1)[:, ::-1]
    excess = np.cumsum(descending, axis=1) - 1.0
    ranks = np.arange(1, rows.shape[1] + 1)
    support = np.sum(descending * ranks > excess, axis=1)
    threshold = excess[np.arange(len(rows)), support - 1] / support
    return np.maximum(rows - threshold[:, None], 0.0)
