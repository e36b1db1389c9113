"""Shrinkage of class means towards the mean of all rows, for tables with many columns and few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array


class MeanShrinkage(Protocol):
    """A transformation of the estimated class means."""

    def apply(self, mean: Array, count: Array, variances: Array) -> Array:
        """The class means (k, d), from counts (k, 1) or (k, d) and variances within classes (1 or k, d)."""


@dataclass(frozen=True)
class AsEstimated:
    """No shrinkage."""

    def apply(self, mean: Array, count: Array, variances: Array) -> Array:
        return mean


@dataclass(frozen=True)
class SoftThreshold:
    """Nearest shrunken centroids (Tibshirani, Hastie, Narasimhan and Chu 2002).

    The distance of a class mean from the mean of all rows falls by ``threshold`` standard errors, to 0 if it is smaller.
    A column in which all class means are equal has no influence on the posterior.

    Parameters
    ----------
    threshold : float
        In standard errors of the difference, sqrt(variance * (1 / class rows - 1 / all rows)).

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Gaussian, TiedDiagonal
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], [0, 0, 1, 1]
    >>> family = Gaussian(TiedDiagonal(), means=SoftThreshold(0.5))
    >>> GenerativeClassifier(families=[("numbers", family, every)], rule="ml").fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    threshold: float

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < math.inf:
            raise ValueError(
                f"SoftThreshold({self.threshold}): the threshold must be finite and not negative"
            )

    def apply(self, mean: Array, count: Array, variances: Array) -> Array:
        rows = np.where(count > 0, count, 1.0)
        total = rows.sum(axis=0)
        center = np.sum(rows * mean, axis=0) / total
        difference = mean - center
        error = np.sqrt(np.maximum(variances * (1.0 / rows - 1.0 / total), 0.0))
        shrunk = np.maximum(np.abs(difference) - self.threshold * error, 0.0)
        return center + np.copysign(shrunk, difference)
