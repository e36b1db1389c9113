"""From the joint log density to posterior probabilities and the sums that describe how good they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import minimize_scalar

from calibayes.core.protocols import Array
from calibayes.kernels.posterior.logspace import assess, log_normalize

__all__ = ["NEGLIGIBLE", "assess", "best_temperature", "log_normalize", "scores", "undecided"]

NEGLIGIBLE = 2.0**-40
"""A weight that is no larger counts as none: the posterior of a row has decided about that class."""


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


def undecided(weights: Array) -> Array:
    """The weights W(Y, P), (n, k), of rows that are still undecided about a class; 0 where they are decided.

    Families leave out what has no weight. A statistic, the sum of w * t(x) over rows, moves by less than 2^-40 of what
    the same sum over all rows with weight one and |t(x)| is: less than it owes to rounding.
    """
    return np.where(np.abs(weights) <= NEGLIGIBLE, 0.0, weights)


def best_temperature(log_posterior: Array, codes: Array, weight: Array) -> float:
    """The temperature with the least log loss on labeled rows, between exp(-3) and exp(3)."""
    labeled = codes >= 0
    rows = np.arange(int(labeled.sum()))
    log_posterior, codes, weight = log_posterior[labeled], codes[labeled], weight[labeled]

    def loss(log_temperature: float) -> float:
        scaled = log_posterior / np.exp(log_temperature)
        return float(-weight @ log_normalize(scaled)[0][rows, codes])

    found = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded")
    return float(np.exp(found.x))
