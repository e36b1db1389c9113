"""Densities, posterior, scores and weighted counts of rows of levels in a single pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, row_major, twin
from calibayes.kernels.levels.counts import look_up, native_supports, weighted_counts
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
    if not native_supports(codes, first, "iu") or len(table) == 0:
        return NotImplemented
    counts, class_sums = np.empty(table.shape), np.empty(len(table))
    sums = module.look(
        row_major(codes),
        as_float64(table),
        as_int64(first),
        as_float64(log_prior),
        as_int64(labels),
        as_float64(weight),
        as_float64(held_out),
        generative,
        decided,
        counts,
        class_sums,
    )
    if sums is None:  # too many classes or columns
        return NotImplemented
    objective, train, held = sums
    return FusedSums(Assessment(objective, Scores(*train), Scores(*held), None), counts, class_sums)


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
    """`look_up` of codes (n, d) in a table (k, cells), `assess` and `weighted_counts` without intermediate arrays.

    ``log_prior`` (k,) is added to the log densities; the other arguments are those of `assess`.
    """
    log_joint = log_prior + look_up(codes, table, first)
    assessment = assess(log_joint, labels, weight, held_out, generative, decided)
    weights = assessment.weights
    return FusedSums(
        assessment._replace(weights=None), weighted_counts(codes, weights, first), zeroth(weights)
    )
