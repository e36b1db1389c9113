"""CB012: probabilities of the model that do not hold on rows that it was not trained on.

The held-out rows are divided into ten groups of equal size by the probability of their predicted class. In each, its mean is
compared with the share of rows that are predicted correctly (Hosmer and Lemeshow 1980). Found is a model with a p-value below
0.001 and a mean absolute difference (expected calibration error) of 0.05 or more.
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


def look(subject: Subject) -> Evidence | None:
    """Evidence of a model that is too sure, or not sure enough."""
    record = record_of(subject.model)
    if len(record.codes) < LEAST_ROWS:
        raise NotChecked(f"needs {LEAST_ROWS} held-out rows at least, has {len(record.codes)}")
    confidence = np.exp(record.log_posterior.max(axis=1))
    is_right = record.log_posterior.argmax(axis=1) == record.codes
    p_value, error = calibration_test(confidence, is_right)
    if p_value >= LEVEL or error < LEAST_ERROR:
        return None
    said, true = float(confidence.mean()), float(is_right.mean())
    judgment = "too sure" if said > true else "not sure enough"
    return Evidence(
        f"{type(subject.model).__name__} is {judgment} on rows that it was not trained on: the mean probability of the predicted "
        f"class is {percent(said)}, and {percent(true)} of the rows are predicted correctly (calibration error {error:.3f}).",
        values={"mean probability": said, "accuracy": true, "calibration error": error, "p-value": p_value},
    )


def calibration_test(confidence: Array, is_right: Array) -> tuple[float, float]:
    """p-value of the Hosmer-Lemeshow test, and the mean absolute difference between probability and frequency."""
    groups = np.argsort(np.argsort(confidence, kind="stable"), kind="stable") * GROUPS // len(confidence)
    rows, said, true = (
        np.bincount(groups, values, minlength=GROUPS)
        for values in (np.ones(len(confidence)), confidence, is_right.astype(np.float64))
    )
    variance = np.bincount(groups, confidence * (1 - confidence), minlength=GROUPS)
    square = float(((true - said) ** 2 / np.maximum(variance, 0.05)).sum())
    return float(stats.chi2.sf(square, GROUPS)), float(np.abs(true - said).sum() / rows.sum())


CHECK = Check("CB012", "probabilities are not calibrated", look, (MODEL,))
