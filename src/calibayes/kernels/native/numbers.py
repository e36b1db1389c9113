"""Numbers: calls of the native twins of `calibayes.kernels.diagonal` and `calibayes.kernels.spread`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import by_row, floats, is_matrix


def log_density(module: Any, x: Array, mean: Array, variance: Array) -> Any:
    if not is_matrix(x, "f") or not len(mean) or x.shape[1] == 0:
        return NotImplemented
    out = np.empty((len(x), len(mean)))
    module.diagonal_gaussian(by_row(x), floats(mean), floats(variance), out)
    return out


def power_sums(module: Any, x: Array, centre: Array, weights: Array) -> Any:
    if not is_matrix(x, "f") or not is_matrix(weights, "fiub") or x.shape[1] == 0 or weights.shape[1] == 0:
        return NotImplemented
    out = np.empty((3, weights.shape[1], x.shape[1]))
    module.power_sums(by_row(x), floats(centre), floats(weights), out)
    return out[0], out[1], out[2]


def ends(module: Any, x: Array) -> Any:
    if not is_matrix(x, "f") or not x.size:
        return NotImplemented
    return module.ends(by_row(x))
