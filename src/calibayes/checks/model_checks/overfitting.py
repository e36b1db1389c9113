"""CB001: the model is much better on its training rows than on others.

Compared is the error on training rows with that on rows that the model was not trained on, in units of what the model gains
over the most frequent class on the training rows. Every model loses some of it. A model is found if it loses more than half of
its gain, at least two percentage points, and the difference is more than three standard errors.
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import MODEL, RESULTS, Check, Evidence
from calibayes.checks.model_checks.losses import (
    Mean,
    by_model,
    mean_of,
    mean_over_folds,
    record_of,
    training_errors,
)
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.compare.ranking import rank_results

LOST_SHARE = 0.5
LEAST_GAP = 0.02
DEVIATIONS = 3.0


def look(subject: Subject) -> Evidence | None:
    """Evidence about the model or, without one, about the best model of the comparison."""
    name, training, gap = _of_model(subject) if subject.has_model else _of_results(subject)
    base = subject.most_frequent_error
    lost = gap.value / max(base - training, 1e-12)
    if gap.value < LEAST_GAP or lost < LOST_SHARE or gap.deviations < DEVIATIONS:
        return None
    held_out = training + gap.value
    return Evidence(
        f"{name} is wrong for {percent(training)} of its training rows and {percent(held_out)} of the rows that it was not "
        f"trained on (the most frequent class: {percent(base)}): it loses {percent(min(lost, 1.0))} of what it seems to gain.",
        values={
            "training error": training,
            "held-out error": held_out,
            "error of the most frequent class": base,
            "standard error of the difference": gap.error,
        },
    )


def _of_model(subject: Subject) -> tuple[str, float, Mean]:
    """Name of the model, its training error, and what the held-out error is above it."""
    record = record_of(subject.model)
    held_out = mean_of(record.log_posterior.argmax(axis=1) != record.codes, record.weight)
    training = mean_of(*training_errors(subject.model))
    gap = Mean(held_out.value - training.value, float(np.hypot(held_out.error, training.error)))
    return type(subject.model).__name__, training.value, gap


def _of_results(subject: Subject) -> tuple[str, float, Mean]:
    best = rank_results(subject.results)[0]
    folds = by_model(subject.results)[best.model, best.rule]
    gap = mean_over_folds([fold.error - fold.training_error for fold in folds])
    return f"{best.model} (rule {best.rule})", best.training_error, gap


CHECK = Check("CB001", "the model over-fits", look, (MODEL, RESULTS))
