"""Tables of numbers of events, dense or CSR: sums over cells. Sparse tables want theirs with columns first (Fortran order).

Where a table (k, d) lies so in memory, what belongs to a column is found in one place, and nothing needs to be copied.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from calibayes.core.protocols import Array
from calibayes.kernels import moments
from calibayes.kernels.native import events as native
from calibayes.kernels.native import twin
from calibayes.kernels.sparse import filled, is_sparse
from calibayes.kernels.threads import by_stretch


@twin(native.scores)
def scores(x: Array, table: Array) -> Array:
    """Sum over cells of x times a table's entries (k, d), (n, k)."""
    return np.asarray(x @ table.T)


@twin(native.totals)
def totals(x: Array, weights: Array) -> Array:
    """Weighted sums of the columns, (k, d), for weights (n, k) of any sign."""
    return np.asarray(moments.first(x, weights))


@twin(native.log_factorials)
def log_factorials(x: Array) -> Array:
    """Sum of log x! over the known cells of each row, (n,); by the gamma function where x is not whole."""
    if not is_sparse(x):
        return np.asarray(gammaln(filled(x) + 1.0).sum(axis=1))
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.bincount(rows, gammaln(x.data + 1.0), minlength=x.shape[0])


def logs(table: Array) -> Array:
    """Logs of a table (k, d) of positive numbers, in its memory."""
    by_stretch(lambda part: np.log(table[:, part], out=table[:, part]), table.shape[1], table[:, 0].nbytes)
    return table


def columns_first(table: Array) -> Array:
    """A table (k, d) as sparse tables want it."""
    return np.asfortranarray(table)
