"""Verification of Gaussian families: their prepared values, moments, means and covariances."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.core.verify import require, require_arrays, require_close, require_finite
from calibayes.families.class_centers import ClassCenters
from calibayes.kernels import gaussian_density

LARGEST_RESIDUAL = 0.5
"""Largest distance of a whitened covariance from the identity at which it is surely positive definite."""
ROUNDINGS = 100.0
"""How often the rounding error of one product the inverse of a nearly singular covariance may be off."""
LEAST_EIGENVALUE = -1e-8
"""Of a correlation matrix, beyond which a negative one is no rounding error."""


class VerifiedShape:
    """A covariance shape that depends on nothing but the sizes of its arrays."""

    is_matrix: ClassVar[bool] = True
    """Whether a covariance is a matrix (d, d), not variances (d,)."""

    def verify_size(self, k: int, d: int) -> None:
        """Raises ValueError if what the shape has learned is not of k classes and d columns."""


class FiniteFields:
    """A regularizer of numbers that are finite and not negative, and of one array of variances at most."""

    largest: ClassVar[float] = np.inf
    """The largest valid number."""

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


class VerifiedMoments(ClassCenters):
    """Verification of a Gaussian family."""

    prior: Any
    regularizer: Any
    resolved: Any

    def _covariance_shape(self) -> tuple[int, ...]:
        """Shape of the covariances and of the second moments, (g, d, d) or (g, d)."""
        shape: Any = self.shape
        d = len(self.layout.columns)
        groups = 1 if shape.tied else len(self.layout.classes)
        return (groups, d, d) if shape.is_matrix else (groups, d)

    def verify(self) -> None:
        self.layout.verify()
        k, d = len(self.layout.classes), len(self.layout.columns)
        if not k:
            return
        require_finite("center", self.layout.center, (d,))
        if self.offsets is not None:
            require_finite("offsets", self.offsets, (k, d))
        self.shape.verify_size(k, d)
        self.regularizer.verify_size(self._covariance_shape())
        if self.resolved is not None:
            self.resolved.verify_size(k, d, self._covariance_shape())

    def verify_statistics(self, statistics: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        by_column = not self.shape.is_matrix and np.ndim(statistics.get("count", 0)) > 1
        count = (k, d) if by_column else (k,)
        shapes = {"count": count, "first": (k, d), "second": self._covariance_shape()}
        require_arrays("statistics", statistics, shapes)
        require_finite("count", statistics["count"], count, least=0.0)

    def verify_parameters(self, parameters: Arrays) -> None:
        (g, *form), k, d = self._covariance_shape(), len(self.layout.classes), len(self.layout.columns)
        if self.shape.is_matrix:
            shapes = {"covariance": (g, *form), "whitener": (g, *form), "log_determinant": (g,)}
            require_arrays("parameters", parameters, {"mean": (k, d), **shapes})
            for part in zip(*(parameters[name] for name in shapes), strict=True):
                _verify_matrix(*part)
        else:
            require_arrays("parameters", parameters, {"mean": (k, d), "variance": (k, d)})
            _verify_variances(parameters["variance"], is_tied=self.shape.tied)


def verify_positive(variances: Array) -> None:
    """Raises ValueError unless all variances are positive."""
    require(bool((variances > 0).all()), "a covariance contains a variance that is not positive")


def verify_definite(covariance: Array) -> None:
    """Raises ValueError unless all covariances, (g, d, d) or (g, d), are positive definite."""
    if covariance.ndim == 2:
        verify_positive(covariance)
        return
    try:
        gaussian_density.whiteners(covariance)
    except np.linalg.LinAlgError as error:
        raise ValueError(str(error)) from error


def _verify_variances(variances: Array, *, is_tied: bool) -> None:
    """Raises ValueError unless variances (k, d) are positive, and equal for all classes of a tied shape."""
    verify_positive(variances)
    require(
        not is_tied or bool((variances == variances[:1]).all()), "a tied variance differs between classes"
    )


def _verify_matrix(covariance: Array, whitener: Array, log_determinant: Array) -> None:
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
        correlation = (
            np.tril(correlation) + np.tril(correlation, -1).T
        )  # the half that the whitener is made from
        scaled = whitener * deviations
        residual = np.abs(scaled @ correlation @ scaled.T - np.eye(d)).max(initial=0.0)
        rounding = ROUNDINGS * d * np.finfo(float).eps * np.sum(scaled**2)
    require(bool(residual <= 1e-6 + rounding), "whitener does not belong to covariance")
    if residual > LARGEST_RESIDUAL:
        require(_is_nearly_definite(correlation), "a covariance is not positive definite")
    expected = -2.0 * np.sum(np.log(np.diagonal(whitener)))
    require_close("log_determinant", log_determinant, expected, d + abs(expected))


def _is_nearly_definite(correlation: Array) -> bool:
    """Whether no eigenvalue of a correlation matrix is negative by more than rounding."""
    return bool(np.linalg.eigvalsh(correlation).min() >= LEAST_EIGENVALUE)
