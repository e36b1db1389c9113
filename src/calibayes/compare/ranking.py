"""Average the fold results of each model and rule, and rank them by held-out error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.compare.cross_validation import FoldResult


@dataclass(frozen=True)
class MeanResult:
    """Means over the folds of one model with one rule, and standard deviations of the held-out scores."""

    model: str
    rule: str
    error: float
    error_spread: float
    log_loss: float
    log_loss_spread: float
    training_error: float
    soft_error: float
    updates: float
    seconds: float


def rank_results(results: Sequence[FoldResult]) -> list[MeanResult]:
    """Mean results by increasing held-out error, ties by log loss."""
    groups: dict[tuple[str, str], list[FoldResult]] = {}
    for result in results:
        groups.setdefault((result.model, result.rule), []).append(result)
    means = [_mean_result(model, rule, group) for (model, rule), group in groups.items()]
    return sorted(means, key=lambda result: (round(result.error, 12), result.log_loss))


def _mean_result(model: str, rule: str, group: Sequence[FoldResult]) -> MeanResult:
    def mean(name: str) -> float:
        return float(np.mean([getattr(result, name) for result in group]))

    def spread(name: str) -> float:
        return float(np.std([getattr(result, name) for result in group]))

    return MeanResult(
        model,
        rule,
        mean("error"),
        spread("error"),
        mean("log_loss"),
        spread("log_loss"),
        mean("training_error"),
        mean("soft_error"),
        mean("updates"),
        mean("seconds"),
    )


def describe_best(ranking: Sequence[MeanResult]) -> str:
    """One sentence: the best model and rule, compared with maximum likelihood of the same model."""
    best = ranking[0]
    sentence = f"Best on held-out rows: {best.model} trained by {best.rule} ({best.error:.1%} error)"
    ml_results = [result for result in ranking if result.model == best.model and result.rule == "ml"]
    if not ml_results or best.rule == "ml":
        return f"{sentence}."
    ml = ml_results[0]
    ml_error = "the same error" if ml.error == best.error else f"{ml.error:.1%} error"
    return (
        f"{sentence}; the same model trained by maximum likelihood: {ml_error}, "
        f"log loss {ml.log_loss:.3f} instead of {best.log_loss:.3f}."
    )
