"""Training of the trees that are grown on the members of an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.leaves import OrderedBytes
from calibayes.ensemble.grown_trees import GrownTrees
from calibayes.kernels.posterior import held_out_scores, log_normalize, mixture_weights
from calibayes.kernels.tree_growth import (
    GrownForests,
    GrowthFold,
    GrowthRows,
    GrowthSettings,
    Report,
    by_first_row,
    fold_of,
    grow_forests,
)
from calibayes.kernels.tree_nodes import packed_classes
from calibayes.model.input import Rows
from calibayes.model.splits import unit_weight

SHARE = 0.5
"""Of the members' log posterior in the start of the growth."""
JEFFREYS = 0.5
"""Pseudo-rows per member, or trees, of the Dirichlet prior of the weights."""
LEAST_WEIGHT = 0.5
"""The members' average has a weight beside the trees if it is at least this. The weights are those of held-out rows, whose
predictions are those of one forest, and the average of the forests is better."""
MOST_WORK = 2e10
"""Largest number of sums that splits are chosen from: those of all forests, trees, leaves, bins and classes. They take some
minutes, and growth is limited to fewer trees if there would be more."""
WEAKEST = 0.2
"""Trees of a smaller weight are left out."""


class GrowthTask(NamedTuple):
    """What trees are grown on.

    Attributes
    ----------
    rows : Rows
        All training rows.
    log_members : (n, k) array
        log p(class | x) of the members' average, for each row from members that were not trained on it.
    held_out : sequence of (n,) booleans
        The rows that each forest is not grown on.
    report : callable
        Progress; a true result ends the growth.
    """

    rows: Rows
    log_members: Array
    held_out: Sequence[Array]
    report: Report = lambda rounds, loss: False


class HeldOutScores(NamedTuple):
    """Log loss and error on held-out rows, and log p(class | x), (n, k), NaN for the other rows."""

    log_loss: float
    error: float
    out_of_fold: Array


def grown_trees(task: GrowthTask, settings: GrowthSettings) -> tuple[GrownTrees, HeldOutScores] | None:
    """Trees grown on half of the members' log posterior, and the scores of the whole on held-out rows.

    None if the members alone are better on held-out rows, or no tree gains.
    """
    rows = task.rows
    encoder = OrderedBytes().fit(rows.summary, rows.table.used)
    columns = encoder.encode(rows.table)
    weight = rows.weight / unit_weight(rows)  # priors of trees are in rows
    order = by_first_row(rows.codes, task.log_members.shape[1])
    place = np.argsort(order)
    sample = GrowthRows(columns, place[rows.codes], weight, SHARE * task.log_members[:, order])
    folds = [fold_of(sample, mask) for mask in task.held_out]
    grown = grow_forests(folds, _bounded(settings, folds), report=task.report)
    if not any(part.forest.count for part in grown.forests):
        return None
    out_of_fold = np.full(task.log_members.shape, np.nan)
    for mask, part in zip(task.held_out, grown.forests, strict=True):
        out_of_fold[mask] = log_normalize(part.held_out_scores)[0][:, place]
    of_trees = _weight(task, out_of_fold)
    if of_trees == 0.0:
        return None
    predicted = ~np.isnan(out_of_fold).any(axis=1)
    average = np.full(out_of_fold.shape, np.nan)
    average[predicted] = np.logaddexp(
        np.log(of_trees) + out_of_fold[predicted],
        np.log(max(1.0 - of_trees, np.finfo(np.float64).tiny)) + task.log_members[predicted],
    )
    scores = held_out_scores(average[predicted], rows.codes[predicted], rows.weight[predicted])
    return _as_value(encoder, grown, of_trees, place), HeldOutScores(*scores, average)


def _bounded(settings: GrowthSettings, folds: Sequence[GrowthFold]) -> GrowthSettings:
    """The settings with fewer trees if there are so many bins and classes that growth would take too long."""
    columns, _, _, log_scores = folds[0].training
    sums = int(columns.first[-1]) * packed_classes(log_scores.shape[1])
    most = int(MOST_WORK / max(len(folds) * settings.leaves * sums, 1))
    return replace(settings, trees=min(settings.trees, max(most, 1)))


def _weight(task: GrowthTask, out_of_fold: Array) -> float:
    """The weight of the trees beside the members' average: 1 unless that is at least as good, 0 if it is much better."""
    rows, own = task.rows, np.arange(len(task.rows.codes))
    log_true = np.stack([part[own, rows.codes] for part in (task.log_members, out_of_fold)], axis=1)
    predicted = ~np.isnan(log_true).any(axis=1)
    of_members, of_trees = mixture_weights(
        log_true[predicted], rows.weight[predicted], JEFFREYS * unit_weight(rows)
    )
    if of_trees < WEAKEST:
        return 0.0
    return float(of_trees) if of_members >= LEAST_WEIGHT else 1.0


def _as_value(encoder: OrderedBytes, grown: GrownForests, weight: float, place: Array) -> GrownTrees:
    return GrownTrees(
        share=SHARE,
        weight=weight,
        bytes=encoder,
        forests=tuple(part.forest for part in grown.forests),
        log_factors=tuple(part.log_factor[place] for part in grown.forests),
        masses=tuple(part.mass for part in grown.forests),
        losses=grown.losses,
    )
