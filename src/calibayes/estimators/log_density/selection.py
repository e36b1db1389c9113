"""Choice of the pairs of columns and of the cost by the loss of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import WHOLE
from calibayes.estimators.interface.splits import held_out_masks
from calibayes.estimators.log_density.losses import Loss, wrong_classes
from calibayes.estimators.log_density.reduction import reduce_features
from calibayes.estimators.log_density.report import Report

Split = tuple[Array, Array]
"""Positions of training rows and of held-out rows."""


@dataclass(frozen=True)
class Scoring:
    """A mean loss of held-out rows, to be minimized; ``balanced`` gives all classes the same weight."""

    row_losses: Callable[[Loss, Array, Array], Array]
    balanced: bool = False

    def row_weights(self, codes: Array, weights: Array) -> Array:
        """Weights of rows in the mean, (n,)."""
        mass = np.bincount(codes, weights)
        return weights / mass[codes] if self.balanced else weights


def _model_loss(loss: Loss, scores: Array, codes: Array) -> Array:
    return loss.row_losses(scores, codes)


def _error(loss: Loss, scores: Array, codes: Array) -> Array:
    return wrong_classes(scores, codes)


SCORINGS: dict[str, Scoring] = {
    "loss": Scoring(_model_loss),
    "error": Scoring(_error),
    "balanced_error": Scoring(_error, balanced=True),
}
"""Name -> scoring. "loss" is the log loss if there are probabilities, else the error."""


class SelectionData(NamedTuple):
    """Rows that candidates are compared on."""

    features: Array
    """Standardized features of all candidates, (n, p)."""
    codes: Array
    weights: Array
    candidates: Sequence[Array]
    """Positions of the features of each candidate."""
    splits: Sequence[Split]


def cross_validation_splits(cv: Any, rows: Rows, n: int, seed: int) -> list[Split]:
    """Training and held-out positions among the rows; splitters split the n rows that were passed.

    Raises ValueError if a class has one row only, or if a split has no training row of some class or no held-out row.
    """
    counts = np.bincount(rows.codes)
    if isinstance(cv, WHOLE) and counts.min() < 2:
        raise ValueError(
            "a class has one row only (n_samples = 1), so pairs and cost cannot be chosen by cross-validation: "
            "give a selection with one candidate and one C"
        )
    masks = held_out_masks(cv, rows, n, seed)
    for mask in masks:
        if not np.bincount(rows.codes[~mask], minlength=len(counts)).all() or not mask.any():
            raise ValueError(
                f"cv={cv!r} has a split without training rows of some class or without held-out rows"
            )
    return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]


def held_out_losses(
    data_sets: Sequence[SelectionData],
    costs: Sequence[float],
    k: int,
    criterion: tuple[Loss, Scoring],
    report: Report,
) -> Array:
    """Mean loss of held-out rows for each candidate and cost, (candidates, costs)."""
    total = np.zeros((len(data_sets[0].candidates), len(costs)))
    steps = [(data, number) for data in data_sets for number in range(len(total))]
    for step, (data, number) in enumerate(steps):
        total[number] += _candidate_losses(data, data.candidates[number], costs, k, *criterion)
        report("held-out losses of selections of pairs", step + 1, len(steps))
    return total / sum(len(data.splits) for data in data_sets)


def _candidate_losses(
    data: SelectionData, positions: Array, costs: Sequence[float], k: int, loss: Loss, scoring: Scoring
) -> Array:
    """Mean held-out losses of one candidate, summed over the splits, (costs,)."""
    features, _ = reduce_features(data.features[:, positions], loss)
    total = np.zeros(len(costs))
    for train, test in data.splits:
        problem = (features[train], data.codes[train], k, data.weights[train])
        weights = scoring.row_weights(data.codes[test], data.weights[test])
        for place, cost in enumerate(costs):
            scores = loss.solve(problem, cost).scores(features[test])
            total[place] += weights @ scoring.row_losses(loss, scores, data.codes[test]) / weights.sum()
    return total
