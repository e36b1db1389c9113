"""Pearson's and Spearman's correlations of all pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from calibayes.core.protocols import Array
from calibayes.dependence.measure import PairStatistics
from calibayes.kernels.numbers.quantiles import mid_ranks


@dataclass(frozen=True)
class Pearson:
    """Pearson correlation of the values: detects linear dependence. p-values by the t distribution.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Pearson()).statistics.shape
    (3, 4, 4)
    """

    name: ClassVar[str] = "Pearson"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        return _correlations(columns, weights)


@dataclass(frozen=True)
class Spearman:
    """Spearman correlation, of the ranks: detects monotone dependence. p-values by the t distribution.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Spearman()).statistics.shape
    (3, 4, 4)
    """

    name: ClassVar[str] = "Spearman"

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        return _correlations(mid_ranks(columns, weights), weights)


def _correlations(columns: Array, weights: Array) -> PairStatistics:
    """Weighted correlations; 0 where a column is constant."""
    n = float(weights.sum())
    centered = columns - weights @ columns / n
    covariance = (centered * weights[:, None]).T @ centered
    deviation = np.sqrt(np.diag(covariance))
    safe = np.where(deviation > 0, deviation, np.inf)
    correlation = np.clip(covariance / np.outer(safe, safe), -1.0, 1.0)
    if n <= 2:
        return PairStatistics(correlation, np.ones_like(correlation))
    with np.errstate(divide="ignore"):
        t = np.abs(correlation) * np.sqrt((n - 2.0) / (1.0 - correlation**2))
    return PairStatistics(correlation, 2 * stats.t.sf(t, n - 2.0))
