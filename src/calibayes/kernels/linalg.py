"""Covariance matrices: which are valid, and their factors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from calibayes.core.protocols import Array


def pivots(matrix: Array) -> Array:
    """Variance of each column given those before it, (d,); not positive from where the matrix is not definite."""
    if not np.isfinite(matrix).all():
        return np.zeros(len(matrix))
    factor, failed = lapack.dpotrf(matrix, lower=1)
    left = np.asarray(np.diag(factor) ** 2)
    if failed:
        left[failed - 1 :] = 0.0
    return left


def whiteners(matrices: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (g, d, d) and log determinants (g,) of covariance matrices."""
    factors = np.linalg.cholesky(matrices)
    identity = np.eye(matrices.shape[1])
    inverses = np.stack(
        [lapack.dtrtri(factor, lower=1)[0] * (identity + np.tri(len(identity), k=-1)) for factor in factors]
    )
    return inverses, 2.0 * np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)


def variance_from_natural(natural: Array, floor: float) -> Array:
    """-1 / (2 natural) where that is at least the floor, else the floor: a natural parameter must be negative."""
    valid = natural < 0
    return np.maximum(-0.5 / np.where(valid, natural, -1.0), floor) * valid + floor * ~valid


def covariance_from_natural(natural: Array, floor: float) -> Array:
    """-1/2 of the inverse of a symmetric matrix, its eigenvalues floored."""
    values, vectors = np.linalg.eigh(natural)
    return np.asarray((vectors * variance_from_natural(values, floor)) @ vectors.T)
