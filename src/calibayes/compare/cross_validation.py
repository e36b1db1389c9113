"""Train and score every model and rule on the same cross-validation folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.compare.models import ENSEMBLES, MODELS
from calibayes.core.protocols import Array
from calibayes.datasets import Dataset
from calibayes.estimators.interface.splits import shuffled_folds

MANY_CLASSES = 20
"""A numeric target with more distinct values, some of them rarer than the number of folds, is taken for a quantity."""


@dataclass(frozen=True)
class FoldResult:
    """Scores of one model with one rule on one fold.

    Attributes
    ----------
    model, rule : str
    error, log_loss : float
        On the held-out rows.
    training_error, soft_error : float
        On the training rows; the soft error is the mean of 1 - p(true class).
    updates : int
        Number of updates of the rule, summed over the members of an ensemble.
    seconds : float
        Duration of the fit.
    notes : tuple of str
        Warnings of the fit.
    """

    model: str
    rule: str
    error: float
    log_loss: float
    training_error: float
    soft_error: float
    updates: int
    seconds: float
    notes: tuple[str, ...] = ()


def stratified_folds(target: Array, count: int, seed: int) -> list[tuple[Array, Array]]:
    """Training and held-out rows of ``count`` stratified folds.

    Raises ValueError if the target has one class, a class with fewer than ``count`` rows, or looks continuous.
    """
    classes, sizes = np.unique(target.astype(str), return_counts=True)
    if target.dtype.kind == "f" and len(classes) > MANY_CLASSES and sizes.min() < count:
        raise ValueError(
            f"the target has {len(classes)} distinct numbers and looks like a quantity; choose a target column of classes"
        )
    if len(classes) < 2:
        raise ValueError(f"the target has only one class, {str(classes[0])!r}; at least two are needed")
    if sizes.min() < count:
        rarest = str(classes[np.argmin(sizes)])
        raise ValueError(
            f"class {rarest!r} has {sizes.min()} rows, fewer than the {count} folds; use fewer folds"
        )
    fold = shuffled_folds(np.searchsorted(classes, target.astype(str)), count, seed)
    return [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(count)]


def compare(
    data: Dataset,
    pairs: Sequence[tuple[str, str]],
    splits: Sequence[tuple[Array, Array]],
    jobs: int | None = None,
) -> Iterator[FoldResult]:
    """Yield the result of each (model, rule) pair on each split."""
    for model, rule in pairs:
        for split in splits:
            yield run_fold(data, model, rule, split, jobs)


def run_fold(
    data: Dataset, model: str, rule: str, split: tuple[Array, Array], jobs: int | None = None
) -> FoldResult:
    """Train on the training rows of a split and score on the held-out rows."""
    training, held_out = (np.isin(np.arange(data.columns.n), rows) for rows in split)
    rule_parameter = {} if model in ENSEMBLES else {"rule": rule}
    estimator = MODELS[model]().set_params(n_jobs=jobs, **rule_parameter)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(data.columns.rows(training), data.target[training])
    seconds = time.perf_counter() - start
    training_scores, held_out_scores = (_scores(estimator, data, rows) for rows in (training, held_out))
    members = getattr(estimator, "models_", {model: estimator}).values()
    histories = [member.history_["error"] for member in members if hasattr(member, "history_")]
    return FoldResult(
        model,
        rule,
        error=held_out_scores["error"],
        log_loss=held_out_scores["log_loss"],
        training_error=training_scores["error"],
        soft_error=training_scores["soft_error"],
        updates=sum(len(errors) - 1 for errors in histories),
        seconds=seconds,
        notes=tuple(str(warning.message) for warning in caught),
    )


def _scores(estimator: Any, data: Dataset, rows: Array) -> Mapping[str, float]:
    """Error, soft error and log loss on these rows."""
    log_posterior = estimator.predict_log_proba(data.columns.rows(rows))
    truth = np.searchsorted(estimator.classes_, data.target[rows])
    true_class = log_posterior[np.arange(len(truth)), truth]
    return {
        "error": float(np.mean(np.argmax(log_posterior, axis=1) != truth)),
        "soft_error": float(np.mean(-np.expm1(true_class))),
        "log_loss": float(-np.mean(true_class)),
    }
