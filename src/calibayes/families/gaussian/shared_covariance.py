"""Covariances of discriminant analysis that are no maximum likelihood estimate: averaged by weights, or given."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require_finite, require_length
from calibayes.families.gaussian.shape import Shape
from calibayes.families.gaussian.shapes import Tied
from calibayes.families.gaussian.verification import verify_definite


@dataclass(frozen=True)
class WeightedTied(Tied):
    """One covariance matrix for all classes: the average of those of the classes, with fixed weights.

    `Tied` weights the classes by their rows. Here the sums are kept by class, so that ``tied`` is False and the k
    covariances are equal.
    """

    weights: tuple[float, ...]

    tied = False

    def verify_size(self, k: int, d: int) -> None:
        require_length("weights", self.weights, k)
        require_finite("weights", np.array(self.weights), (k,), least=0.0)

    def constrain(self, covariance: Array, size: Array) -> Array:
        weights = np.array(self.weights)
        by_class = np.broadcast_to(covariance, (len(weights), *covariance.shape[1:]))
        return np.broadcast_to(np.tensordot(weights, by_class, axes=1), covariance.shape).copy()


@dataclass(frozen=True)
class FixedCovariance:
    """A given covariance, (g, ...), instead of the estimated one: training changes the means and the class prior only."""

    covariance: Array = field(repr=False, compare=False)

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        return self.covariance

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        verify_definite(require_finite("covariance", self.covariance, covariance_shape))
