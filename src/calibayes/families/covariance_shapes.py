"""Shapes of a Gaussian's covariance (matrices, variances or one variance, per class or tied) and its regularizers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import require, require_close, require_finite, require_length
from calibayes.kernels import gaussian_density, moments

# -- Shapes of covariances -----------------------------------------------------------------------------------
#
# All shapes are estimated from the same sums, count, first and second moments, and differ in the form of the second
# moments: (g, d, d) matrices or (g, d) variances, where g is the number of classes k, or 1 for a tied shape.

LARGEST_RESIDUAL = 0.5
"""Largest distance of a whitened covariance from the identity at which it is surely positive definite."""
ROUNDINGS = 100.0
"""How often the rounding error of one product the inverse of a nearly singular covariance may be off."""
LEAST_EIGENVALUE = -1e-8
"""Of a correlation matrix, beyond which a negative one is no rounding error."""


class FiniteFields:
    """A regularizer of numbers that are finite and not negative, and of one array of variances at most."""

    largest: ClassVar[float] = np.inf
    """The largest valid number."""

    def prepare(self, variances: Array) -> Self:
        return self

    def verify(self) -> None:
        for name, value in self._numbers().items():
            require_finite(name, value, value.shape, least=0.0)
            require(bool((value <= self.largest).all()), f"{name} is larger than {self.largest:g}")

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        self.verify()
        for name, value in self._numbers().items():
            if value.size and value.ndim:
                require_finite(name, value, covariance_shape[-1:], least=0.0)

    def _numbers(self) -> dict[str, Array]:
        """The fields as arrays, by name."""
        own: Any = self  # a dataclass
        return {field.name: np.asarray(getattr(own, field.name), dtype=np.float64) for field in fields(own)}


class ShareOfOne(FiniteFields):
    """A regularizer whose number is a share from 0 to 1."""

    largest = 1.0


def verify_positive(variances: Array) -> None:
    """Raises ValueError unless all variances are positive."""
    require(bool((variances > 0).all()), "a covariance contains a variance that is not positive")


def verify_variances(variances: Array, *, is_tied: bool) -> None:
    """Raises ValueError unless variances (k, d) are positive, and equal for all classes of a tied shape."""
    verify_positive(variances)
    is_equal = not is_tied or bool((variances == variances[:1]).all())
    require(is_equal, "a tied variance differs between classes")


def verify_matrix(covariance: Array, whitener: Array, log_determinant: Array) -> None:
    """Raises ValueError unless W C W' = I for a covariance C (d, d) and its lower triangular whitener W.

    Columns are measured in their standard deviations. The rounding error of W C W' grows with the condition number of
    C, at most the squared norm of W. A product near I proves that C is positive definite. For a singular C it may be far
    from I; its eigenvalues are then computed.
    """
    d = len(covariance)
    verify_positive(np.diagonal(covariance))
    require(not np.triu(whitener, 1).any(), "whitener is not lower triangular")
    require(bool((np.diagonal(whitener) > 0).all()), "whitener has a diagonal that is not positive")
    with np.errstate(over="ignore", invalid="ignore"):  # a product that overflows is far from the identity
        deviations = np.sqrt(np.diagonal(covariance))
        correlation = covariance / deviations / deviations[:, None]
        require_close("covariance", correlation, correlation.T, 1.0)
        # The half that the whitener is made from.
        correlation = np.tril(correlation) + np.tril(correlation, -1).T
        scaled = whitener * deviations
        residual = np.abs(scaled @ correlation @ scaled.T - np.eye(d)).max(initial=0.0)
        rounding = ROUNDINGS * d * np.finfo(float).eps * np.sum(scaled**2)
    require(bool(residual <= 1e-6 + rounding), "whitener does not belong to covariance")
    if residual > LARGEST_RESIDUAL:
        least = np.linalg.eigvalsh(correlation).min()
        require(bool(least >= LEAST_EIGENVALUE), "a covariance is not positive definite")
    expected = -2.0 * np.sum(np.log(np.diagonal(whitener)))
    require_close("log_determinant", log_determinant, expected, d + abs(expected))


Moments: TypeAlias = tuple[Array, Array, Array]
"""Count, first and second moments."""


class Expected(NamedTuple):
    """Distribution of missing values: means minus the center (k, d) and covariances, (1 or k, ...)."""

    mean: Array
    covariance: Array


class Full:
    """One covariance matrix per class: quadratic discriminant analysis."""

    tied: ClassVar[bool] = False
    is_matrix: ClassVar[bool] = True
    """Whether a covariance is a matrix (d, d), not variances (d,)."""

    def verify_size(self, k: int, d: int) -> None:
        """Raises ValueError if what `prepare` has learned is not of k classes and d columns."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def prepare(self, start: Arrays) -> Full:
        """This shape with its structure fixed from the statistics of the data."""
        return self

    def moments_about(self, columns: Array, center: Array, weights: Array, expected: Expected) -> Moments:
        """Count (k,) or (k, d), first moments (k, d) and second moments (g, ...) of ``columns - center``, (n, d).

        Numbers may be NaN; ``expected`` gives the distribution from which missing values are imputed.
        """
        if not self.has_hidden(columns):
            return moments.up_to_second(columns, center, weights, pool_second=self.tied)
        x = np.subtract(columns, center, dtype=np.float64)
        covariances = np.broadcast_to(expected.covariance, (weights.shape[1], *expected.covariance.shape[1:]))
        parts = [
            gaussian_density.expected_moments(x, weight, mean, covariance)
            for weight, mean, covariance in zip(weights.T, expected.mean, covariances, strict=True)
        ]
        first, second = zip(*parts, strict=True)
        return moments.zeroth(weights), np.stack(first), self.pool(np.stack(second))

    def freedom(self, d: int) -> int:
        """Number of free parameters of one covariance of d columns."""
        return d * (d + 1) // 2

    def pool(self, per_class: Array) -> Array:
        """Per-class sums (k, ...), added over the classes if the shape is tied, (g, ...)."""
        return per_class.sum(axis=0, keepdims=True) if self.tied else per_class

    def has_hidden(self, x: Array) -> bool:
        """Whether the moments of these rows depend on the parameters."""
        return moments.has_missing(x)

    def square(self, vectors: Array) -> Array:
        """v v' for each row v, in this shape's form, (rows, ...)."""
        return vectors[:, :, None] * vectors[:, None, :]

    def cross(self, left: Array, right: Array) -> Array:
        """l r' + r l' for each pair of rows l, r, in this shape's form, (rows, ...)."""
        product = left[:, :, None] * right[:, None, :]
        return product + np.swapaxes(product, 1, 2)

    def diagonal(self, variances: Array) -> Array:
        """The diagonal covariance with these variances (d,), in this shape's form, (...)."""
        return np.diag(variances)

    def variances(self, form: Array) -> Array:
        """The diagonal of a covariance or second moment, (g, d)."""
        return np.diagonal(form, axis1=1, axis2=2)

    def constrain(self, covariance: Array, size: Array) -> Array:
        """The covariance of this shape of maximum likelihood, from sample covariances (g, ...).

        ``size``, (g, 1) or (g, d), is the number of rows in which each column is known.
        """
        return covariance

    def isolate(self, covariance: Array, columns: Array, variances: Array | float) -> Array:
        """The covariance (g, ...) after these columns (d,) have become independent of all others, with given variances."""
        isolated = np.where(columns | columns[:, None], 0.0, covariance)
        return isolated + np.diag(np.where(columns, variances, 0.0))

    def unexplained(self, covariance: Array) -> Array:
        """The variance of each column given all others, (g, d).

        Not all are positive if the covariance is not positive definite.
        """
        return gaussian_density.unexplained(covariance)

    def covariance_parameters(self, covariance: Array, k: int) -> Arrays:
        """The covariance (g, ...) as parameters of k classes, with what the log density needs of it."""
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
        """The log density up to a term that is the same for all classes."""
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
        """The covariance in the parameters, in this shape's form, (g, ...)."""
        return parameters["covariance"]

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        """The inverse covariance times each row, (k, d)."""
        return np.linalg.solve(covariance, vectors[:, :, None])[:, :, 0]

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        """The covariance times each row, (k, d)."""
        return np.asarray((covariance @ vectors[:, :, None])[:, :, 0])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """The covariance after a gradient step on -1/2 of its inverse, with eigenvalues of at least ``floor``."""
        moved = -0.5 * np.linalg.inv(covariance) + gradient
        return np.stack([gaussian_density.covariance_from_natural(m, floor) for m in moved])

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        """Standard normal noise (n, d), transformed to the covariance of each row's class."""
        roots = np.linalg.cholesky(covariance)
        rows = np.empty_like(noise)
        for group, root in enumerate(roots):
            in_group = classes == group if len(roots) > 1 else np.ones(len(noise), dtype=bool)
            rows[in_group] = noise[in_group] @ root.T
        return rows

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        # Matheron's rule: add the regression of the unknown cells on (given - drawn) of the known cells.
        """Samples of each row's class, transformed to samples of its conditional density given the known cells.

        Known cells are those of ``given`` (n, d) that are not NaN.
        """
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
        """The term of each column in the log density, (n, k, d); None if the columns are dependent given the class."""
        return None

    def conditional_terms(self, x: Array, parameters: Arrays, order: Array) -> Array:
        """One Cholesky factor of the covariance in this order serves all leading columns."""
        mean, terms = parameters["mean"], np.zeros((len(x), *parameters["mean"].shape))
        for known, rows in gaussian_density.patterns(x):
            columns = order[known[order]]
            if not len(columns):
                continue
            matrices = parameters["covariance"][:, columns[:, None], columns]
            whiteners = gaussian_density.whiteners(matrices)[0]
            for c, factor in enumerate(np.broadcast_to(whiteners, (len(mean), *matrices.shape[1:]))):
                white = (x[np.ix_(rows, columns)] - mean[c, columns]) @ factor.T
                log_density = np.log(np.diag(factor)) - 0.5 * (white**2 + gaussian_density.LOG_TWO_PI)
                terms[np.ix_(rows, np.array([c]), columns)] = log_density[:, None, :]
        return terms

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        """Log density of an inverse Wishart prior with equivalent sample sizes (g,) and a prior covariance (...)."""
        log_determinant = np.linalg.slogdet(covariance)[1]
        solved = np.linalg.solve(covariance, np.broadcast_to(prior, covariance.shape))
        trace = np.trace(solved, axis1=1, axis2=2)
        return float(-0.5 * np.sum(size * (log_determinant + trace)))


class Diagonal(Full):
    """One variance per class and column: Gaussian naive Bayes."""

    is_matrix = False

    def freedom(self, d: int) -> int:
        return d

    def moments_about(self, columns: Array, center: Array, weights: Array, expected: Expected) -> Moments:
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

    def isolate(self, covariance: Array, columns: Array, variances: Array | float) -> Array:
        return np.where(columns, variances, covariance)

    def unexplained(self, covariance: Array) -> Array:
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
        log_density = -0.5 * (squares + np.log(variance) + gaussian_density.LOG_TWO_PI)
        return np.where(np.isnan(x)[:, None, :], 0.0, log_density)

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

    def isolate(self, covariance: Array, columns: Array, variances: Array | float) -> Array:
        return covariance

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


class Regularizer(Protocol):
    """A transformation of the estimated covariance, (g, ...)."""

    def prepare(self, variances: Array) -> Self:
        """This regularizer with what depends on the variances of the training columns, (d,)."""

    def apply(self, covariance: Array, shape: Full) -> Array:
        """The regularized covariance, in the same form."""

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        """Raises ValueError if what `prepare` has fixed is not for covariances of this shape, (g, ...)."""


@dataclass(frozen=True)
class Plain(FiniteFields):
    """No regularization."""

    def apply(self, covariance: Array, shape: Full) -> Array:
        return covariance


@dataclass(frozen=True)
class VarianceSmoothing(FiniteFields):
    """Add a share of the largest variance of all columns to every variance (GaussianNB's ``var_smoothing``)."""

    share: float = 1e-9
    epsilon: float = field(default=0.0, compare=False)

    def prepare(self, variances: Array) -> Self:
        return replace(self, epsilon=self.share * float(variances.max()))

    def apply(self, covariance: Array, shape: Full) -> Array:
        return covariance + self.epsilon * shape.diagonal(np.ones(covariance.shape[1]))


@dataclass(frozen=True)
class TowardsIdentity(ShareOfOne):
    """``(1 - share) * covariance + share * I`` (QuadraticDiscriminantAnalysis's ``reg_param``)."""

    share: float

    def apply(self, covariance: Array, shape: Full) -> Array:
        identity = shape.diagonal(np.ones(covariance.shape[1]))
        return (1.0 - self.share) * covariance + self.share * identity


@dataclass(frozen=True)
class TowardsSphere(ShareOfOne):
    """``(1 - share) * covariance + share * mean variance * I`` (LinearDiscriminantAnalysis's ``shrinkage``)."""

    share: float

    def apply(self, covariance: Array, shape: Full) -> Array:
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

    def apply(self, covariance: Array, shape: Full) -> Array:
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

    def apply(self, covariance: Array, shape: Full) -> Array:
        return self.covariance

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        covariance = require_finite("covariance", self.covariance, covariance_shape)
        if covariance.ndim == 2:
            return verify_positive(covariance)
        try:
            gaussian_density.whiteners(covariance)
        except np.linalg.LinAlgError as error:  # it is not positive definite
            raise ValueError(str(error)) from error
