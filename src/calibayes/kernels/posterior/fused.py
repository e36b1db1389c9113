"""One look at rows of levels: how good a posterior is, and the sums of the weights that follow from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import by_row, floats, twin, whole
from calibayes.kernels.levels.counts import look_up, taken, weighted_counts
from calibayes.kernels.numbers.moments import zeroth
from calibayes.kernels.posterior.logspace import Assessment, FusedSums, Scores, assess


def native_fused_pass(
    module: Any,
    codes: Array,
    table: Array,
    first: Array,
    log_prior: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float,
) -> Any:
    if not taken(codes, first, "iu") or len(table) == 0:
        return NotImplemented
    counts, classes = np.empty(table.shape), np.empty(len(table))
    found = module.look(
        by_row(codes),
        floats(table),
        whole(first),
        floats(log_prior),
        whole(labels),
        floats(weight),
        floats(held_out),
        generative,
        decided,
        counts,
        classes,
    )
    if found is None:
        return NotImplemented
    objective, train, held = found
    return FusedSums(Assessment(objective, Scores(*train), Scores(*held), None), counts, classes)


@twin(native_fused_pass)
def fused_pass(
    codes: Array,
    table: Array,
    first: Array,
    log_prior: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float,
) -> FusedSums:
    """`look_up` of a table (k, cells), `assess` and `weighted_counts` one after the other, without what lies between."""
    log_joint = log_prior + look_up(codes, table, first)
    found = assess(log_joint, labels, weight, held_out, generative, decided)
    weights = found.weights
    return FusedSums(found._replace(weights=None), weighted_counts(codes, weights, first), zeroth(weights))
