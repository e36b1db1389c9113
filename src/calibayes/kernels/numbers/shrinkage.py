"""Shrinkage of a sample covariance towards a multiple of the identity (Ledoit and Wolf 2004)."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array


def ledoit_wolf_share(x: Array, weight: Array) -> float:
    """The share of the identity in the shrunk covariance of centered rows x (n, d) with weights (n,).

    Its expected squared error is least: delta is the squared distance of the sample covariance from the nearest
    multiple of the identity, beta the estimated squared error of the sample covariance, the share is beta / delta
    (Ledoit and Wolf 2004, section 3.2). A row of weight 2 counts as two rows.
    """
    size, d = weight.sum(), x.shape[1]
    covariance = (x * weight[:, None]).T @ x / size
    mean_variance = np.trace(covariance) / d
    squares = np.sum(covariance**2)
    delta = squares - d * mean_variance**2
    beta = (weight @ np.sum(x**2, axis=1) ** 2 / size - squares) / size
    return float(min(max(beta, 0.0) / delta, 1.0)) if delta > 0 else 0.0


def shrunk_covariance(x: Array, weight: Array) -> Array:
    """The covariance of rows (n, d) with weights (n,), its correlations shrunk by the share of Ledoit and Wolf, (d, d).

    Columns are standardized before and scaled back afterwards, so that the result does not depend on their units.
    """
    share_of_rows = weight / weight.sum()
    centered = x - share_of_rows @ x
    deviation = np.sqrt(share_of_rows @ centered**2)
    scale = np.where(deviation > 0, deviation, 1.0)
    standardized = centered / scale
    share = ledoit_wolf_share(standardized, weight)
    correlation = (standardized * share_of_rows[:, None]).T @ standardized
    identity = np.eye(x.shape[1]) * np.trace(correlation) / x.shape[1]
    return np.asarray(((1.0 - share) * correlation + share * identity) * np.outer(scale, scale))
