"""Shapes of a Gaussian's covariance (matrices, variances or one variance, per class or tied) and its regularizers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import require_finite, require_length
from calibayes.families.class_centers import Expected, Shape
from calibayes.families.gaussian_verification import FiniteFields, ShareOfOne, VerifiedShape, verify_definite
from calibayes.kernels import gaussian_density, moments


class Full(VerifiedShape):
    """One covariance matrix per class: quadratic discriminant analysis."""

    tied: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def prepare(self, start: Arrays) -> Full:
        return self

    def moments_about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        if self.has_hidden(columns):
            return self.moments(np.subtract(columns, center, dtype=np.float64), weights, expected)
        return moments.up_to_second(columns, center, weights, pool_second=self.tied)

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        if not self.has_hidden(x):
            return self.moments_about(x, np.zeros(x.shape[1]), weights, expected)
        covariances = np.broadcast_to(expected.covariance, (weights.shape[1], *expected.covariance.shape[1:]))
        parts = [
            gaussian_density.expected_moments(x, weight, mean, covariance)
            for weight, mean, covariance in zip(weights.T, expected.mean, covariances, strict=True)
        ]
        first, second = zip(*parts, strict=True)
        return moments.zeroth(weights), np.stack(first), self.pool(np.stack(second))

    def freedom(self, d: int) -> int:
        return d * (d + 1) // 2

    def pool(self, per_class: Array) -> Array:
        return per_class.sum(axis=0, keepdims=True) if self.tied else per_class

    def has_hidden(self, x: Array) -> bool:
        return moments.has_missing(x)

    def square(self, vectors: Array) -> Array:
        return vectors[:, :, None] * vectors[:, None, :]

    def cross(self, left: Array, right: Array) -> Array:
        product = left[:, :, None] * right[:, None, :]
        return product + np.swapaxes(product, 1, 2)

    def diagonal(self, variances: Array) -> Array:
        return np.diag(variances)

    def variances(self, form: Array) -> Array:
        return np.diagonal(form, axis1=1, axis2=2)

    def constrain(self, covariance: Array, size: Array) -> Array:
        return covariance

    def pivots(self, covariance: Array) -> Array:
        return gaussian_density.all_pivots(covariance)

    def covariance_parameters(self, covariance: Array, k: int) -> Arrays:
        whitener, log_determinant = gaussian_density.whiteners(covariance)
        return {"covariance": covariance, "whitener": whitener, "log_determinant": log_determinant}

    def log_density(self, x: Array, parameters: Arrays) -> Array:
        mean, covariance = parameters["mean"], parameters["covariance"]
        factors = covariance, parameters["whitener"], parameters["log_determinant"]
        if not self.has_hidden(x):
            return gaussian_density.full_gaussian(x, mean, *factors)
        incomplete = np.isnan(x).any(axis=1)
        densities = np.empty((len(x), len(mean)))
        densities[~incomplete] = gaussian_density.full_gaussian(x[~incomplete], mean, *factors)
        densities[incomplete] = gaussian_density.marginal_gaussians(x[incomplete], mean, covariance)
        return densities

    def contrast(self, x: Array, parameters: Arrays) -> Array:
        mean, times_precision = parameters["mean"], partial(self._precision_times, parameters)
        if not self.tied or moments.has_missing(x) or gaussian_density.are_far(mean, times_precision):
            return self.log_density(x, parameters)
        variance = self.variances(self.covariance(parameters))[0]
        return gaussian_density.linear_discriminants(x, mean, variance, times_precision)

    def _precision_times(self, parameters: Arrays, vectors: Array) -> Array:
        """The inverse of the tied covariance times each row, (k, d)."""
        whitener = parameters["whitener"][0]
        return vectors @ whitener.T @ whitener

    def covariance(self, parameters: Arrays) -> Array:
        return parameters["covariance"]

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        return np.linalg.solve(covariance, vectors[:, :, None])[:, :, 0]

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        return np.asarray((covariance @ vectors[:, :, None])[:, :, 0])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        moved = -0.5 * np.linalg.inv(covariance) + gradient
        return np.stack([gaussian_density.covariance_from_natural(m, floor) for m in moved])

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        roots = np.linalg.cholesky(covariance)
        rows = np.empty_like(noise)
        for group, root in enumerate(roots):
            in_group = classes == group if len(roots) > 1 else np.ones(len(noise), dtype=bool)
            rows[in_group] = noise[in_group] @ root.T
        return rows

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        # Matheron's rule: add the regression of the unknown cells on (given - drawn) of the known cells.
        rows: Array = np.where(np.isnan(given), drawn, given)
        for known, pattern in gaussian_density.patterns(given):
            for group in np.unique(classes[pattern]) if known.any() and not known.all() else ():
                group_rows = pattern[classes[pattern] == group]
                slopes, _ = gaussian_density.conditional(covariance[0 if self.tied else group], known)
                known_cells = np.ix_(group_rows, np.flatnonzero(known))
                difference = given[known_cells] - drawn[known_cells]
                rows[np.ix_(group_rows, np.flatnonzero(~known))] += difference @ slopes.T
        return rows

    def terms(self, x: Array, parameters: Arrays) -> Array | None:
        return None

    def conditional_terms(self, x: Array, parameters: Arrays, order: Array) -> Array:
        """One Cholesky factor of the covariance in this order serves all leading columns."""
        mean, terms = parameters["mean"], np.zeros((len(x), *parameters["mean"].shape))
        for known, rows in gaussian_density.patterns(x):
            columns = order[known[order]]
            if not len(columns):
                continue
            matrices = parameters["covariance"][:, columns[:, None], columns]
            whitener = np.broadcast_to(
                gaussian_density.whiteners(matrices)[0], (len(mean), *matrices.shape[1:])
            )
            for c, factor in enumerate(whitener):
                white = (x[np.ix_(rows, columns)] - mean[c, columns]) @ factor.T
                log_density = np.log(np.diag(factor)) - 0.5 * (white**2 + gaussian_density.LOG_TWO_PI)
                terms[np.ix_(rows, np.array([c]), columns)] = log_density[:, None, :]
        return terms

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        log_determinant = np.linalg.slogdet(covariance)[1]
        trace = np.trace(
            np.linalg.solve(covariance, np.broadcast_to(prior, covariance.shape)), axis1=1, axis2=2
        )
        return float(-0.5 * np.sum(size * (log_determinant + trace)))


class Diagonal(Full):
    """One variance per class and column: Gaussian naive Bayes."""

    is_matrix = False

    def freedom(self, d: int) -> int:
        return d

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        return self.moments_about(x, np.zeros(x.shape[1]), weights, expected)

    def moments_about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        count, first, second = moments.power_sums(columns, center, weights)
        return count, first, self.pool(second)

    def has_hidden(self, x: Array) -> bool:
        return False

    def square(self, vectors: Array) -> Array:
        return vectors * vectors

    def cross(self, left: Array, right: Array) -> Array:
        return 2.0 * left * right

    def diagonal(self, variances: Array) -> Array:
        return variances

    def variances(self, form: Array) -> Array:
        return form

    def pivots(self, covariance: Array) -> Array:
        return covariance

    def covariance_parameters(self, covariance: Array, k: int) -> Arrays:
        return {"variance": np.broadcast_to(covariance, (k, covariance.shape[1])).copy()}

    def log_density(self, x: Array, parameters: Arrays) -> Array:
        return gaussian_density.diagonal_log_density(x, parameters["mean"], parameters["variance"])

    def _precision_times(self, parameters: Arrays, vectors: Array) -> Array:
        return vectors / parameters["variance"][0]

    def covariance(self, parameters: Arrays) -> Array:
        return parameters["variance"][:1] if self.tied else parameters["variance"]

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        return vectors / covariance

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        return covariance * vectors

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        return gaussian_density.variance_from_natural(-0.5 / covariance + gradient, floor)

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        root = np.sqrt(covariance)
        return np.asarray(noise * (root if len(root) == 1 else root[classes]))

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        return np.where(np.isnan(given), drawn, given)

    def terms(self, x: Array, parameters: Arrays) -> Array:
        mean, variance = parameters["mean"], parameters["variance"]
        squares = (x[:, None, :] - mean) ** 2 / variance
        return np.where(
            np.isnan(x)[:, None, :], 0.0, -0.5 * (squares + np.log(variance) + gaussian_density.LOG_TWO_PI)
        )

    def conditional_terms(self, x: Array, parameters: Arrays, order: Array) -> Array:
        return self.terms(x, parameters)

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        return float(-0.5 * np.sum(size[:, None] * (np.log(covariance) + prior / covariance)))


class Spherical(Diagonal):
    """One variance per class, the same for all columns."""

    def freedom(self, d: int) -> int:
        return 1

    def constrain(self, covariance: Array, size: Array) -> Array:
        size = np.broadcast_to(size, covariance.shape)
        average = np.sum(size * covariance, axis=1, keepdims=True) / np.sum(size, axis=1, keepdims=True)
        return np.broadcast_to(average, covariance.shape)

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        # All columns share one natural parameter, so its gradient is the sum over columns.
        total = np.broadcast_to(gradient.sum(axis=1, keepdims=True), gradient.shape)
        return super().gradient_step(covariance, total, floor)


class Tied(Full):
    """One covariance matrix, shared by all classes: linear discriminant analysis."""

    tied = True


class TiedDiagonal(Diagonal):
    """One variance per column, shared by all classes: the generative counterpart of logistic regression."""

    tied = True


class TiedSpherical(Spherical):
    """One variance for all classes and columns."""

    tied = True


# -- regularizers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain(FiniteFields):
    """No regularization."""

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        return covariance


@dataclass(frozen=True)
class VarianceSmoothing(FiniteFields):
    """Add a share of the largest variance of all columns to every variance (GaussianNB's ``var_smoothing``)."""

    share: float = 1e-9
    epsilon: float = field(default=0.0, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, epsilon=self.share * float(variances.max()))

    def apply(self, covariance: Array, shape: Shape) -> Array:
        ones = np.ones(covariance.shape[1])
        return covariance + self.epsilon * shape.diagonal(ones)


@dataclass(frozen=True)
class TowardsIdentity(ShareOfOne):
    """``(1 - share) * covariance + share * I`` (QuadraticDiscriminantAnalysis's ``reg_param``)."""

    share: float

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        identity = shape.diagonal(np.ones(covariance.shape[1]))
        return (1.0 - self.share) * covariance + self.share * identity


@dataclass(frozen=True)
class TowardsSphere(ShareOfOne):
    """``(1 - share) * covariance + share * mean variance * I`` (LinearDiscriminantAnalysis's ``shrinkage``)."""

    share: float

    def prepare(self, variances: Array) -> Self:
        return self

    def apply(self, covariance: Array, shape: Shape) -> Array:
        variances = shape.variances(covariance)
        averages = np.broadcast_to(variances.mean(axis=1, keepdims=True), variances.shape)
        spheres = np.stack([shape.diagonal(average) for average in averages])
        return (1.0 - self.share) * covariance + self.share * spheres


@dataclass(frozen=True)
class Ridge(FiniteFields):
    """Add a share of each column's training variance to its variance; for a spherical shape, of their average."""

    share: float = 1e-6
    variances: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, variances=variances)

    def apply(self, covariance: Array, shape: Shape) -> Array:
        ridge = shape.constrain(shape.diagonal(self.share * self.variances)[None], np.ones((1, 1)))
        return covariance + ridge


# -- Covariances of discriminant analysis that are no maximum likelihood estimate: averaged by weights, or given


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
