"""Errors of a model on training rows and on held-out rows, and means with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from calibayes.checks.check import NotChecked
from calibayes.checks.subject import Subject
from calibayes.compare.baselines import NO_RULE
from calibayes.compare.cross_validation import FoldResult
from calibayes.compare.ranking import MeanResult, rank_results
from calibayes.core.protocols import Array
from calibayes.estimators.interface.device_input import on_numpy
from calibayes.estimators.interface.remembered import remembered_rows
from calibayes.estimators.interface.trust.held_out import HeldOut, labeled_table

TRAINING_ROWS = 10_000
"""Most training rows for which the training error is computed."""


class Mean(NamedTuple):
    """A mean and its standard error."""

    value: float
    error: float

    @property
    def deviations(self) -> float:
        """Standard errors between the mean and zero; infinite if the error is zero and the mean is not."""
        if self.value == 0.0:
            return 0.0
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.divide(self.value, self.error))


def mean_of(values: Array, weight: Array) -> Mean:
    """Weighted mean and its standard error, with the effective number of rows (Kish)."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return Mean(mean, float(np.sqrt(share**2 @ (values - mean) ** 2)))


def mean_over_folds(values: Sequence[float]) -> Mean:
    """Mean over folds, with the standard error of Nadeau and Bengio (2003) for overlapping training rows."""
    k = len(values)
    if k < 2:
        raise NotChecked("needs the results of at least two folds")
    return Mean(float(np.mean(values)), float(np.std(values, ddof=1) * np.sqrt(1 / k + 1 / (k - 1))))


def upper_limit(mean: Mean, folds: int, level: float = 0.95) -> float:
    """One-sided upper confidence limit of a mean over folds."""
    return float(mean.value + stats.t.ppf(level, folds - 1) * mean.error)


def by_model(results: Sequence[FoldResult]) -> dict[tuple[str, str], list[FoldResult]]:
    """(model, rule) -> its results, in the order of the folds."""
    groups: dict[tuple[str, str], list[FoldResult]] = {}
    for result in results:
        groups.setdefault((result.model, result.rule), []).append(result)
    return groups


def best_of(results: Sequence[FoldResult]) -> tuple[str, MeanResult, list[FoldResult]]:
    """Name of the best model of a comparison, its mean results, and its results by fold."""
    best = rank_results(results)[0]
    name = best.model if best.rule == NO_RULE else f"{best.model} (rule {best.rule!r})"
    return name, best, by_model(results)[best.model, best.rule]


def record_of(subject: Subject) -> HeldOut:
    """Predictions for rows that the model was not trained on. Raises NotChecked if there are none."""
    if subject.held_out is not None:
        return subject.held_out
    try:
        record: HeldOut | None = getattr(subject.model, "held_out_", None)
    except (TypeError, ValueError) as error:
        raise NotChecked(str(error)) from error
    if record is None:
        raise NotChecked(
            f"{type(subject.model).__name__} has no predictions for rows that it was not trained on (held_out_)"
        )
    return record


def class_shares(record: HeldOut) -> Array:
    """Weighted frequencies of the classes in the held-out rows, (k,)."""
    mass = np.bincount(record.codes, record.weight, minlength=record.log_posterior.shape[1])
    return np.asarray(mass / mass.sum())


def training_errors(model: Any) -> tuple[Array, Array]:
    """Whether training rows are misclassified, (n,), and their weights. Raises NotChecked if they are not known.

    At most `TRAINING_ROWS` rows are drawn at random.
    """
    try:
        reference = remembered_rows(model, "this check")
    except ValueError as error:
        raise NotChecked(
            f"needs the training rows of {type(model).__name__}, which are known only in the process that fitted it, and only "
            "for classifiers of this package"
        ) from error
    try:
        given = labeled_table(model, *reference, reset=False)
    except (TypeError, ValueError) as error:
        raise NotChecked(f"the training rows of the model cannot be read again: {error}") from error
    drawn = np.random.default_rng(0).permutation(given.table.n) < TRAINING_ROWS
    given = given.only(drawn & (given.codes >= 0))
    log_posterior = np.asarray(on_numpy(model.predict_log_proba(given.table)))
    return log_posterior.argmax(axis=1) != given.codes, given.weight
