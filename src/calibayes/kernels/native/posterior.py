"""Posteriors: calls of the native twins of `calibayes.kernels.logspace`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.assessment import Assessment, Scores
from calibayes.kernels.native.arrays import floats, is_matrix, whole


def log_normalise(module: Any, log_joint: Array) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    log_posterior, evidence = np.empty(log_joint.shape), np.empty(len(log_joint))
    module.normalise(floats(log_joint), log_posterior, evidence)
    return log_posterior, evidence


def first_largest(module: Any, rows: Array) -> Any:
    if not is_matrix(rows, "f") or rows.shape[1] == 0:
        return NotImplemented
    which = np.empty(len(rows), dtype=np.int64)
    module.largest(floats(rows), which)
    return which


def assess(
    module: Any,
    log_joint: Array,
    labels: Array,
    weight: Array,
    held_out: Array,
    generative: float,
    decided: float = 0.0,
    *,
    weights: bool = True,
) -> Any:
    if not is_matrix(log_joint, "f") or log_joint.shape[1] == 0:
        return NotImplemented
    out = np.empty(log_joint.shape) if weights else None
    objective, train, held = module.assess(
        floats(log_joint), whole(labels), floats(weight), floats(held_out), generative, decided, out
    )
    return Assessment(objective, Scores(*train), Scores(*held), out)
