"""CB013: the model predicts no better than the class frequencies, in error and in log loss.

On held-out rows, or on the folds of the best model of a comparison, the error is compared with that of always predicting the most
frequent class, and the log loss with that of predicting the class frequencies. A model is reported if neither is lower by more
than 1.64 standard errors (one-sided, 5 %).
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
)
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.core.protocols import Array

DEVIATIONS = 1.64


def look(subject: Subject) -> Evidence | None:
    """Evidence of a model that does not improve on the class frequencies."""
    name, base, error_gain, loss_gain = _of_model(subject) if subject.has_model else _of_results(subject)
    if max(error_gain.deviations, loss_gain.deviations) > DEVIATIONS:
        return None
    return Evidence(
        f"The error of {name} on rows that it was not trained on is {percent(base - error_gain.value)}; always predicting the "
        f"most frequent class gives {percent(base)}. Its log loss is {abs(loss_gain.value):.3f} "
        f"{'above' if loss_gain.value <= 0 else 'below'} that of predicting the class frequencies. Neither is a significant "
        "improvement.",
        values={
            "gain in error": error_gain.value,
            "standard error of the gain in error": error_gain.error,
            "gain in log loss": loss_gain.value,
        },
    )


def _of_model(subject: Subject) -> tuple[str, float, Mean, Mean]:
    """Name of the model, error of the most frequent class, and the gains of the model in error and log loss."""
    record = record_of(subject)
    shares = class_shares(record)
    is_wrong = record.log_posterior.argmax(axis=1) != record.codes
    own = -record.log_posterior[np.arange(len(record.codes)), record.codes]
    error = mean_of((record.codes != shares.argmax()) - 1.0 * is_wrong, record.weight)
    loss = mean_of(-np.log(shares[record.codes]) - np.minimum(own, -np.log(1e-15)), record.weight)
    return type(subject.model).__name__, float(1.0 - shares.max()), error, loss


def _of_results(subject: Subject) -> tuple[str, float, Mean, Mean]:
    name, _, folds = best_of(subject.results)
    entropy = _entropy(subject.class_rows / subject.class_rows.sum())
    error = mean_over_folds([subject.most_frequent_error - fold.error for fold in folds])
    loss = mean_over_folds([entropy - fold.log_loss for fold in folds])
    return name, subject.most_frequent_error, error, loss


def _entropy(shares: Array) -> float:
    known = shares[shares > 0]
    return float(-(known * np.log(known)).sum())


CHECK = Check("CB013", "no better than the most frequent class", look, (MODEL, RESULTS))
