"""Tables of zeros and ones, dense (NaN is a missing cell) or CSR."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels import events, sparse
from calibayes.kernels.native import flags as native
from calibayes.kernels.native import twin


@twin(native.flag_counts)
def flag_counts(x: Array, weights: Array) -> tuple[Array, Array]:
    """Weights (n, k) of the known cells that are 0 and of those that are 1, (k, d) each."""
    return sparse.zeros(x, weights), events.totals(sparse.filled(x), weights)


@twin(native.flag_scores)
def flag_scores(x: Array, zero: Array, one: Array) -> Array:
    """Sum over known cells of one of two tables' entries, (n, k), for tables (k, d)."""
    return np.asarray(events.scores(sparse.filled(x), one - zero) + sparse.over_known(x, zero))
