"""Moments about a point of its own for each class, for classes that are far apart in relation to their spread.

Sums about one center lose digits of a variance: the share of the variance in the second moment, times 1e16, is what
remains. Where that share is small, sums are taken again about the means of these classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, cast

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.families.covariance_shapes import Expected, Full, Moments

# -- Moments about a point of its own for each class, for classes that are far apart in relation to their spread
#
# Sums about one center lose digits of a variance: the share of the variance in the second moment, times 1e16, is what
# remains. Where that share is small, sums are taken again about the means of these classes.

ROUNDING = 1e-14
"""Scatter below this share of the second moment is rounding error and counts as 0."""
FAR = 1e-7
"""Share of a variance in the second moment below which sums are taken again: seven of its sixteen digits are lost."""
RESOLUTION = 16 * np.finfo(float).eps
"""A standard deviation below this share of the values is the rounding error of the values themselves."""


def as_matrix(count: Array) -> Array:
    """Counts of rows (k,) as (k, 1); counts of known cells (k, d) as they are."""
    return count[:, None] if count.ndim == 1 else count


def expand(per_class: Array, value: Array) -> Array:
    """Per-class numbers with trailing axes added, so that they broadcast with ``value``."""
    return per_class.reshape(per_class.shape + (1,) * (value.ndim - per_class.ndim))


def scatter(shape: Full, statistics: Arrays) -> tuple[Array, Array]:
    """Means minus the center, (k, d), and sums of squares about the means, (g, ...)."""
    count, second = as_matrix(statistics["count"]), statistics["second"]
    divisor = np.where(count > 0, count, 1.0)
    mean = statistics["first"] / divisor
    squares = shape.square(mean)
    squares *= expand(divisor, squares)
    about_means = second - shape.pool(squares)
    about_means[np.abs(about_means) <= ROUNDING * np.abs(second)] = 0.0
    return mean, about_means


def moments_about_centers(
    shape: Full, columns: Array, centers: Array, weights: Array, expected: Expected
) -> Moments:
    """`Full.moments_about` with a center for each class, (k, d)."""
    covariances = np.broadcast_to(expected.covariance, (len(centers), *expected.covariance.shape[1:]))
    parts = []
    for c, center in enumerate(centers):
        weighted = np.flatnonzero(weights[:, c])
        rows = weighted if len(weighted) else slice(0, 1)  # one row of weight 0, for sums of the right shape
        of_class = Expected(expected.mean[c : c + 1], covariances[c : c + 1])
        parts.append(shape.moments_about(columns[rows], center, weights[rows, c : c + 1], of_class))
    count, first, second = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return count, first, shape.pool(second)


def moved_moments(shape: Full, statistics: Arrays, shift: Array) -> Arrays:
    """The moments of ``x + shift``, from those of x; the shift is (d,), or (k, d) with one for each class."""
    count, first, second = as_matrix(statistics["count"]), statistics["first"], statistics["second"]
    by_class = np.broadcast_to(shift, first.shape)
    if shift.ndim == 1:
        squares = shape.square(by_class)
        moved = second + shape.pool(shape.cross(first, by_class) + expand(count, squares) * squares)
    else:
        # From the scatter, which is exact for a class of equal rows, however far they are moved.
        mean, about_means = scatter(shape, statistics)
        squares = shape.square(mean + by_class)
        moved = about_means + shape.pool(expand(count, squares) * squares)
    return {"count": statistics["count"], "first": first + count * by_class, "second": moved}


class ClassCenters:
    """The points about which a Gaussian family sums moments: the center of the layout, or one for each class."""

    shape: Full
    layout: Layout
    offsets: Array | None

    @property
    def centers(self) -> Array:
        return self.layout.center if self.offsets is None else self.layout.center + self.offsets

    @property
    def offset_values(self) -> Any:
        """The offsets (k, d), or 0."""
        return 0.0 if self.offsets is None else self.offsets

    @property
    def resolution(self) -> Array:
        """Variances that rounding of the values explains, (g, d); 0 where moments are about the center."""
        rounding = np.where(self.offset_values != 0, (RESOLUTION * self.centers) ** 2, 0.0)
        return rounding.max(axis=0, keepdims=True) if self.shape.tied else rounding

    def sizes(self, count: Array) -> Array:
        """Number of rows of each covariance, (g, 1) or (g, d), from counts (k, 1) or (k, d); 1 without any rows."""
        size = self.shape.pool(np.where(count > 0, count, 0.0))
        return np.where(size > 0, size, 1.0)

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        shift = self.centers - center
        return moved_moments(self.shape, statistics, shift) if np.any(shift) else statistics

    def recentered(self, statistics: Arrays) -> Self:
        (mean, variances), count = self._means_and_variances(statistics), as_matrix(statistics["count"])
        # Classes and columns whose variance has lost digits.
        far = (count > 0) & (mean != 0) & (np.maximum(variances, 0.0) < FAR * mean**2)
        if not far.any():
            return self
        return replace(cast(Any, self), offsets=self.offset_values + np.where(far, mean, 0.0))

    def gains(self, statistics: Arrays, *, more_to_come: bool = False) -> bool:
        _, variances = self._means_and_variances(statistics)
        shares = self.sizes(as_matrix(statistics["count"]))
        average = np.sum(shares * variances, axis=0) / np.sum(shares, axis=0)
        rounding = self.resolution.max(axis=0)
        is_known = average > rounding
        is_lost = (variances > self.resolution) | (FAR * self.offset_values**2 > average) & is_known
        is_unknown = more_to_come & (average <= rounding)
        return bool(((self.offset_values != 0) & (is_lost | is_unknown)).any())

    def sharing_centers(self, other: Any) -> Self:
        if self.offsets is None and other.offsets is None:
            return self
        theirs = np.where(other.offset_values != 0, other.centers - self.layout.center, 0.0)
        return replace(cast(Any, self), offsets=np.where(self.offset_values != 0, self.offset_values, theirs))

    def _means_and_variances(self, statistics: Arrays) -> tuple[Array, Array]:
        """Means minus the centers, (k, d), and variances, (g, d), of maximum likelihood."""
        mean, squares = scatter(self.shape, statistics)
        return mean, self.shape.variances(squares) / self.sizes(as_matrix(statistics["count"]))


# -- Shrinkage of class means towards the mean of all rows, for tables with many columns and few rows --------


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
