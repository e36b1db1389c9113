"""Posterior probabilities: their scores as sums over rows, negligible weights, temperature."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize_scalar

from calibayes.core.protocols import Array
from calibayes.kernels.posterior.logspace import assess, log_normalize

__all__ = [
    "NEGLIGIBLE",
    "assess",
    "best_temperature",
    "held_out_scores",
    "log_normalize",
    "scores",
    "without_negligible",
]

NEGLIGIBLE = 2.0**-40
"""A class weight W(Y, P) that is no larger counts as zero."""


def scores(log_posterior: Array, onehot: Array, weight: Array) -> Mapping[str, float]:
    """Weighted sums over rows with a label: error, soft error (1 - p of the true class) and log loss."""
    known = weight * onehot.sum(axis=1)
    log_true = np.sum(log_posterior * onehot, axis=1)
    wrong = np.sum(onehot, axis=1) - onehot[np.arange(len(onehot)), np.argmax(log_posterior, axis=1)]
    return {
        "weight": float(np.sum(known)),
        "error": float(known @ wrong),
        "soft_error": float(known @ -np.expm1(log_true)),
        "log_loss": float(known @ -log_true),
    }


def without_negligible(weights: Array) -> Array:
    """The weights W(Y, P), (n, k), with negligible ones set to zero, so that families can skip these rows.

    A statistic, the sum of w * t(x) over rows, changes by less than 2^-40 of the sum of |t(x)| over all rows: less than
    its rounding error.
    """
    return np.where(np.abs(weights) <= NEGLIGIBLE, 0.0, weights)


def best_temperature(log_posterior: Array, codes: Array, weight: Array) -> float:
    """The temperature with the lowest log loss on labeled rows, between exp(-3) and exp(3)."""
    labeled = codes >= 0
    rows = np.arange(int(labeled.sum()))
    log_posterior, codes, weight = log_posterior[labeled], codes[labeled], weight[labeled]

    def loss(log_temperature: float) -> float:
        scaled = log_posterior / np.exp(log_temperature)
        return float(-weight @ log_normalize(scaled)[0][rows, codes])

    optimum = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded")
    return float(np.exp(optimum.x))


def held_out_scores(log_posterior: Array, codes: Array, weight: Array) -> tuple[float, float]:
    """Weighted log loss and error of the rows with a prediction (no NaN) and a label; NaN if there are none."""
    predicted = ~np.isnan(log_posterior).any(axis=1) & (codes >= 0)
    if not predicted.any():
        return np.nan, np.nan
    onehot = np.eye(log_posterior.shape[1])[codes[predicted]]
    sums = scores(log_posterior[predicted], onehot, weight[predicted])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]
