"""What is done to a covariance after it was estimated, in the terms that scikit-learn's users know."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.families.gaussian.shapes import Shape


class Regularizer(Protocol):
    def prepare(self, variances: Array) -> Self:
        """Fix what depends on the variances of the training columns."""

    def apply(self, covariance: Array, shape: Shape) -> Array: ...


@dataclass(frozen=True)
class Plain:
    """The covariance as it is."""

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        return covariance


@dataclass(frozen=True)
class VarianceSmoothing:
    """Add a share of the largest variance of all columns to every variance (GaussianNB's ``var_smoothing``)."""

    share: float = 1e-9
    epsilon: float = field(default=0.0, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, epsilon=self.share * float(variances.max()))

    def apply(self, covariance: Array, shape: Shape) -> Array:
        ones = np.ones(covariance.shape[1])
        return np.asarray(covariance + self.epsilon * shape.diagonal(ones))


@dataclass(frozen=True)
class TowardsIdentity:
    """``(1 - share) * covariance + share * I`` (QuadraticDiscriminantAnalysis's ``reg_param``)."""

    share: float

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        identity = shape.diagonal(np.ones(covariance.shape[1]))
        return np.asarray((1.0 - self.share) * covariance + self.share * identity)


@dataclass(frozen=True)
class TowardsSphere:
    """``(1 - share) * covariance + share * its average variance * I`` (scikit-learn's ``shrinkage``)."""

    share: float

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        variances = shape.variances(covariance)
        even = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
        spheres = np.stack([shape.diagonal(variance) for variance in even])
        return np.asarray((1.0 - self.share) * covariance + self.share * spheres)


@dataclass(frozen=True)
class Ridge:
    """Add a share of each column's variance in training to it; in a sphere, of their average."""

    share: float = 1e-6
    variances: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, variances=variances)

    def apply(self, covariance: Array, shape: Shape) -> Array:
        ridge = shape.settle(shape.diagonal(self.share * self.variances)[None], np.ones((1, 1)))
        return np.asarray(covariance + ridge)
