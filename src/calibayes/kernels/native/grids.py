"""Positions on grids: calls of the native twins of `calibayes.kernels.binned`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import by_row, floats, is_matrix, whole


def _taken(positions: Any, points: Array) -> bool:
    return (
        is_matrix(positions, "f")
        and positions.dtype == np.float64
        and positions.shape[1] > 0
        and points.min() > 1
    )


def position_counts(module: Any, positions: Array, points: Array, weights: Array, first: Array) -> Any:
    if not _taken(positions, points) or not is_matrix(weights, "fiub"):
        return NotImplemented
    out = np.zeros((weights.shape[1], int(first[-1])))
    module.binned_counts(by_row(positions), whole(points), floats(weights), whole(first), out)
    return out


def position_scores(module: Any, positions: Array, points: Array, table: Array, first: Array) -> Any:
    if not _taken(positions, points) or not len(table):
        return NotImplemented
    out = np.empty((len(positions), len(table)))
    module.binned_sums(by_row(positions), whole(points), floats(table), whole(first), out)
    return out
