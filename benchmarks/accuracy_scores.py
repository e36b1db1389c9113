"""Scores of a posterior on held-out rows."""

from __future__ import annotations

import numpy as np

BINS = 15
MIN_PROBABILITY = 1e-15
"""Probabilities are clipped to this, as in scikit-learn's log loss."""


def posterior_scores(posterior, truth):
    """Log loss, Brier score, and the bins of the expected calibration error."""
    true = posterior[np.arange(len(truth)), truth]
    onehot = np.eye(posterior.shape[1])[truth]
    confidence, correct = posterior.max(axis=1), posterior.argmax(axis=1) == truth
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return {
        "log_loss": float(-np.mean(np.log(np.clip(true, MIN_PROBABILITY, 1.0)))),
        "brier": float(np.mean(np.sum((posterior - onehot) ** 2, axis=1))),
        "bin_rows": np.bincount(bins, minlength=BINS).tolist(),
        "bin_sure": np.bincount(bins, confidence, minlength=BINS).tolist(),
        "bin_right": np.bincount(bins, correct, minlength=BINS).tolist(),
    }
