"""Averages of the posteriors of several models: maximum likelihood weights, log loss, log average and attribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from calibayes.core.protocols import Array

MOST_UPDATES = 100
LEAST_GAIN = 1e-10
"""Predicted gain in mean log likelihood below which the iteration ends."""
RIDGE = 1e-9
"""Added to the scaled curvature so that it stays definite when models have equal posteriors."""
SHORTEST = 1e-9
"""Step length at which the line search ends."""
LEAST_RATIO = 1e-3
"""Least ratio of a row's probability after a step to that before: the quadratic model is poor beyond it."""
SUFFICIENT_INCREASE = 1e-4
"""Share of the linearly predicted gain that a step must achieve (Armijo condition)."""


LEAST_IMPROVEMENT = 1e-3
"""Relative difference below which a held-out log loss is not lower than another."""


def is_lower(loss: float, before: Any) -> Any:
    """Whether a log loss is lower than another by more than noise."""
    return loss < (1.0 - LEAST_IMPROVEMENT) * before


def mixture_weights(log_true: Array, weight: Array, pseudo_weight: float = 0.0) -> Array:
    """Weights (m,) of an average of m models that maximize the likelihood of the true classes.

    ``log_true`` (n, m) are the log probabilities of the true class of held-out rows under each model, ``weight`` (n,)
    the weights of the rows. For each model one pseudo-row of weight ``pseudo_weight`` is added, to which only this model
    gives a positive probability: the log density of a Dirichlet(1 + pseudo_weight) prior. The likelihood is concave; Newton's
    method with nonnegativity constraints starts from equal weights. Without rows the weights are equal.

    >>> mixture_weights(np.log([[0.9, 0.5], [0.8, 0.5]]), np.ones(2)).round(3).tolist()
    [1.0, 0.0]
    """
    m, size = log_true.shape[1], float(weight.sum()) + log_true.shape[1] * pseudo_weight
    shares = np.full(m, 1.0 / m)
    if not size > 0:
        return shares
    top = log_true.max(axis=1, keepdims=True)
    probability = np.exp(np.where(np.isfinite(top), log_true - np.where(np.isfinite(top), top, 0.0), 0.0))
    if pseudo_weight > 0:
        probability = np.vstack([probability, np.eye(m)])
        weight = np.append(weight, np.full(m, pseudo_weight))
    for _ in range(MOST_UPDATES):
        relative = probability / (probability @ shares)[:, None]
        gradient = (weight / size) @ relative
        direction = _newton_point(relative, weight / size, gradient, shares) - shares
        if gradient @ direction <= LEAST_GAIN:
            break
        updated = shares + _step_length(relative @ direction, weight / size) * direction
        if np.array_equal(updated, shares):
            break
        shares = updated
    return np.asarray(shares / shares.sum())


def _newton_point(relative: Array, weight: Array, gradient: Array, shares: Array) -> Array:
    """Maximum of the quadratic model of the likelihood over nonnegative weights, scaled to sum to one, (m,).

    The curvature times the current weights is the gradient. A Lagrange multiplier of one on the sum of the weights makes
    them sum to one at the optimum.
    """
    curvature = (relative * weight[:, None]).T @ relative
    # Scaled to unit diagonal: the entries of a model of weight 0 may be far larger than those of the mixture.
    scale = np.sqrt(np.diagonal(curvature)) + np.finfo(float).tiny
    root = np.linalg.cholesky(curvature / np.outer(scale, scale) + RIDGE * np.eye(len(shares)))
    right_side = (2.0 * gradient - 1.0) / scale + RIDGE * scale * shares
    solution = nnls(root.T, np.linalg.solve(root, right_side))[0] / scale
    return np.asarray(solution / solution.sum()) if solution.sum() > 0 else shares


def _step_length(change: Array, weight: Array) -> float:
    """Step length by backtracking from 1; ``change`` (n,) is the relative change of the mixture for a full step."""
    slope, length = float(weight @ change), 1.0
    while length > SHORTEST:
        ratio = 1.0 + length * change
        if ratio.min() > LEAST_RATIO and weight @ np.log(ratio) >= SUFFICIENT_INCREASE * length * slope:
            return length
        length /= 2
    return 0.0


def log_loss(log_true: Array, shares: Array, weight: Array) -> float:
    """Weighted mean log loss of the average with weights ``shares`` (m,), given ``log_true`` (n, m); 0 without rows."""
    used, size = shares > 0, float(weight.sum())
    log_average = np.logaddexp.reduce(log_true[:, used] + np.log(shares[used]), axis=1)
    return float(weight @ -log_average) / size if size > 0 else 0.0


def mix(log_posteriors: Array, weights: Array) -> Array:
    """log of the weighted average of posteriors, (n, k), from their logs (m, n, k) and weights (m,)."""
    used = weights > 0
    return np.asarray(
        np.logaddexp.reduce(log_posteriors[used] + np.log(weights[used])[:, None, None], axis=0)
    )
