"""Weights of the members of an ensemble, from their predictions for held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.ensemble.fitted import FREQUENCIES
from calibayes.estimators.ensemble.member import FoldContext, MemberResult
from calibayes.estimators.ensemble.path_stopping import EnsembleLoss, is_lower
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.row_order import unit_weight
from calibayes.kernels.posterior.averaging import log_loss, mix, mixture_weights
from calibayes.posterior import held_out_scores

LEAST_SHARE = 0.4
"""Members below this part of an equal share are dropped, and need not be trained on all rows."""
JEFFREYS = 0.5
"""Pseudo-rows per member of the Dirichlet prior of the weights."""


class Weighting(NamedTuple):
    """Weights of the members, and the held-out scores of the ensemble."""

    weights: dict[str, float]
    log_loss: float
    error: float


def weigh(results: Mapping[str, MemberResult], context: FoldContext) -> Weighting:
    """Weights of all members and of the class frequencies."""
    rows = context.rows
    predictions = np.stack([*(result.out_of_fold for result in results.values()), context.constant])
    log_true = _of_true_class(predictions, rows)
    predicted = ~np.isnan(log_true).any(axis=1)
    weights = sparse_weights(log_true[predicted], rows.weight[predicted], unit_weight(rows))
    average = mix(predictions[:, predicted], weights)
    scores = held_out_scores(average, rows.codes[predicted], rows.weight[predicted])
    return Weighting(dict(zip([*results, FREQUENCIES], weights.tolist(), strict=True)), *scores)


def sparse_weights(log_true: Array, weight: Array, unit: float = 1.0) -> Array:
    """Weights of members, class frequencies last, without members below 40 % of an equal share.

    They maximize the likelihood of the true classes with a Dirichlet(1/2) prior, in rows of weight ``unit``: a few rows
    hardly distinguish good members, and the class frequencies always keep some weight, so that no class is impossible. If
    the ensemble is no better than the class frequencies, these have all the weight.
    """
    weights = mixture_weights(log_true, weight, JEFFREYS * unit)
    used = weights >= LEAST_SHARE / len(weights)
    used[-1] = True
    sparse = np.zeros(len(weights))
    sparse[used] = mixture_weights(log_true[:, used], weight, JEFFREYS * unit)
    frequencies = np.eye(len(weights))[-1]
    is_better = is_lower(log_loss(log_true, sparse, weight), log_loss(log_true, frequencies, weight))
    return sparse if is_better or not weight.any() else frequencies


def loss_with(results: Mapping[str, MemberResult], rows: Rows) -> EnsembleLoss:
    """The held-out loss of the ensemble of these members and a further one, as a function of its predictions."""
    before = [result.out_of_fold for result in results.values()]

    def ensemble_loss(out_of_fold: Array) -> float | None:
        log_true = _of_true_class(np.stack([*before, out_of_fold]), rows)
        predicted = ~np.isnan(log_true).any(axis=1)
        weights = mixture_weights(log_true[predicted], rows.weight[predicted])
        return log_loss(log_true[predicted], weights, rows.weight[predicted])

    return ensemble_loss if before else lambda out_of_fold: None


def _of_true_class(predictions: Array, rows: Rows) -> Array:
    """Log probabilities (members, n, k) of the true class of each row, (n, members)."""
    return np.asarray(predictions[:, np.arange(len(rows.codes)), rows.codes].T)
