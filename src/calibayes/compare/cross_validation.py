"""Train and score every model and rule on the same cross-validation folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from calibayes.compare.baselines import BASELINES
from calibayes.compare.models import ENSEMBLES, MODELS
from calibayes.core.protocols import Array
from calibayes.datasets import Dataset
from calibayes.estimators.interface.splits import shuffled_folds
from calibayes.tables.text import counted

MANY_CLASSES = 20
"""A numeric target with more distinct values, some of them rarer than the number of folds, is taken for a quantity."""


@dataclass(frozen=True)
class FoldResult:
    """Scores of one model with one rule on one fold.

    Attributes
    ----------
    model, rule : str
        The rule of a baseline is "-".
    error, log_loss : float
        On the held-out rows.
    training_error, soft_error : float
        On the training rows; the soft error is the mean of 1 - p(true class).
    updates : int
        Number of updates of the rule, summed over the members of an ensemble; 0 for a baseline.
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
            f"class {rarest!r} has {counted(int(sizes.min()), 'row')}, fewer than the {count} folds; use fewer folds"
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
    training, held_out = (np.sort(rows) for rows in split)
    target, frame = np.asarray(data.target), data.data.iloc[training]
    estimator = _estimator(frame, model, rule, jobs)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, _threads(model, jobs):
        warnings.simplefilter("always")
        estimator.fit(frame, target[training])
    seconds = time.perf_counter() - start
    training_scores, held_out_scores = (
        _scores(estimator, data.data.iloc[rows], target[rows]) for rows in (training, held_out)
    )
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


def _estimator(frame: Any, model: str, rule: str, jobs: int | None) -> Any:
    """The untrained model for a data frame of training rows, with its rule and number of threads."""
    if model in BASELINES:
        return BASELINES[model](frame)
    rule_parameter = {} if model in ENSEMBLES else {"rule": rule}
    return MODELS[model]().set_params(n_jobs=jobs, **rule_parameter)


def _threads(model: str, jobs: int | None) -> AbstractContextManager[Any]:
    """So many threads for a baseline, which has no parameter for it."""
    return threadpool_limits(jobs) if model in BASELINES else nullcontext()


def _scores(estimator: Any, frame: Any, target: Array) -> Mapping[str, float]:
    """Error, soft error and log loss on these rows."""
    log_posterior = _log_posterior(estimator, frame)
    truth = np.asarray(np.searchsorted(estimator.classes_, target))
    true_class = log_posterior[np.arange(len(truth)), truth]
    return {
        "error": float(np.mean(np.argmax(log_posterior, axis=1) != truth)),
        "soft_error": float(np.mean(-np.expm1(true_class))),
        "log_loss": float(-np.mean(true_class)),
    }


def _log_posterior(estimator: Any, frame: Any) -> Array:
    """log p(class | x), (n, k); where a classifier has probabilities only, zeros are replaced as in sklearn's log_loss."""
    if hasattr(estimator, "predict_log_proba"):
        return np.asarray(estimator.predict_log_proba(frame))
    return np.log(np.maximum(estimator.predict_proba(frame), np.finfo(np.float64).eps))
