"""Covariance matrices: which are valid, and their factors."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from calibayes.core.protocols import Array


def pivots(matrix: Array) -> Array:
    """Variance of each column given those before it, (d,); not positive from where the matrix is not definite."""
    if not np.isfinite(matrix).all():
        return np.zeros(len(matrix))
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=0)
    left = np.asarray(np.diag(factor) ** 2)
    if failed:
        left[failed - 1 :] = 0.0
    return left


def whiteners(matrices: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (g, d, d) and log determinants (g,) of covariance matrices."""
    inverses = np.empty(matrices.shape)
    for matrix, inverse in zip(matrices, inverses, strict=True):
        inverse[:] = _inverse_factor(matrix)
    return inverses, -2.0 * np.sum(np.log(np.diagonal(inverses, axis1=1, axis2=2)), axis=1)


def _inverse_factor(matrix: Array) -> Array:
    """LAPACK reads arrays column by column: the upper factor it sees is our lower one, row by row."""
    factor, failed = lapack.dpotrf(matrix.T, lower=0, clean=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return lapack.dtrtri(factor, lower=0, overwrite_c=1)[0].T


def variance_from_natural(natural: Array, floor: float) -> Array:
    """-1 / (2 natural) where that is at least the floor, else the floor: a natural parameter must be negative."""
    valid = natural < 0
    return np.maximum(-0.5 / np.where(valid, natural, -1.0), floor) * valid + floor * ~valid


def covariance_from_natural(natural: Array, floor: float) -> Array:
    """-1/2 of the inverse of a symmetric matrix, its eigenvalues floored."""
    values, vectors = np.linalg.eigh(natural)
    return np.asarray((vectors * variance_from_natural(values, floor)) @ vectors.T)
