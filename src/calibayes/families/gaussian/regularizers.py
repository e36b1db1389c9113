"""Regularization of a covariance: a prior added to the scatter, and regularizers applied to the estimate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.families.gaussian.shape import Shape
from calibayes.families.priors import NormalInverseWishart

# -- priors ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ResolvedPrior:
    """A normal inverse Wishart prior with all its parameters, in the form of a covariance shape."""

    m1: Array
    """Equivalent sample size of the mean, (k,)."""
    m2: Array
    """Equivalent sample size of the covariance, (g,)."""
    mean: Array
    """Prior mean minus the center, (d,)."""
    covariance: Array
    """Prior covariance in the shape's form, (...)."""


def resolve(
    prior: NormalInverseWishart, shape: Shape, layout: Layout, mean: Array, variances: Array
) -> ResolvedPrior:
    """The prior with defaults from the training columns: their mean minus the center (d,), their variances (d,).

    Raises ValueError if the prior's mean or covariance has the wrong shape.
    """
    k = len(layout.classes)
    return ResolvedPrior(
        m1=np.full(k, prior.m1),
        m2=np.full(1 if shape.tied else k, prior.m2),
        mean=mean if prior.mean is None else _prior_mean(prior.mean, layout),
        covariance=_prior_covariance(prior.covariance, shape, variances),
    )


def _prior_mean(given: Array, layout: Layout) -> Array:
    given, d = np.asarray(given, dtype=np.float64), len(layout.columns)
    if given.shape != (d,):
        raise ValueError(f"the prior mean has shape {given.shape}, expected {(d,)}")
    return given - layout.center


def _prior_covariance(given: Array | None, shape: Shape, variances: Array) -> Array:
    d = len(variances)
    if given is None:
        # The scale of a constant column is unknown; the smallest variance of the others keeps the prior valid.
        smallest = variances[variances > 0].min(initial=1.0)
        given = np.where(variances > 0, variances, smallest)
    given = np.asarray(given, dtype=np.float64)
    if given.shape not in ((d,), (d, d)) or not np.array_equal(given, given.T):
        raise ValueError(
            f"the prior covariance must have shape {(d,)} or {(d, d)} and be symmetric, "
            f"got an array of shape {given.shape}"
        )
    diagonal = shape.diagonal(given if given.ndim == 1 else np.diag(given))
    covariance = given if given.shape == diagonal.shape else diagonal
    return np.asarray(shape.constrain(covariance[None], np.ones((1, 1)))[0])


# -- regularizers of the estimate ------------------------------------------------------------------------------------


class Regularizer(Protocol):
    """A transformation of the estimated covariance, (g, ...)."""

    def prepare(self, variances: Array) -> Self:
        """This regularizer with what depends on the variances of the training columns, (d,)."""

    def apply(self, covariance: Array, shape: Shape) -> Array:
        """The regularized covariance, in the same form."""


@dataclass(frozen=True)
class Plain:
    """No regularization."""

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
    """``(1 - share) * covariance + share * mean variance * I`` (LinearDiscriminantAnalysis's ``shrinkage``)."""

    share: float

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        variances = shape.variances(covariance)
        averages = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
        spheres = np.stack([shape.diagonal(average) for average in averages])
        return np.asarray((1.0 - self.share) * covariance + self.share * spheres)


@dataclass(frozen=True)
class Ridge:
    """Add a share of each column's training variance to its variance; for a spherical shape, of their average."""

    share: float = 1e-6
    variances: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, variances=variances)

    def apply(self, covariance: Array, shape: Shape) -> Array:
        ridge = shape.constrain(shape.diagonal(self.share * self.variances)[None], np.ones((1, 1)))
        return np.asarray(covariance + ridge)
