"""Which pairs to keep, and at what cost, by the loss of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.log_density.densities import Announce
from calibayes.estimators.log_density.losses import Loss, decided
from calibayes.estimators.log_density.reduction import narrowed

Splits = Sequence[tuple[Array, Array]]
"""Positions of training and of held-out rows."""


@dataclass(frozen=True)
class Scoring:
    """What is least for the best choice: a loss of each held-out row, averaged with or without weights of classes."""

    losses: Callable[[Loss, Array, Array], Array]
    balanced: bool = False

    def weights(self, codes: Array, weights: Array) -> Array:
        mass = np.bincount(codes, weights)
        return weights / mass[codes] if self.balanced else weights


def _own(loss: Loss, scores: Array, codes: Array) -> Array:
    return loss.of_rows(scores, codes)


def _error(loss: Loss, scores: Array, codes: Array) -> Array:
    return (decided(scores) != codes).astype(np.float64)


SCORINGS: dict[str, Scoring] = {
    "loss": Scoring(_own),
    "error": Scoring(_error),
    "balanced_error": Scoring(_error, balanced=True),
}
"""Name -> scoring. "loss" is the log loss where there are probabilities, else the error."""


class Sheet(NamedTuple):
    """Standardized features of some rows, the columns that each candidate uses, and splits of the rows."""

    features: Array
    codes: Array
    weights: Array
    candidates: Sequence[Array]
    splits: Splits


def held_out_losses(
    sheets: Sequence[Sheet], costs: Sequence[float], k: int, judge: tuple[Loss, Scoring], announce: Announce
) -> Array:
    """Mean loss of held-out rows for each candidate and cost, (candidates, costs)."""
    total = np.zeros((len(sheets[0].candidates), len(costs)))
    steps = [(sheet, number) for sheet in sheets for number in range(len(total))]
    for step, (sheet, number) in enumerate(steps):
        total[number] += _of_candidate(sheet, sheet.candidates[number], costs, k, *judge)
        announce("selections of pairs, held-out loss of", step + 1, len(steps))
    return total / sum(len(sheet.splits) for sheet in sheets)


def _of_candidate(
    sheet: Sheet, columns: Array, costs: Sequence[float], k: int, loss: Loss, scoring: Scoring
) -> Array:
    features, _ = narrowed(sheet.features[:, columns], loss)
    total = np.zeros(len(costs))
    for train, test in sheet.splits:
        problem = (features[train], sheet.codes[train], k, sheet.weights[train])
        weights = scoring.weights(sheet.codes[test], sheet.weights[test])
        for place, cost in enumerate(costs):
            scores = loss.solve(problem, cost).scores(features[test])
            total[place] += weights @ scoring.losses(loss, scores, sheet.codes[test]) / weights.sum()
    return total
