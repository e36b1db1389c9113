"""Class frequencies of unlabeled rows from their posteriors under other frequencies: maximum likelihood by EM.

Saerens, Latinne and Decaestecker (2002, Neural Computation 14): with p(x | class) unchanged, the likelihood of unlabeled rows is
the product over rows of sum_c f_c p(c | x) / q_c, q being the frequencies that the posteriors belong to. It is concave in f.
"""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

MOST_STEPS = 500
TOLERANCE = 1e-8


def likelihood_ratios(log_posterior: Array, frequencies: Array) -> Array:
    """p(x | class) of each row up to a factor of the row, (n, k), from posteriors under these frequencies."""
    log_ratio = log_posterior - np.log(frequencies)
    return np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))


def estimated_frequencies(
    ratios: Array,
    prior: Array,
    pseudo_rows: float = 0.0,
    tolerance: float = TOLERANCE,
    start: Array | None = None,
) -> Array:
    """The most probable frequencies, (k,), with a Dirichlet prior of ``pseudo_rows`` rows that have frequencies ``prior``.

    EM steps with SQUAREM extrapolation (Varadhan and Roland 2008): three EM steps, of which the last one starts from an
    extrapolation of the others. ``start`` is where to begin, halfway from ``prior``: EM never leaves a frequency of zero.
    """
    current = prior if start is None else (prior + start) / 2
    for _ in range(MOST_STEPS):
        first = _em_step(current, ratios, prior, pseudo_rows)
        second = _em_step(first, ratios, prior, pseudo_rows)
        if np.abs(second - first).max() <= tolerance:
            return second
        current = _em_step(_extrapolated(current, first, second), ratios, prior, pseudo_rows)
        if _objective(current, ratios, prior, pseudo_rows) < _objective(second, ratios, prior, pseudo_rows):
            current = second
    return current


def _em_step(frequencies: Array, ratios: Array, prior: Array, pseudo_rows: float) -> Array:
    """Expected class counts of the rows and the pseudo-rows, divided by their number."""
    counts = frequencies * ((1.0 / (ratios @ frequencies)) @ ratios)
    mean: Array = (counts + pseudo_rows * prior) / (len(ratios) + pseudo_rows)
    return mean / mean.sum()


def _extrapolated(start: Array, first: Array, second: Array) -> Array:
    """The limit that three EM iterates point to; probabilities stay positive."""
    change, bend = first - start, second - 2 * first + start
    size = float(np.linalg.norm(bend))
    if size == 0.0:
        return second
    step = max(float(np.linalg.norm(change)) / size, 1.0)
    aim = np.maximum(start + 2 * step * change + step**2 * bend, second / 10)
    return np.asarray(aim / aim.sum())


def log_likelihood(frequencies: Array, ratios: Array) -> float:
    """Log likelihood of the rows, up to a term that does not depend on the frequencies."""
    return float(np.log(ratios @ frequencies).sum())


def _objective(frequencies: Array, ratios: Array, prior: Array, pseudo_rows: float) -> float:
    penalty = 0.0 if pseudo_rows == 0 else pseudo_rows * float(prior @ np.log(frequencies))
    return log_likelihood(frequencies, ratios) + penalty
