"""Flags: calls of the native twins of `calibayes.kernels.flags`, which are those of levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native import levels
from calibayes.kernels.native.arrays import is_matrix


def flag_counts(module: Any, x: Array, weights: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    found = levels.weighted_counts(module, x, weights, np.arange(0, 2 * x.shape[1] + 1, 2), "f")
    return found if found is NotImplemented else (found[:, ::2], found[:, 1::2])


def flag_scores(module: Any, x: Array, zero: Array, one: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    table = np.stack([zero, one], axis=2).reshape(len(zero), -1)
    return levels.look_up(module, x, table, np.arange(0, table.shape[1] + 1, 2), "f")
