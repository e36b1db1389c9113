"""Errors of a model on training rows and on held-out rows, and means with standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from calibayes.analysis.held_out import labeled_table
from calibayes.checks.check import Evidence, NotChecked, percent
from calibayes.checks.subject import MODEL, Subject
from calibayes.compare import NO_RULE, FoldResult, MeanResult, by_model, rank_results
from calibayes.core.notices import counted, listed
from calibayes.core.protocols import Array
from calibayes.model.table_inputs import on_numpy
from calibayes.model.training_rows import HeldOut, remembered_rows

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
        name = type(subject.model).__name__
        raise NotChecked(f"{name} has no predictions for rows that it was not trained on (held_out_)")
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


# -- CB002: risk-based calibration (rule "rc") did not improve on maximum likelihood ("ml") on the same folds
#
# A model is reported if neither its mean held-out error nor its mean log loss is lower with "rc" than with "ml", and the gain in
# error is below half a percentage point with 95 % confidence (one-sided upper limit, variance of Nadeau and Bengio 2003).

LEAST_GAIN = 0.005


def find_calibration_gain(subject: Subject) -> Evidence | None:
    """Evidence of models that calibration did not improve."""
    groups = by_model(subject.results)
    models = [model for model, rule in groups if rule == "rc" and (model, "ml") in groups]
    if not models:
        raise NotChecked('needs results of one model with both rules, "ml" and "rc", on the same folds')
    found = [model for model in models if not helps(groups[model, "ml"], groups[model, "rc"])]
    if not found:
        return None
    pairs = [(model, rule) for model in found for rule in ("ml", "rc")]
    errors = {pair: float(np.mean([fold.error for fold in groups[pair]])) for pair in pairs}
    first = found[0]
    return Evidence(
        f"Risk-based calibration (rule 'rc') did not improve {len(found)} of {counted(len(models), 'model')}: {listed(found)}. "
        f"Held-out error of {first}: {percent(errors[first, 'ml'])} with maximum likelihood, "
        f"{percent(errors[first, 'rc'])} with calibration.",
        values={f"error of {model} ({rule})": error for (model, rule), error in errors.items()},
    )


def helps(plain: Sequence[FoldResult], calibrated: Sequence[FoldResult]) -> bool:
    """Whether calibration improved the error or the log loss, or a relevant gain in error cannot be excluded."""
    if len(plain) != len(calibrated):
        raise NotChecked('the rules "ml" and "rc" have different numbers of folds')
    pairs = list(zip(plain, calibrated, strict=True))
    gain = mean_over_folds([before.error - after.error for before, after in pairs])
    loss_gain = np.mean([before.log_loss - after.log_loss for before, after in pairs])
    limit = gain.value + stats.t.ppf(0.95, len(pairs) - 1) * gain.error
    return gain.value > 0 or bool(loss_gain > 0 or limit >= LEAST_GAIN)


# -- CB012: predicted probabilities that do not match the observed frequencies on rows that the model was not trained on
#
# The held-out rows are divided into ten groups of equal size by the probability of their predicted class. In each group, the mean
# probability is compared with the share of correct predictions (Hosmer and Lemeshow 1980), weighted by the sample weights. A model
# is reported if the p-value is below 0.001 and the mean absolute difference (expected calibration error) is 0.05 or more.

GROUPS = 10
LEAST_ROWS = 100
LEVEL = 0.001
LEAST_ERROR = 0.05
LEAST_VARIANCE = 0.05
"""Least variance of the number of correct predictions in a group, so that probabilities near 1 do not divide by zero."""


def find_held_out_probabilities(subject: Subject) -> Evidence | None:
    """Evidence of an overconfident or underconfident model."""
    record = record_of(subject)
    if len(record.codes) < LEAST_ROWS:
        raise NotChecked(f"needs at least {LEAST_ROWS} held-out rows, has {len(record.codes)}")
    confidence = np.exp(record.log_posterior.max(axis=1))
    is_right = record.log_posterior.argmax(axis=1) == record.codes
    p_value, error = calibration_test(confidence, is_right, record.weight)
    if p_value >= LEVEL or error < LEAST_ERROR:
        return None
    predicted, accuracy = (float(np.average(x, weights=record.weight)) for x in (confidence, is_right))
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


# -- CB013: the model predicts no better than the class frequencies, in error and in log loss ----------------
#
# On held-out rows, or on the folds of the best model of a comparison, the error is compared with that of always predicting the most
# frequent class, and the log loss with that of predicting the class frequencies. A model is reported if neither is lower by more
# than 1.64 standard errors (one-sided, 5 %).

DEVIATIONS = 1.64


def find_no_gain(subject: Subject) -> Evidence | None:
    """Evidence of a model that does not improve on the class frequencies."""
    name, base, error_gain, loss_gain = _of_model(subject) if MODEL in subject.given else _of_results(subject)
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
    shares = subject.class_rows[subject.class_rows > 0] / subject.class_rows.sum()
    entropy = float(-(shares * np.log(shares)).sum())
    error = mean_over_folds([subject.most_frequent_error - fold.error for fold in folds])
    loss = mean_over_folds([entropy - fold.log_loss for fold in folds])
    return name, subject.most_frequent_error, error, loss


# -- CB001: the error of the model is much lower on its training rows than on held-out rows ------------------
#
# The gain of a model is the error of always predicting the most frequent class, minus its error on the training rows. Every model
# loses some of its gain on held-out rows. A model is reported if it loses more than half of its gain, at least two percentage points,
# and the difference is more than three standard errors.

LOST_SHARE = 0.5
LEAST_GAP = 0.02
OVERFITTING_DEVIATIONS = 3.0


def find_overfitting(subject: Subject) -> Evidence | None:
    """Evidence about the model or, without one, about the best model of the comparison."""
    examine = _overfitting_of_model if MODEL in subject.given else _overfitting_of_results
    name, base, training, gap = examine(subject)
    lost = gap.value / max(base - training, 1e-12)
    if gap.value < LEAST_GAP or lost < LOST_SHARE or gap.deviations < OVERFITTING_DEVIATIONS:
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


def _overfitting_of_model(subject: Subject) -> tuple[str, float, float, Mean]:
    """Name of the model, error of the most frequent class, training error, and held-out minus training error."""
    record = record_of(subject)
    held_out = mean_of(record.log_posterior.argmax(axis=1) != record.codes, record.weight)
    training = mean_of(*training_errors(subject.model))
    gap = Mean(held_out.value - training.value, float(np.hypot(held_out.error, training.error)))
    return type(subject.model).__name__, float(1.0 - class_shares(record).max()), training.value, gap


def _overfitting_of_results(subject: Subject) -> tuple[str, float, float, Mean]:
    name, best, folds = best_of(subject.results)
    gap = mean_over_folds([fold.error - fold.training_error for fold in folds])
    return name, subject.most_frequent_error, best.training_error, gap
