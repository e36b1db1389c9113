"""The shapes of a Gaussian's covariance.

Shapes share the statistics and differ in what they make of them: per-class second moments, or one pooled moment for
the tied ones; matrices, variances, or a single variance. ``g`` below is k, or 1 for a tied shape.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.kernels.numbers import gaussian, independent, missing, moments


class Shape(Protocol):
    """A form of covariance, (g, ...)."""

    tied: ClassVar[bool]

    def prepare(self, start: Arrays) -> Shape:
        """Fix, from the statistics of the data, what stays fixed."""

    def pool(self, per_class: Array) -> Array:
        """Sum over classes where the covariance is tied, (g, ...)."""

    def freedom(self, d: int) -> int:
        """Number of free parameters of one covariance of d columns."""

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        """Count (k,) or (k, d), first (k, d) and second moments (g, ...) of centerd numbers, some of them NaN."""

    def about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        """`moments` of numbers about a center (d,)."""

    def has_hidden(self, x: Array) -> bool:
        """Whether moments of these rows depend on the parameters."""

    def square(self, vectors: Array) -> Array:
        """The form of v v' for each row v, (rows, ...)."""

    def cross(self, left: Array, right: Array) -> Array:
        """The form of l r' + r l' for each pair of rows."""

    def diagonal(self, variances: Array) -> Array:
        """The covariance with these variances, (...)."""

    def variances(self, form: Array) -> Array:
        """The variances in a covariance or second moment, (g, d)."""

    def settle(self, covariance: Array, size: Array) -> Array:
        """The nearest covariance of this shape, its columns known in ``size`` rows, (g, 1) or (g, d)."""

    def pivots(self, covariance: Array) -> Array:
        """The variance of each column given those before it, (g, d); not positive in a covariance that is none."""

    def finish(self, covariance: Array, k: int) -> Arrays:
        """Parameters from the covariance."""

    def log_density(self, x: Array, parameters: Arrays) -> Array: ...

    def contrast(self, x: Array, parameters: Arrays) -> Array:
        """The log density up to a term that all classes share."""

    def covariance(self, parameters: Arrays) -> Array:
        """The covariance in the parameters, back in this shape's form, (g, ...)."""

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        """The inverse covariance times each row, (k, d)."""

    def covariance_times(self, covariance: Array, vectors: Array) -> Array: ...

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        """The covariance after -1/2 of its inverse has moved along the gradient, eigenvalues floored."""

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        """Noise with unit covariance, (n, d), turned into noise with each row's covariance."""

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        """Rows drawn from each row's class, turned into rows drawn given the known cells of ``given``."""

    def groups(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """What the log density is a sum over: columns, or all of them together."""

    def terms(self, x: Array, parameters: Arrays) -> Array:
        """The terms of the log density, (n, k, groups), up to a constant that all classes share."""

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        """log of an inverse Wishart prior of given equivalent sizes (g,) about a prior covariance."""


class Expected(NamedTuple):
    """What is taken for missing cells: means about the center (k, d) and covariances (1 or k, d, d)."""

    mean: Array
    covariance: Array


class Full:
    """One covariance matrix a class."""

    tied: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def prepare(self, start: Arrays) -> Full:
        return self

    def about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        if self.has_hidden(columns):
            return self.moments(np.subtract(columns, center, dtype=np.float64), weights, expected)
        pooled = moments.sum_over_classes(weights) if self.tied else weights
        first = moments.first_about(columns, center, weights)
        return moments.zeroth(weights), first, moments.outer_about(columns, center, pooled)

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        if not self.has_hidden(x):
            return self.about(x, np.zeros(x.shape[1]), weights, expected)
        count = moments.zeroth(weights)
        covariances = np.broadcast_to(expected.covariance, (weights.shape[1], *expected.covariance.shape[1:]))
        parts = [
            missing.expected_moments(x, weight, mean, covariance)
            for weight, mean, covariance in zip(weights.T, expected.mean, covariances, strict=True)
        ]
        return (
            count,
            np.stack([first for first, _ in parts]),
            self.pool(np.stack([second for _, second in parts])),
        )

    def freedom(self, d: int) -> int:
        return d * (d + 1) // 2

    def pool(self, per_class: Array) -> Array:
        """Sum over classes where the covariance is tied, (g, ...)."""
        return per_class.sum(axis=0, keepdims=True) if self.tied else per_class

    def has_hidden(self, x: Array) -> bool:
        return bool(np.isnan(np.min(x, initial=np.inf)))  # no array of flags for rows that are complete

    def square(self, vectors: Array) -> Array:
        return np.asarray(vectors[:, :, None] * vectors[:, None, :])

    def cross(self, left: Array, right: Array) -> Array:
        product = left[:, :, None] * right[:, None, :]
        return np.asarray(product + np.swapaxes(product, 1, 2))

    def diagonal(self, variances: Array) -> Array:
        return np.diag(variances)

    def variances(self, form: Array) -> Array:
        return np.diagonal(form, axis1=1, axis2=2)

    def settle(self, covariance: Array, size: Array) -> Array:
        return covariance

    def pivots(self, covariance: Array) -> Array:
        return np.stack([gaussian.pivots(matrix) for matrix in covariance])

    def finish(self, covariance: Array, k: int) -> Arrays:
        whitener, log_determinant = gaussian.whiteners(covariance)
        return {"covariance": covariance, "whitener": whitener, "log_determinant": log_determinant}

    def log_density(self, x: Array, parameters: Arrays) -> Array:
        mean = parameters["mean"]
        if not self.has_hidden(x):
            factors = (parameters[name] for name in ("covariance", "whitener", "log_determinant"))
            return gaussian.full_gaussian(x, mean, *factors)
        covariances = np.broadcast_to(
            parameters["covariance"], (len(mean), *parameters["covariance"].shape[1:])
        )
        return np.stack(
            [missing.marginal_gaussian(x, m, c) for m, c in zip(mean, covariances, strict=True)], axis=1
        )

    def contrast(self, x: Array, parameters: Arrays) -> Array:
        if not self.tied or np.isnan(np.min(x, initial=np.inf)):
            return self.log_density(x, parameters)
        variance = self.variances(self.covariance(parameters))[0]
        return gaussian.linear_discriminants(
            x, parameters["mean"], variance, lambda away: self._slopes(parameters, away)
        )

    def _slopes(self, parameters: Arrays, away: Array) -> Array:
        """The one inverse covariance times each row, (k, d)."""
        whitener = parameters["whitener"][0]
        return np.asarray(away @ whitener.T @ whitener)

    def covariance(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["covariance"])

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        return np.linalg.solve(covariance, vectors[:, :, None])[:, :, 0]

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        return np.asarray((covariance @ vectors[:, :, None])[:, :, 0])

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        moved = -0.5 * np.linalg.inv(covariance) + gradient
        return np.stack([gaussian.covariance_from_natural(m, floor) for m in moved])

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        roots = np.linalg.cholesky(covariance)
        rows = np.empty_like(noise)
        for group, root in enumerate(roots):
            mine = classes == group if len(roots) > 1 else np.ones(len(noise), dtype=bool)
            rows[mine] = noise[mine] @ root.T
        return rows

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        # A draw moves to a draw given known cells by the regression on what they differ by (Matheron's rule).
        rows: Array = np.where(np.isnan(given), drawn, given)
        for known, pattern in missing.patterns(given):
            for group in np.unique(classes[pattern]) if known.any() and not known.all() else ():
                mine = pattern[classes[pattern] == group]
                slopes, _ = missing.conditional(covariance[0 if self.tied else group], known)
                off = given[np.ix_(mine, np.flatnonzero(known))] - drawn[np.ix_(mine, np.flatnonzero(known))]
                rows[np.ix_(mine, np.flatnonzero(~known))] += off @ slopes.T
        return rows

    def groups(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return (" + ".join(columns),)

    def terms(self, x: Array, parameters: Arrays) -> Array:
        return self.log_density(x, parameters)[:, :, None]

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        log_determinant = np.linalg.slogdet(covariance)[1]
        trace = np.trace(
            np.linalg.solve(covariance, np.broadcast_to(prior, covariance.shape)), axis1=1, axis2=2
        )
        return float(-0.5 * np.sum(size * (log_determinant + trace)))


class Diagonal(Full):
    """One variance for each class and column: Gaussian naive Bayes."""

    def freedom(self, d: int) -> int:
        return d

    def moments(self, x: Array, weights: Array, expected: Expected) -> tuple[Array, Array, Array]:
        return self.about(x, np.zeros(x.shape[1]), weights, expected)

    def about(
        self, columns: Array, center: Array, weights: Array, expected: Expected
    ) -> tuple[Array, Array, Array]:
        count, first, second = independent.power_sums(columns, center, weights)
        return count, first, self.pool(second)

    def has_hidden(self, x: Array) -> bool:
        return False

    def square(self, vectors: Array) -> Array:
        return np.asarray(vectors * vectors)

    def cross(self, left: Array, right: Array) -> Array:
        return np.asarray(2.0 * left * right)

    def diagonal(self, variances: Array) -> Array:
        return variances

    def variances(self, form: Array) -> Array:
        return form

    def pivots(self, covariance: Array) -> Array:
        return covariance

    def finish(self, covariance: Array, k: int) -> Arrays:
        return {"variance": np.array(np.broadcast_to(covariance, (k, covariance.shape[1])))}

    def log_density(self, x: Array, parameters: Arrays) -> Array:
        return independent.log_density(x, parameters["mean"], parameters["variance"])

    def _slopes(self, parameters: Arrays, away: Array) -> Array:
        return np.asarray(away / parameters["variance"][0])

    def covariance(self, parameters: Arrays) -> Array:
        return np.asarray(parameters["variance"][:1] if self.tied else parameters["variance"])

    def precision_times(self, covariance: Array, vectors: Array) -> Array:
        return np.asarray(vectors / covariance)

    def covariance_times(self, covariance: Array, vectors: Array) -> Array:
        return np.asarray(covariance * vectors)

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        return gaussian.variance_from_natural(-0.5 / covariance + gradient, floor)

    def root_times(self, covariance: Array, noise: Array, classes: Array) -> Array:
        root = np.sqrt(covariance)
        return np.asarray(noise * (root if len(root) == 1 else root[classes]))

    def conditioned(self, drawn: Array, given: Array, covariance: Array, classes: Array) -> Array:
        return np.where(np.isnan(given), drawn, given)

    def groups(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return columns

    def terms(self, x: Array, parameters: Arrays) -> Array:
        mean, variance = parameters["mean"], parameters["variance"]
        squares = (x[:, None, :] - mean) ** 2 / variance
        return np.where(
            np.isnan(x)[:, None, :], 0.0, -0.5 * (squares + np.log(variance) + gaussian.LOG_TWO_PI)
        )

    def log_prior(self, covariance: Array, size: Array, prior: Array) -> float:
        return float(-0.5 * np.sum(size[:, None] * (np.log(covariance) + prior / covariance)))


class Spherical(Diagonal):
    """One variance a class, the same for all columns."""

    def freedom(self, d: int) -> int:
        return 1

    def settle(self, covariance: Array, size: Array) -> Array:
        size = np.broadcast_to(size, covariance.shape)
        average = np.sum(size * covariance, axis=1, keepdims=True) / np.sum(size, axis=1, keepdims=True)
        return np.broadcast_to(average, covariance.shape)

    def gradient_step(self, covariance: Array, gradient: Array, floor: float) -> Array:
        # One natural parameter stands for all columns, so their gradients add up.
        together = np.broadcast_to(gradient.sum(axis=1, keepdims=True), gradient.shape)
        return super().gradient_step(covariance, together, floor)


class Tied(Full):
    """One covariance matrix for all classes: linear discriminant analysis."""

    tied = True

    def groups(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return columns

    def terms(self, x: Array, parameters: Arrays) -> Array:
        """The decision is linear, so each column has its own term, with the known columns of its row."""
        covariance, middle = parameters["covariance"][0], parameters["mean"].mean(axis=0)
        away = parameters["mean"] - middle  # about a point of the data: origins of columns must not matter
        terms = np.zeros((len(x), len(away), x.shape[1]))
        for known, rows in missing.patterns(x):
            columns = np.flatnonzero(known)
            slopes = np.linalg.solve(covariance[np.ix_(known, known)], away[:, known].T).T
            cells = (x[np.ix_(rows, columns)] - middle[known])[:, None, :] - 0.5 * away[:, known]
            terms[np.ix_(rows, np.arange(len(away)), columns)] = slopes * cells
        return terms


class TiedDiagonal(Diagonal):
    """One variance a column for all classes: logistic regression in generative form."""

    tied = True


class TiedSpherical(Spherical):
    """One variance for everything."""

    tied = True
