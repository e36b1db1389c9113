"""From the joint log density to posterior probabilities and the sums that describe how good they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.logspace import log_normalise

__all__ = ["log_normalise", "scores"]


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
