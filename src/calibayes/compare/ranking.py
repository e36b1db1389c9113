"""Average the fold results of each model and rule, and rank them by held-out error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.compare.baselines import NO_RULE
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
    """The best result, compared with maximum likelihood of the same model, and with the best of scikit-learn or of ours."""
    best = ranking[0]
    sentence = f"Best on held-out rows: {_named(best)}"
    others = [result for result in ranking if (result.rule == NO_RULE) != (best.rule == NO_RULE)]
    whose = "this package" if best.rule == NO_RULE else "scikit-learn"
    other = f" Best of {whose}: {_named(others[0])}." if others else ""
    return f"{sentence}{_likelihood_clause(best, ranking)}.{other}"


def _named(result: MeanResult) -> str:
    trained = "" if result.rule == NO_RULE else f" trained by {result.rule}"
    return f"{result.model}{trained} ({result.error:.1%} error, log loss {result.log_loss:.3f})"


def _likelihood_clause(best: MeanResult, ranking: Sequence[MeanResult]) -> str:
    """The same model trained by maximum likelihood, if that is another result."""
    found = [result for result in ranking if result.model == best.model and result.rule == "ml"]
    if not found or best.rule == "ml":
        return ""
    error = "the same error" if found[0].error == best.error else f"{found[0].error:.1%} error"
    return f"; the same model trained by maximum likelihood: {error}, log loss {found[0].log_loss:.3f}"
