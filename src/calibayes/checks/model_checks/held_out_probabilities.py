"""CB012: predicted probabilities that do not match the observed frequencies on rows that the model was not trained on.

The held-out rows are divided into ten groups of equal size by the probability of their predicted class. In each group, the mean
probability is compared with the share of correct predictions (Hosmer and Lemeshow 1980), weighted by the sample weights. A model
is reported if the p-value is below 0.001 and the mean absolute difference (expected calibration error) is 0.05 or more.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from calibayes.checks.check import MODEL, Check, Evidence, NotChecked
from calibayes.checks.model_checks.losses import record_of
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.core.protocols import Array

GROUPS = 10
LEAST_ROWS = 100
LEVEL = 0.001
LEAST_ERROR = 0.05
LEAST_VARIANCE = 0.05
"""Least variance of the number of correct predictions in a group, so that probabilities near 1 do not divide by zero."""


def look(subject: Subject) -> Evidence | None:
    """Evidence of an overconfident or underconfident model."""
    record = record_of(subject)
    if len(record.codes) < LEAST_ROWS:
        raise NotChecked(f"needs at least {LEAST_ROWS} held-out rows, has {len(record.codes)}")
    confidence = np.exp(record.log_posterior.max(axis=1))
    is_right = record.log_posterior.argmax(axis=1) == record.codes
    p_value, error = calibration_test(confidence, is_right, record.weight)
    if p_value >= LEVEL or error < LEAST_ERROR:
        return None
    predicted, accuracy = (
        float(np.average(values, weights=record.weight)) for values in (confidence, is_right)
    )
    judgment = "overconfident" if predicted > accuracy else "underconfident"
    return Evidence(
        f"{type(subject.model).__name__} is {judgment} on rows that it was not trained on: the mean probability of the predicted "
        f"class is {percent(predicted)}, but {percent(accuracy)} of the predictions are correct (expected calibration error "
        f"{error:.3f}).",
        values={
            "mean probability": predicted,
            "accuracy": accuracy,
            "calibration error": error,
            "p-value": p_value,
        },
    )


def calibration_test(confidence: Array, is_right: Array, weight: Array) -> tuple[float, float]:
    """p-value of the Hosmer-Lemeshow test, and the mean absolute difference between probability and frequency."""
    groups = np.argsort(np.argsort(confidence, kind="stable"), kind="stable") * GROUPS // len(confidence)
    weight = weight / weight.mean()
    predicted, correct, variance = (
        np.bincount(groups, values, minlength=GROUPS)
        for values in (weight * confidence, weight * is_right, weight**2 * confidence * (1 - confidence))
    )
    square = float(((correct - predicted) ** 2 / np.maximum(variance, LEAST_VARIANCE)).sum())
    return float(stats.chi2.sf(square, GROUPS)), float(np.abs(correct - predicted).sum() / weight.sum())


CHECK = Check("CB012", "probabilities are not calibrated", look, (MODEL,))
