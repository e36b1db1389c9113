"""Reduction of features to as many as there are rows, with the same inner products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from calibayes.core.protocols import Array
from calibayes.estimators.log_density.losses import LinearModel, Loss

RIDGE = 1e-10
"""Added to the diagonal, relative to its mean, so that equal rows do not make the matrix singular."""


def reduce_features(features: Array, loss: Loss) -> tuple[Array, Callable[[LinearModel], LinearModel]]:
    """At most n features (n, min(n, p)), and a function from a model fitted to them to one for the features given.

    With an L2 penalty the scores depend on the features through inner products of rows alone. If there are more features
    than rows, the Cholesky factor of these products has the same products and fewer columns.
    """
    n, p = features.shape
    if not loss.rotation_invariant or p <= n:
        return features, lambda model: model
    products = features @ features.T
    products[np.diag_indices(n)] += RIDGE * max(np.trace(products) / n, 1.0)
    factor = np.linalg.cholesky(products)

    def restore(model: LinearModel) -> LinearModel:
        dual = solve_triangular(factor, model.coefficients.T, lower=True, trans="T")
        return LinearModel((features.T @ dual).T, model.intercepts)

    return factor, restore
