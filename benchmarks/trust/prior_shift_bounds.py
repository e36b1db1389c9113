"""How well class frequencies can be estimated at all from the calibrated posteriors of a model."""

from __future__ import annotations

import numpy as np

from calibayes.analysis.prior_shift_tests import LabeledSample, log_likelihood

UNMOVED = 0.9
"""Prior probability of unmoved frequencies."""


def informed_frequencies(sample: LabeledSample, log_posterior: np.ndarray, factor: float) -> np.ndarray:
    """Posterior mean of the frequencies if it were known how they are moved, (k,).

    They are unmoved with probability `UNMOVED`; otherwise the odds of one class, any of them, were multiplied or divided by the
    factor. With correct posteriors, deciding by this mean has the lowest expected error of all rules. As in `adapt_priors`, the
    log likelihood is divided by 1 + n / m for n new and m held-out rows.
    """
    ratios, k = sample.ratios(log_posterior), len(sample.frequencies)
    steps = np.log(factor) * np.vstack([np.zeros(k), np.eye(k), -np.eye(k)])
    candidates = sample.frequencies * np.exp(steps)
    candidates /= candidates.sum(axis=1, keepdims=True)
    prior = np.log([UNMOVED, *[(1 - UNMOVED) / (2 * k)] * (2 * k)])
    evidence = np.array([log_likelihood(candidate, ratios) for candidate in candidates])
    log_weight = prior + evidence / (1 + len(ratios) / sample.rows)
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight @ candidates / weight.sum())


def log_odds_deviation(
    sample: LabeledSample, log_posterior: np.ndarray, frequencies: np.ndarray, c: int
) -> float:
    """Standard deviation of an efficient estimate of the log odds of class c: the bound of Cramer and Rao.

    The information about log frequencies is the sum over rows of (r - f)(r - f)', r being the posterior of the row under the
    frequencies f. Infinite if the posteriors of all rows are the same.
    """
    joint = sample.ratios(log_posterior) * frequencies
    away = joint / joint.sum(axis=1, keepdims=True) - frequencies
    information = away.T @ away / (1 + len(away) / sample.rows)
    contrast = -frequencies / (1 - frequencies[c])
    contrast[c] = 1.0
    basis = np.linalg.svd(np.ones((1, len(frequencies))))[2][1:].T
    inner = basis.T @ information @ basis
    if np.linalg.cond(inner) > 1e12 or np.trace(inner) < 1e-6:
        return float("inf")
    across = basis.T @ contrast
    return float(np.sqrt(across @ np.linalg.solve(inner, across)))
