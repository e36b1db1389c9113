"""Many tests at once: p-values that account for their number."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def bonferroni(p_values: Array) -> Array:
    """Adjusted p-values that hold the probability of any false discovery.

    >>> bonferroni(np.array([0.01, 0.2])).tolist()
    [0.02, 0.4]
    """
    return np.minimum(p_values * p_values.size, 1.0)


def benjamini_hochberg(p_values: Array) -> Array:
    """Adjusted p-values that hold the expected share of false discoveries.

    >>> benjamini_hochberg(np.array([0.01, 0.2, 0.02])).round(3).tolist()
    [0.03, 0.2, 0.03]
    """
    order = np.argsort(p_values, kind="stable")[::-1]
    ranks = np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum.accumulate(p_values[order] * p_values.size / ranks)
    return np.minimum(adjusted, 1.0)
