"""CB001: the error of the model is much lower on its training rows than on held-out rows.

The gain of a model is the error of always predicting the most frequent class, minus its error on the training rows. Every model
loses some of its gain on held-out rows. A model is reported if it loses more than half of its gain, at least two percentage points,
and the difference is more than three standard errors.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import MODEL, RESULTS, Check, Evidence
from calibayes.checks.model_checks.losses import (
    Mean,
    best_of,
    class_shares,
    mean_of,
    mean_over_folds,
    record_of,
    training_errors,
)
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent

LOST_SHARE = 0.5
LEAST_GAP = 0.02
DEVIATIONS = 3.0


def look(subject: Subject) -> Evidence | None:
    """Evidence about the model or, without one, about the best model of the comparison."""
    name, base, training, gap = _of_model(subject) if subject.has_model else _of_results(subject)
    lost = gap.value / max(base - training, 1e-12)
    if gap.value < LEAST_GAP or lost < LOST_SHARE or gap.deviations < DEVIATIONS:
        return None
    held_out = training + gap.value
    return Evidence(
        f"The error of {name} is {percent(training)} on its training rows and {percent(held_out)} on rows that it was not "
        f"trained on; always predicting the most frequent class gives {percent(base)}. On new rows, {percent(min(lost, 1.0))} of "
        "the improvement seen in training is lost.",
        values={
            "training error": training,
            "held-out error": held_out,
            "error of the most frequent class": base,
            "standard error of the difference": gap.error,
        },
    )


def _of_model(subject: Subject) -> tuple[str, float, float, Mean]:
    """Name of the model, error of the most frequent class, training error, and held-out minus training error."""
    record = record_of(subject)
    held_out = mean_of(record.log_posterior.argmax(axis=1) != record.codes, record.weight)
    training = mean_of(*training_errors(subject.model))
    gap = Mean(held_out.value - training.value, float(np.hypot(held_out.error, training.error)))
    return type(subject.model).__name__, float(1.0 - class_shares(record).max()), training.value, gap


def _of_results(subject: Subject) -> tuple[str, float, float, Mean]:
    name, best, folds = best_of(subject.results)
    gap = mean_over_folds([fold.error - fold.training_error for fold in folds])
    return name, subject.most_frequent_error, best.training_error, gap


CHECK = Check("CB001", "the model over-fits", look, (MODEL, RESULTS))
