"""Posteriors in log space: normalization, the most probable class, scores as sums over rows, temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, namespace, portable, twin

NEGLIGIBLE = 2.0**-40
"""A class weight W(Y, P) that is no larger counts as zero."""


class Scores(NamedTuple):
    """Weighted sums over labeled rows."""

    weight: float
    error: float
    soft_error: float
    """1 - p of the true class."""
    log_loss: float


class Assessment(NamedTuple):
    """Scores of a posterior, and the class weights of the next update."""

    objective: float
    """Weighted sum of generative * log p(x, true class) + (1 - generative) * log p(true class | x)."""
    train: Scores
    held_out: Scores
    weights: Array | None
    """weight * (Y - (1 - generative) P), (n, k), or None if not requested."""


class FusedSums(NamedTuple):
    """Result of `calibayes.kernels.posterior.fused.fused_pass`."""

    assessment: Assessment
    """With ``weights`` None."""
    counts: Array
    """Sums of the class weights per class and cell, (k, cells)."""
    classes: Array
    """Sums of the class weights per class, (k,)."""


def native_log_normalize(module: Any, log_joint: Array) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    log_posterior, evidence = np.empty(log_joint.shape), np.empty(len(log_joint))
    module.normalize(as_float64(log_joint), log_posterior, evidence)
    return log_posterior, evidence


def native_first_largest(module: Any, rows: Array) -> Any:
    if not is_matrix(rows, "f") or rows.shape[1] == 0:
        return NotImplemented
    positions = np.empty(len(rows), dtype=np.int64)
    module.largest(as_float64(rows), positions)
    return positions


def native_assess(
    module: Any,
    log_joint: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    out = np.empty(log_joint.shape) if weights else None
    objective, train, held = module.assess(
        as_float64(log_joint),
        as_int64(labels),
        as_float64(weight),
        as_float64(held_out),
        generative,
        decided,
        out,
    )
    return Assessment(objective, Scores(*train), Scores(*held), out)


@portable
def indicators(labels: Array, k: int) -> Array:
    """Class codes (n,) as indicators, (n, k); a row of code -1, without a label, is all zero."""
    return np.asarray(labels[:, None] == np.arange(k), dtype=np.float64)


@portable
def label_weights(labels: Array, weight: Array, k: int) -> Array:
    """The weight (n,) of each row in the class of its label, (n, k)."""
    weights = np.zeros((len(labels), k))
    labeled = np.flatnonzero(labels >= 0)
    weights[labeled, labels[labeled]] = weight[labeled]
    return weights


@twin(native_log_normalize)
def log_normalize(log_joint: Array) -> tuple[Array, Array]:
    """Split log p(x, class) (n, k) into log p(class | x), (n, k), and log p(x), (n,).

    A row with probability 0 in every class has a uniform posterior and log p(x) = -inf.
    """
    xp = namespace(log_joint)
    top = xp.max(log_joint, axis=1, keepdims=True)
    shifted = xp.where(xp.isfinite(top), log_joint - xp.where(xp.isfinite(top), top, 0.0), 0.0)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]


@twin(native_first_largest)
def first_largest(rows: Array) -> Array:
    """Position of the largest entry of each row of (n, k), the first of equal ones, (n,)."""
    return np.argmax(rows, axis=1)


@twin(native_assess)
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
    """Posterior, scores, objective and class weights from log p(x, class) (n, k) in one pass.

    ``labels`` (n,) are class codes, -1 if unknown; ``weight`` and ``held_out`` (n,) the weights of rows as training and
    as held-out rows; ``generative`` the share of log p(x, class) in the objective. Class weights of at most ``decided``
    (before they are multiplied by the weight of the row) are set to 0.
    """
    log_posterior, _ = log_normalize.numpy(log_joint)
    labeled = np.flatnonzero(labels >= 0)
    true = labels[labeled]
    log_true, joint = log_posterior[labeled, true], log_joint[labeled, true]
    gain = (1.0 - generative) * log_true if generative != 1.0 else np.zeros(len(true))
    if generative != 0.0:
        gain = gain + generative * joint
    wrong = np.argmax(log_posterior[labeled], axis=1) != true
    next_weights = None
    if weights:
        next_weights = -(1.0 - generative) * np.exp(log_posterior)
        next_weights[labeled, true] += 1.0
        next_weights[np.abs(next_weights) <= decided] = 0.0
        next_weights *= weight[:, None]
    train, held = (_scores(part[labeled], wrong, log_true) for part in (weight, held_out))
    return Assessment(_weighted_sum(weight[labeled], gain), train, held, next_weights)


def _scores(weight: Array, wrong: Array, log_true: Array) -> Scores:
    return Scores(
        float(weight.sum()),
        float(weight @ wrong),
        _weighted_sum(weight, -np.expm1(log_true)),
        _weighted_sum(weight, -log_true),
    )


def _weighted_sum(weight: Array, values: Array) -> float:
    """Sum of weight times value over nonzero weights; a value of weight 0 may be infinite or NaN."""
    nonzero = weight != 0
    return float(weight[nonzero] @ values[nonzero])


@portable
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


@portable
def without_negligible(weights: Array) -> Array:
    """The weights W(Y, P), (n, k), with negligible ones set to zero, so that families can skip these rows.

    A statistic, the sum of w * t(x) over rows, changes by less than 2^-40 of the sum of |t(x)| over all rows: less than
    its rounding error.
    """
    return np.where(np.abs(weights) <= NEGLIGIBLE, 0.0, weights)


def best_temperature(
    log_posterior: Array, codes: Array, weight: Array, bounds: tuple[float, float] = (-3.0, 3.0)
) -> float:
    """The temperature with the lowest log loss on labeled rows with a prediction (no NaN); ``bounds`` of its logarithm."""
    labeled = ~np.isnan(log_posterior).any(axis=1) & (codes >= 0)
    rows = np.arange(int(labeled.sum()))
    log_posterior, codes, weight = log_posterior[labeled], codes[labeled], weight[labeled]

    def loss(log_temperature: float) -> float:
        scaled = log_posterior / np.exp(log_temperature)
        return float(-weight @ log_normalize(scaled)[0][rows, codes])

    optimum = minimize_scalar(loss, bounds=bounds, method="bounded")
    return float(np.exp(optimum.x))


def held_out_scores(log_posterior: Array, codes: Array, weight: Array) -> tuple[float, float]:
    """Weighted log loss and error of the rows with a prediction (no NaN) and a label; NaN if there are none."""
    predicted = ~np.isnan(log_posterior).any(axis=1) & (codes >= 0)
    if not predicted.any():
        return np.nan, np.nan
    onehot = np.eye(log_posterior.shape[1])[codes[predicted]]
    sums = scores(log_posterior[predicted], onehot, weight[predicted])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]
