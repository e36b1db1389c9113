"""Covariances times a factor: posteriors that are less extreme."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.families.gaussian.shape import Regularizer, Shape
from calibayes.families.gaussian.shapes import Plain


@dataclass(frozen=True)
class Inflated:
    """The covariance of another regularizer, times a factor.

    Under a tied covariance this divides all differences of log densities by the factor and leaves the class prior as it
    is. Factors above 1 correct for columns that are not independent given the class, and for estimates from few rows.

    Parameters
    ----------
    factor : float
    inner : Regularizer, default=Plain()
        Applied first.

    Examples
    --------
    >>> from calibayes.families import Gaussian, Tied
    >>> Gaussian(Tied(), regularizer=Inflated(4.0)).regularizer.factor
    4.0
    """

    factor: float
    inner: Regularizer = field(default_factory=Plain)

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise ValueError(f"Inflated({self.factor}): the factor must be positive and finite")

    def prepare(self, variances: Array) -> Self:
        return replace(self, inner=self.inner.prepare(variances))

    def apply(self, covariance: Array, shape: Shape) -> Array:
        return np.asarray(self.factor * self.inner.apply(covariance, shape))

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        self.inner.verify_size(covariance_shape)
