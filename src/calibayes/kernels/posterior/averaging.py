"""Posteriors of several models, averaged: how much each of them should count, and what it then said."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from calibayes.core.protocols import Array

MOST_UPDATES = 100
LEAST_GAIN = 1e-10
"""A way up that promises less than this a row is not gone."""
RIDGE = 1e-9
"""Keeps apart members that say the same."""
SHORTEST = 1e-9
MOST_FALL = 1e-3
"""What a step leaves of the probability of any row at least: a quadratic says nothing of what lies beyond."""


def mixture_weights(log_true: Array, weight: Array, more: float = 0.0) -> Array:
    """The weights (m,) under which the average of m models gives labeled rows, and ``more``, the highest likelihood.

    ``log_true`` (n, m) are the log probabilities that each model gave to the true class of rows it had not seen,
    ``weight`` (n,) those of the rows. The likelihood is concave, so there is one top; from even weights Newton's steps,
    held to what weights can be, are there after a few. For each model there is one row more, of weight ``more``, in
    which it alone was right. Without rows the weights stay even.

    >>> mixture_weights(np.log([[0.9, 0.5], [0.8, 0.5]]), np.ones(2)).round(3).tolist()
    [1.0, 0.0]
    """
    m, size = log_true.shape[1], float(weight.sum()) + log_true.shape[1] * more
    shares = np.full(m, 1.0 / m)
    if not size > 0:
        return shares
    top = log_true.max(axis=1, keepdims=True)
    probability = np.exp(np.where(np.isfinite(top), log_true - np.where(np.isfinite(top), top, 0.0), 0.0))
    if more > 0:
        probability, weight = np.vstack([probability, np.eye(m)]), np.append(weight, np.full(m, more))
    for _ in range(MOST_UPDATES):
        relative = probability / (probability @ shares)[:, None]
        slope = (weight / size) @ relative
        towards = _newton(relative, weight / size, slope, shares) - shares
        if slope @ towards <= LEAST_GAIN:
            break
        moved = shares + _length(relative @ towards, weight / size) * towards
        if np.array_equal(moved, shares):
            break
        shares = moved
    return np.asarray(shares / shares.sum())


def _newton(relative: Array, weight: Array, slope: Array, shares: Array) -> Array:
    """The top of the likelihood's quadratic, among weights that are not negative, then made to add up to one.

    The curvature times the weights is the slope, and a price of one for each unit of weight makes weights add up to
    one at the top.
    """
    curvature = (relative * weight[:, None]).T @ relative
    scale = (
        np.sqrt(np.diagonal(curvature)) + np.finfo(float).tiny
    )  # a model without weight may be far above the mixture
    root = np.linalg.cholesky(curvature / np.outer(scale, scale) + RIDGE * np.eye(len(shares)))
    wanted = (2.0 * slope - 1.0) / scale + RIDGE * scale * shares
    found = nnls(root.T, np.linalg.solve(root, wanted))[0] / scale
    return np.asarray(found / found.sum()) if found.sum() > 0 else shares


def _length(change: Array, weight: Array) -> float:
    """How far to go where the mixture changes by this share of itself: all the way, or half as far until it is higher."""
    rise, length = float(weight @ change), 1.0
    while length > SHORTEST:
        factor = 1.0 + length * change
        if factor.min() > MOST_FALL and weight @ np.log(factor) >= 1e-4 * length * rise:
            return length
        length /= 2
    return 0.0


def log_loss(log_true: Array, shares: Array, weight: Array) -> float:
    """Of the average with these weights, a row: 0 without rows."""
    used, size = shares > 0, float(weight.sum())
    mixed = np.logaddexp.reduce(log_true[:, used] + np.log(shares[used]), axis=1)
    return float(weight @ -mixed) / size if size > 0 else 0.0


def mix(log_posteriors: Array, weights: Array) -> Array:
    """log of the average of posteriors (m, n, k) with weights (m,), (n, k)."""
    used = weights > 0
    return np.asarray(
        np.logaddexp.reduce(log_posteriors[used] + np.log(weights[used])[:, None, None], axis=0)
    )


def logarithmic_mean(log_a: Array, log_b: Array) -> Array:
    """log of (a - b) / (log a - log b), elementwise: the mean by which a difference is a difference of logs."""
    gap = np.abs(log_a - log_b)
    some = np.where(gap > 0, gap, 1.0)
    below = np.where(gap > 0, np.log(-np.expm1(-some)) - np.log(some), 0.0)
    return np.asarray(np.maximum(log_a, log_b) + below)


def pair_shares(log_a: Array, log_b: Array) -> Array:
    """What multiplies each model's log odds so that they add up to those of the mixture, (m, n).

    ``log_a`` and ``log_b`` (m, n) are the logs of weight times posterior of two classes. The difference of two averages
    is the sum of the differences, and each difference is its logarithmic mean times its log odds.
    """
    whole = logarithmic_mean(np.logaddexp.reduce(log_a, axis=0), np.logaddexp.reduce(log_b, axis=0))
    return np.asarray(np.exp(logarithmic_mean(log_a, log_b) - whole))
