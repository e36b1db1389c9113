"""The protocols of covariance shapes and of regularizers.

All shapes are estimated from the same sums, count, first and second moments, and differ in the form of the second
moments: (g, d, d) matrices or (g, d) variances, where g is the number of classes k, or 1 for a tied shape.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol, Self

from calibayes.core.protocols import Array, Arrays


class Expected(NamedTuple):
    """Distribution of missing values: means minus the center (k, d) and covariances, (1 or k, ...)."""

    mean: Array
    covariance: Array


class Shape(Protocol):
    """A form of covariance, (g, ...)."""

    tied: ClassVar[bool]

    def prepare(self, start: Arrays) -> Shape:
        """This shape with its structure fixed from the statistics of the data."""

    @property
    def is_matrix(self) -> bool:
        """Whether a covariance is a matrix (d, d), not variances (d,)."""

    def verify_size(self, k: int, d: int) -> None:
        """Raises ValueError if what `prepare` has learned is not of k classes and d columns."""

    def pool(self, per_class: Array) -> Array:
        """Per-class sums (k, ...), added over the classes if the shape is tied, (g, ...)."""

    def freedom(self, d: int) -> int:
        """Number of free parameters of one covariance of d columns."""

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        """Count (k,) or (k, d), first moments (k, d) and second moments (g, ...) of centered numbers (n, d).

        Numbers may be NaN; ``expected`` gives the distribution from which missing values are imputed.
        """

    def moments_about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        """`moments` of ``columns - center`` for a center (d,)."""

    def has_hidden(self, x: Array) -> bool:
        """Whether the moments of these rows depend on the parameters."""

    def square(self, vectors: Array) -> Array:
        """v v' for each row v, in this shape's form, (rows, ...)."""

    def cross(self, left: Array, right: Array) -> Array:
        """l r' + r l' for each pair of rows l, r, in this shape's form, (rows, ...)."""

    def diagonal(self, variances: Array) -> Array:
        """The diagonal covariance with these variances (d,), in this shape's form, (...)."""

    def variances(self, form: Array) -> Array:
        """The diagonal of a covariance or second moment, (g, d)."""

    def constrain(self, covariance: Array, size: Array) -> Array:
        """The covariance of this shape of maximum likelihood, from sample covariances (g, ...).

        ``size``, (g, 1) or (g, d), is the number of rows in which each column is known.
        """

    def pivots(self, covariance: Array) -> Array:
        """The conditional variance of each column given the columns before it, (g, d).

        Not all are positive if the covariance is not positive definite.
        """

    def covariance_parameters(self, covariance: Array, k: int) -> Arrays:
        """The covariance (g, ...) as parameters of k classes, with what the log density needs of it."""

    def log_density(self, x: Array, parameters: Arrays) -> Array: ...

    def contrast(self, x: Array, parameters: Arrays) -> Array:
        """The log density up to a term that is the same for all classes."""

    def covariance(self, parameters: Arrays) -> Array:
        """The covariance in the parameters, in this shape's form, (g, ...)."""

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        """The inverse covariance times each row, (k, d)."""

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        """The covariance times each row, (k, d)."""

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """The covariance after a gradient step on -1/2 of its inverse, with eigenvalues of at least ``floor``."""

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        """Standard normal noise (n, d), transformed to the covariance of each row's class."""

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        """Samples of each row's class, transformed to samples of its conditional density given the known cells.

        Known cells are those of ``given`` (n, d) that are not NaN.
        """

    def terms(self, x: Array, parameters: Arrays) -> Array | None:
        """The term of each column in the log density, (n, k, d); None if the columns are dependent given the class."""

    def conditional_terms(self, x: Array, parameters: Arrays, order: Array) -> Array:
        """Log density of each known cell given the known cells of earlier columns in an order, (n, k, d)."""

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        """Log density of an inverse Wishart prior with equivalent sample sizes (g,) and a prior covariance (...)."""


class Regularizer(Protocol):
    """A transformation of the estimated covariance, (g, ...)."""

    def prepare(self, variances: Array) -> Self:
        """This regularizer with what depends on the variances of the training columns, (d,)."""

    def apply(self, covariance: Array, shape: Shape) -> Array:
        """The regularized covariance, in the same form."""

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        """Raises ValueError if what `prepare` has fixed is not for covariances of this shape, (g, ...)."""
