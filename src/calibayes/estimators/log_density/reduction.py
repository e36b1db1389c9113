"""Fewer features with the same inner products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from calibayes.core.protocols import Array
from calibayes.estimators.log_density.losses import Loss, Plane

ROUNDING = 1e-10
"""Added to the diagonal, relatively, so that equal rows are no singularity."""


def narrowed(features: Array, loss: Loss) -> tuple[Array, Callable[[Plane], Plane]]:
    """Features of no more columns than rows, and the way back for a plane fitted to them.

    A squared norm sees features through their inner products alone. Where there are more columns than rows, the
    Cholesky factor of those has the same ones and is far smaller; the plane is the same.
    """
    n, p = features.shape
    if not loss.turns or p <= n:
        return features, lambda plane: plane
    products = features @ features.T
    products[np.diag_indices(n)] += ROUNDING * max(np.trace(products) / n, 1.0)
    factor = np.linalg.cholesky(products)

    def back(plane: Plane) -> Plane:
        dual = solve_triangular(factor, plane.coefficients.T, lower=True, trans="T")
        return Plane((features.T @ dual).T, plane.intercepts)

    return factor, back
