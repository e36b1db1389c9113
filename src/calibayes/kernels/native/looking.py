"""Looks: calls of the native twin of `calibayes.kernels.looking`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.assessment import Assessment, Scores, Seen
from calibayes.kernels.native.arrays import by_row, floats, whole
from calibayes.kernels.native.levels import taken


def look(
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
    return Seen(Assessment(objective, Scores(*train), Scores(*held), None), counts, classes)
