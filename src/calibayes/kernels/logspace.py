"""Normalising in log space, and what follows from a posterior."""

from __future__ import annotations

import numpy as np

from calibayes.core.namespace import namespace
from calibayes.core.protocols import Array
from calibayes.kernels.assessment import Assessment, Scores
from calibayes.kernels.native import posterior as native
from calibayes.kernels.native import twin


@twin(native.log_normalise)
def log_normalise(log_joint: Array) -> tuple[Array, Array]:
    """Split log p(x, class) into log p(class | x), (n, k), and log p(x), (n,)."""
    xp = namespace(log_joint)
    top = xp.max(log_joint, axis=1, keepdims=True)
    # A row that no class can explain (all -inf) is left as evidence -inf with a flat posterior.
    shifted = xp.where(xp.isfinite(top), log_joint - xp.where(xp.isfinite(top), top, 0.0), 0.0)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]


@twin(native.first_largest)
def first_largest(rows: Array) -> Array:
    """Where the largest entry of each row is, the first of equals, (n,)."""
    return np.argmax(rows, axis=1)


@twin(native.assess)
def assess(
    log_joint: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Assessment:
    """From log p(x, class) (n, k) to posterior, scores, objective and class weights in one go; label -1 is none.

    A class weight no larger than ``decided`` is 0.
    """
    log_posterior, _ = log_normalise.plain(log_joint)
    labelled = np.flatnonzero(labels >= 0)
    true = labels[labelled]
    log_true, joint = log_posterior[labelled, true], log_joint[labelled, true]
    gain = (1.0 - generative) * log_true if generative != 1.0 else np.zeros(len(true))
    if generative != 0.0:
        gain = gain + generative * joint
    wrong = np.argmax(log_posterior[labelled], axis=1) != true
    next_weights = None
    if weights:
        next_weights = -(1.0 - generative) * np.exp(log_posterior)
        next_weights[labelled, true] += 1.0
        next_weights[np.abs(next_weights) <= decided] = 0.0
        next_weights *= weight[:, None]
    train, held = (_scores(part[labelled], wrong, log_true) for part in (weight, held_out))
    return Assessment(_dot(weight[labelled], gain), train, held, next_weights)


def _scores(weight: Array, wrong: Array, log_true: Array) -> Scores:
    return Scores(
        float(weight.sum()),
        float(weight @ wrong),
        _dot(weight, -np.expm1(log_true)),
        _dot(weight, -log_true),
    )


def _dot(weight: Array, values: Array) -> float:
    """Weighted sum; a value that does not count may be anything."""
    counts = weight != 0
    return float(weight[counts] @ values[counts])
