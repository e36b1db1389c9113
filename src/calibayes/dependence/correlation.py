"""Pearson's and Spearman's correlations of all pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from calibayes.core.protocols import Array
from calibayes.dependence.measure import Measured
from calibayes.kernels.numbers.quantiles import mid_ranks


@dataclass(frozen=True)
class Pearson:
    """Correlation of the values: finds straight lines."""

    name: ClassVar[str] = "Pearson"

    def measure(self, columns: Array, weights: Array) -> Measured:
        return _correlations(columns, weights)


@dataclass(frozen=True)
class Spearman:
    """Correlation of the ranks: finds what rises or falls throughout."""

    name: ClassVar[str] = "Spearman"

    def measure(self, columns: Array, weights: Array) -> Measured:
        return _correlations(mid_ranks(columns, weights), weights)


def _correlations(columns: Array, weights: Array) -> Measured:
    n = float(weights.sum())
    centerd = columns - weights @ columns / n
    covariance = (centerd * weights[:, None]).T @ centerd
    deviation = np.sqrt(np.diag(covariance))
    safe = np.where(deviation > 0, deviation, np.inf)
    found = np.clip(covariance / np.outer(safe, safe), -1.0, 1.0)
    if n <= 2:
        return Measured(found, np.ones_like(found))
    with np.errstate(divide="ignore"):
        t = np.abs(found) * np.sqrt((n - 2.0) / (1.0 - found**2))
    return Measured(found, 2 * stats.t.sf(t, n - 2.0))
