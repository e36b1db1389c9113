"""Adjust p-values for the number of tests (multiple testing)."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def bonferroni(p_values: Array) -> Array:
    """Bonferroni-adjusted p-values: control the probability of any false discovery.

    >>> bonferroni([0.01, 0.2]).tolist()
    [0.02, 0.4]
    """
    values = np.asarray(p_values, dtype=float)
    return np.minimum(values * values.size, 1.0)


def benjamini_hochberg(p_values: Array) -> Array:
    """Benjamini-Hochberg-adjusted p-values: control the expected share of false discoveries (FDR).

    >>> benjamini_hochberg(np.array([0.01, 0.2, 0.02])).round(3).tolist()
    [0.03, 0.2, 0.03]
    """
    order = np.argsort(p_values, kind="stable")[::-1]
    ranks = np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum.accumulate(p_values[order] * p_values.size / ranks)
    return np.minimum(adjusted, 1.0)
