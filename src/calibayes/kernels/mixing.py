"""Posteriors of several models, averaged: how much each of them should count, and what it then said."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

MOST_UPDATES = 2000
LEAST_GAIN = 1e-10


def mixture_weights(log_true: Array, weight: Array) -> Array:
    """The weights (m,) under which the average of m models gives labelled rows the highest likelihood.

    ``log_true`` (n, m) are the log probabilities that each model gave to the true class of rows it had not seen,
    ``weight`` (n,) those of the rows. Expectation maximisation from even weights: the likelihood is concave, so there
    is one top. Without rows the weights stay even.

    >>> mixture_weights(np.log([[0.9, 0.5], [0.8, 0.5]]), np.ones(2)).round(3).tolist()
    [1.0, 0.0]
    """
    m, size = log_true.shape[1], float(weight.sum())
    shares, before = np.full(m, 1.0 / m), -np.inf
    top = log_true.max(axis=1, keepdims=True, initial=-np.inf)
    probability = np.exp(np.where(np.isfinite(top), log_true - np.where(np.isfinite(top), top, 0.0), 0.0))
    for _ in range(MOST_UPDATES if size > 0 else 0):
        mixed = probability @ shares
        shares = shares * (probability.T @ (weight / mixed)) / size
        now = float(weight @ np.log(mixed)) / size
        if now - before < LEAST_GAIN:
            break
        before = now
    return np.asarray(shares / shares.sum())


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
