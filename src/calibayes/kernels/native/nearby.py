"""Sums of kernels: calls of the native twins of `calibayes.kernels.joint_kernel`."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import floats, is_matrix, whole


def kernel_sums(module: Any, away: Array, weight: Array, ends: Any, scale: float, gaps: Any) -> Any:
    if not is_matrix(away, "f") or away.shape[1] == 0:
        return NotImplemented
    sums, nearest = np.empty((len(gaps), len(away), len(ends) - 1)), np.empty(len(away))
    module.kernel_sums(floats(away), floats(weight), whole(ends), scale, whole(gaps), sums, nearest)
    return sums, nearest
