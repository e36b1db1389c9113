"""Posteriors, scores and class weights on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from calibayes.kernels.device.array import DeviceArray
from calibayes.kernels.device.placement import Placement
from calibayes.kernels.dispatch import device_version
from calibayes.kernels.posterior import logspace
from calibayes.kernels.posterior.logspace import Assessment, Scores


@device_version(logspace.label_weights)
def label_weights(labels: DeviceArray, weight: DeviceArray, k: int) -> DeviceArray:
    return weight[:, None] * indicators(labels, k)


@device_version(logspace.indicators)
def indicators(labels: DeviceArray, k: int) -> DeviceArray:
    place = labels.placement
    return labels.wrap(place.float64(_is_label(place, labels.values, k)))


@device_version(logspace.log_normalize)
def log_normalize(log_joint: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    log_posterior, evidence = _normalized(log_joint.placement, log_joint.values)
    return log_joint.wrap(log_posterior), log_joint.wrap(evidence)


@device_version(logspace.first_largest)
def first_largest(rows: DeviceArray) -> DeviceArray:
    return rows.wrap(rows.placement.xp.argmax(rows.values, axis=1))


class RowInputs(NamedTuple):
    """What `assess` needs of each row."""

    labels: Any
    weight: Any
    held_out: Any


@device_version(logspace.assess)
def assess(
    log_joint: DeviceArray,
    labels: Any,
    weight: Any,
    held_out: Any,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Assessment:
    rows = RowInputs(*(log_joint.raw(array) for array in (labels, weight, held_out)))
    sums, next_weights = assessed(
        log_joint.placement, log_joint.values, rows, generative, decided, weights=weights
    )
    return assessment(log_joint.wrap(sums), None if next_weights is None else log_joint.wrap(next_weights))


def assessment(sums: DeviceArray, weights: DeviceArray | None) -> Assessment:
    """The result of `assess` from the sums of `assessed`: the one copy to the host in a pass."""
    objective, *scores = sums.tolist()
    return Assessment(objective, Scores(*scores[:4]), Scores(*scores[4:]), weights)


def assessed(
    place: Placement,
    log_joint: Any,
    rows: RowInputs,
    generative: float,
    decided: float,
    *,
    weights: bool = True,
) -> tuple[Any, Any]:
    """Objective, training scores and held-out scores, (9,), and class weights (n, k) or None; see `logspace.assess`."""
    xp, (labels, weight, held_out) = place.xp, rows
    log_posterior, _ = _normalized(place, log_joint)
    is_true = _is_label(place, labels, log_joint.shape[1])
    zero = xp.zeros_like(log_posterior)
    log_true = xp.sum(xp.where(is_true, log_posterior, zero), axis=1)
    gain = (1.0 - generative) * log_true
    if generative != 0.0:
        gain = gain + generative * xp.sum(xp.where(is_true, log_joint, zero), axis=1)
    wrong = place.float64(xp.argmax(log_posterior, axis=1) != labels)
    values = xp.stack([xp.ones_like(log_true), wrong, -xp.expm1(log_true), -log_true, gain], axis=1)
    is_labeled = (labels >= 0)[:, None]
    train, held = (_weighted_sums(place, part, values, is_labeled) for part in (weight, held_out))
    sums = xp.concat([train[4:], train[:4], held[:4]])
    if not weights:
        return sums, None
    next_weights = place.float64(is_true) - (1.0 - generative) * xp.exp(log_posterior)
    next_weights = xp.where(xp.abs(next_weights) <= decided, zero, next_weights)
    return sums, next_weights * weight[:, None]


@device_version(logspace.scores)
def scores(log_posterior: DeviceArray, onehot: Any, weight: Any) -> Mapping[str, float]:
    place, xp, is_true = log_posterior.placement, log_posterior.placement.xp, log_posterior.raw(onehot) != 0
    found = log_posterior.values
    log_true = xp.sum(xp.where(is_true, found, xp.zeros_like(found)), axis=1)
    labels = xp.argmax(place.float64(is_true), axis=1)
    wrong = place.float64(xp.argmax(found, axis=1) != labels)
    values = xp.stack([xp.ones_like(log_true), wrong, -xp.expm1(log_true), -log_true], axis=1)
    is_labeled = xp.any(is_true, axis=1, keepdims=True)
    sums = log_posterior.wrap(_weighted_sums(place, log_posterior.raw(weight), values, is_labeled))
    return Scores(*sums.tolist())._asdict()


@device_version(logspace.without_negligible)
def without_negligible(weights: DeviceArray) -> DeviceArray:
    kept = weights.copy()
    kept[abs(weights) <= logspace.NEGLIGIBLE] = 0.0
    return kept


def _is_label(place: Placement, labels: Any, k: int) -> Any:
    """Labels as indicators, (n, k) booleans."""
    return labels[:, None] == place.arange(k)[None, :]


def _normalized(place: Placement, log_joint: Any) -> tuple[Any, Any]:
    """log p(class | x), (n, k), and log p(x), (n,)."""
    xp = place.xp
    top = xp.max(log_joint, axis=1, keepdims=True)
    zero = xp.zeros_like(top)
    is_finite = xp.isfinite(top)
    shifted = xp.where(is_finite, log_joint - xp.where(is_finite, top, zero), zero)
    log_sum = xp.log(xp.sum(xp.exp(shifted), axis=1, keepdims=True))
    return shifted - log_sum, (top + log_sum)[:, 0]


def _weighted_sums(place: Placement, weight: Any, values: Any, is_labeled: Any) -> Any:
    """Sums of weight times value over labeled rows of nonzero weight; a value of weight 0 may be infinite or NaN."""
    xp = place.xp
    counts = is_labeled & (weight != 0.0)[:, None]
    return xp.sum(xp.where(counts, weight[:, None] * values, xp.zeros_like(values)), axis=0)
