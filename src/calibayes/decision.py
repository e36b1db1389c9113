"""From posterior probabilities to decisions: arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def most_probable(log_posterior: Array) -> Array:
    """Code of the class with the highest posterior, the first of equals, (n,)."""
    return np.argmax(log_posterior, axis=1)


def log_odds(log_posterior: Array) -> Array:
    """Log odds of the second of two classes, (n,)."""
    return np.asarray(log_posterior[:, 1] - log_posterior[:, 0])
