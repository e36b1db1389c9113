"""CB013: the model is no better than predicting the class frequencies, in error and in log loss.

Compared are held-out rows, or folds of the best model of a comparison, with the most frequent class (error) and with the class
frequencies (log loss). Found is a model of which neither is lower by more than 1.64 standard errors (one-sided, 5 %).
"""

from __future__ import annotations

import numpy as np

from calibayes.checks.check import MODEL, RESULTS, Check, Evidence
from calibayes.checks.model_checks.losses import Mean, by_model, mean_of, mean_over_folds, record_of
from calibayes.checks.subject import Subject
from calibayes.checks.text import percent
from calibayes.compare.ranking import rank_results
from calibayes.core.protocols import Array

DEVIATIONS = 1.64


def look(subject: Subject) -> Evidence | None:
    """Evidence of a model that learned nothing that holds for other rows."""
    name, error_gain, loss_gain = _of_model(subject) if subject.has_model else _of_results(subject)
    if max(error_gain.deviations, loss_gain.deviations) > DEVIATIONS:
        return None
    base = subject.most_frequent_error
    return Evidence(
        f"{name} is wrong for {percent(base - error_gain.value)} of the rows that it was not trained on, the most frequent class "
        f"for {percent(base)}; its log loss is {abs(loss_gain.value):.3f} {'above' if loss_gain.value <= 0 else 'below'} that of "
        "the class frequencies. Neither difference shows that it is better.",
        values={
            "gain in error": error_gain.value,
            "its standard error": error_gain.error,
            "gain in log loss": loss_gain.value,
        },
    )


def _of_model(subject: Subject) -> tuple[str, Mean, Mean]:
    """Name of the model, and what it gains in error and log loss."""
    record = record_of(subject.model)
    shares = np.bincount(record.codes, record.weight, minlength=record.log_posterior.shape[1])
    shares = shares / shares.sum()
    is_wrong = record.log_posterior.argmax(axis=1) != record.codes
    own = -record.log_posterior[np.arange(len(record.codes)), record.codes]
    error = mean_of((record.codes != shares.argmax()) - 1.0 * is_wrong, record.weight)
    loss = mean_of(-np.log(shares[record.codes]) - np.minimum(own, -np.log(1e-15)), record.weight)
    return type(subject.model).__name__, error, loss


def _of_results(subject: Subject) -> tuple[str, Mean, Mean]:
    best = rank_results(subject.results)[0]
    folds = by_model(subject.results)[best.model, best.rule]
    entropy = _entropy(subject.class_rows / subject.class_rows.sum())
    error = mean_over_folds([subject.most_frequent_error - fold.error for fold in folds])
    loss = mean_over_folds([entropy - fold.log_loss for fold in folds])
    return f"{best.model} (rule {best.rule})", error, loss


def _entropy(shares: Array) -> float:
    known = shares[shares > 0]
    return float(-(known * np.log(known)).sum())


CHECK = Check("CB013", "no better than the most frequent class", look, (MODEL, RESULTS))
