"""Logistic regression with an L2 penalty on nearly collinear features, for ascending costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.linalg import cholesky, solve_triangular
from sklearn.linear_model import LogisticRegression

from calibayes.core.protocols import Array
from calibayes.kernels.posterior import log_normalize

ITERATIONS = 5000
TOLERANCE, TOLERANCE_OF_CHOICE = 1e-8, 1e-5
"""Largest component of the gradient of logistic regression, in coordinates in which its Hessian is about the identity and
per square root of the total weight: at the solution, and where losses of held-out rows are compared. With two classes,
posteriors are then exact to about 1e-6 and 1e-4."""
NEWTON_COEFFICIENTS = 2000
"""Up to this number of coefficients, a solution is refined by Newton's method, exact to rounding errors."""
TOLERANCE_OF_MANY = 1e-6
"""The same at the solution for more coefficients, whose classes are correlated, so that more steps are needed; ten times
the tolerance where losses are compared. Posteriors are exact to about 1e-4 at C = 1, and better at smaller ones."""
ROUNDS, STEPS, MEMORY = 20, 100, 20
"""Number of preconditioners for a cost, of steps with each of them, and of gradients that L-BFGS remembers."""
RIDGE = 1e-10
"""Added to the diagonal, relative to its mean, so that equal rows do not make the matrix singular."""


class LinearModel(NamedTuple):
    """Linear scores: one for two classes, otherwise one for each class."""

    coefficients: Array
    """(1 or k, p)"""
    intercepts: Array
    """(1 or k,)"""

    def scores(self, features: Array) -> Array:
        """Scores of rows, (n, 1 or k)."""
        return np.asarray(features @ self.coefficients.T + self.intercepts)


Problem = tuple[Array, Array, int, Array]
"""Features (n, p), codes (n,), number of classes, weights (n,)."""


def multinomial(scores: Array) -> Array:
    """log p(class | x), (n, k), of multinomial logistic regression."""
    both = np.concatenate([np.zeros_like(scores), scores], axis=1) if scores.shape[1] == 1 else scores
    return np.asarray(log_normalize(both)[0])


def logistic_path(problem: Problem, costs: Sequence[float], tolerance: float) -> list[LinearModel]:
    """Logistic regression with an L2 penalty: each cost starts at the solution of the one before."""
    features, codes, k, weights = problem
    with_one = np.concatenate([features, np.ones((len(features), 1))], axis=1)
    objective = _PenalizedLogLoss(with_one, np.eye(k)[codes], weights)
    coefficients, models = np.zeros((with_one.shape[1], 1 if k == 2 else k)), []
    is_large = coefficients.size > NEWTON_COEFFICIENTS
    largest = (max(10.0 * tolerance, TOLERANCE_OF_MANY) if is_large else tolerance) * np.sqrt(weights.sum())
    for cost in costs:
        penalty = np.append(np.full(features.shape[1], 1.0 / cost), 0.0)
        coefficients = objective.minimize(penalty, coefficients, largest)
        found = LinearModel(coefficients[:-1].T.copy(), coefficients[-1].copy())
        is_rough = tolerance > TOLERANCE or is_large
        models.append(found if is_rough else _refined(problem, cost, found))
    return models


def _refined(problem: Problem, cost: float, start: LinearModel) -> LinearModel:
    """The solution by Newton's method, from one that is close to it."""
    features, codes, _, weights = problem
    model = LogisticRegression(
        C=cost, max_iter=ITERATIONS, warm_start=True, solver="newton-cholesky", tol=1e-9
    )
    model.coef_, model.intercept_ = start
    model.fit(features, codes, sample_weight=weights)
    return LinearModel(model.coef_, model.intercept_)


class _PenalizedLogLoss(NamedTuple):
    """Sum of the log loss of multinomial logistic regression and half of the penalized squares of its coefficients.

    With two classes there is one score. L-BFGS minimizes it in coordinates in which the Hessian at the start, with the mean
    of the classes' variances for each row, is the identity.
    """

    features: Array
    """(n, p), the last one is 1."""
    labels: Array
    """(n, k), 1 for the class of the row."""
    weights: Array

    def minimize(self, penalty: Array, start: Array, tolerance: float) -> Array:
        """The coefficients (p, scores) of least objective."""
        options: Any = {"maxiter": STEPS, "maxcor": MEMORY, "gtol": tolerance, "ftol": 0.0}
        coefficients = start
        for _ in range(ROUNDS):
            root = self._root(penalty, coefficients)

            def loss(point: Array, root: Array = root) -> tuple[float, Array]:
                back = solve_triangular(root, point.reshape(start.shape), check_finite=False)
                value, gradient = self.value_and_gradient(penalty, back)
                return value, solve_triangular(root, gradient, trans="T", check_finite=False).ravel()

            first = (root @ coefficients).ravel()
            found = optimize.minimize(loss, first, jac=True, method="L-BFGS-B", options=options)
            coefficients = solve_triangular(root, found.x.reshape(start.shape), check_finite=False)
            if np.abs(found.jac).max() <= tolerance or found.nit <= 1:
                break
        return coefficients

    def value_and_gradient(self, penalty: Array, coefficients: Array) -> tuple[float, Array]:
        log_posterior = multinomial(self.features @ coefficients)
        penalized = penalty[:, None] * coefficients
        value = 0.5 * (penalized * coefficients).sum() - self.weights @ (self.labels * log_posterior).sum(
            axis=1
        )
        residuals = (np.exp(log_posterior) - self.labels) * self.weights[:, None]
        return float(value), self.features.T @ residuals[:, -coefficients.shape[1] :] + penalized

    def _root(self, penalty: Array, coefficients: Array) -> Array:
        """The upper Cholesky factor of the approximate Hessian (p, p)."""
        posterior = np.exp(multinomial(self.features @ coefficients))
        variance = self.weights * (posterior * (1.0 - posterior)).mean(axis=1)
        scaled = self.features * np.sqrt(variance)[:, None]
        hessian = scaled.T @ scaled
        hessian[np.diag_indices(len(hessian))] += penalty + RIDGE * max(np.trace(hessian) / len(hessian), 1.0)
        return np.asarray(cholesky(hessian, overwrite_a=True, check_finite=False))
