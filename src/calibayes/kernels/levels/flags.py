"""Binary columns: tables of 0 and 1, dense (NaN is a missing value) or CSR."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import is_matrix, twin
from calibayes.kernels.levels import counts
from calibayes.kernels.numbers import events, sparse


def native_flag_counts(module: Any, x: Array, weights: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    sums = counts.native_weighted_counts(module, x, weights, np.arange(0, 2 * x.shape[1] + 1, 2), "f")
    return sums if sums is NotImplemented else (sums[:, ::2], sums[:, 1::2])


def native_flag_scores(module: Any, x: Array, zero: Array, one: Array) -> Any:
    if not is_matrix(x, "f"):
        return NotImplemented
    table = np.stack([zero, one], axis=2).reshape(len(zero), 2 * x.shape[1])
    return counts.native_look_up(module, x, table, np.arange(0, table.shape[1] + 1, 2), "f")


@twin(native_flag_counts)
def flag_counts(x: Array, weights: Array) -> tuple[Array, Array]:
    """Sums of the weights (n, k) over the cells that are 0 and over those that are 1, (k, d) each."""
    return sparse.zero_weights(x, weights), events.totals(sparse.filled(x), weights)


@twin(native_flag_scores)
def flag_scores(x: Array, zero: Array, one: Array) -> Array:
    """Sum over known cells of the entry of table ``zero`` or ``one`` (k, d), according to the cell, (n, k)."""
    return np.asarray(events.scores(sparse.filled(x), one - zero) + sparse.sum_over_known(x, zero))
