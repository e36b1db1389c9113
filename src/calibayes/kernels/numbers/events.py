"""Tables of numbers of events, dense or CSR: sums over cells. Sparse tables want theirs with columns first (Fortran order).

Where a table (k, d) lies so in memory, what belongs to a column is found in one place, and nothing needs to be copied.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaln

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import floats, is_matrix, twin, whole
from calibayes.kernels.numbers import moments
from calibayes.kernels.numbers.sparse import filled, is_sparse
from calibayes.kernels.threads import map_row_ranges

SMALL = 256


def _taken(x: Any) -> bool:
    return (
        getattr(x, "format", "") == "csr"
        and x.indices.dtype in (np.int32, np.int64)
        and x.data.dtype.kind in "fiub"
    )


def _parts(x: Any) -> tuple[Array, Array, Array]:
    return floats(x.data), np.ascontiguousarray(x.indices), whole(x.indptr)


def native_scores(module: Any, x: Any, table: Array) -> Any:
    if not _taken(x) or not is_matrix(table, "fiub") or table.shape[1] != x.shape[1]:
        return NotImplemented
    out = np.empty((x.shape[0], len(table)))
    module.sparse_sums(*_parts(x), floats(table.T), out)
    return out


def native_totals(module: Any, x: Any, weights: Array) -> Any:
    if not _taken(x) or not is_matrix(weights, "fiub") or len(weights) != x.shape[0]:
        return NotImplemented
    out = np.zeros((x.shape[1], weights.shape[1]))
    module.sparse_totals(*_parts(x), floats(weights), out)
    return out.T


def native_log_factorials(module: Any, x: Any) -> Any:
    if not _taken(x):
        return NotImplemented
    out = np.empty(x.shape[0])
    module.log_factorials(floats(x.data), whole(x.indptr), _small(), out)
    return out


@cache
def _small() -> Array:
    return gammaln(np.arange(SMALL) + 1.0)


@twin(native_scores)
def scores(x: Array, table: Array) -> Array:
    """Sum over cells of x times a table's entries (k, d), (n, k)."""
    return np.asarray(x @ table.T)


@twin(native_totals)
def totals(x: Array, weights: Array) -> Array:
    """Weighted sums of the columns, (k, d), for weights (n, k) of any sign."""
    return np.asarray(moments.first(x, weights))


@twin(native_log_factorials)
def log_factorials(x: Array) -> Array:
    """Sum of log x! over the known cells of each row, (n,); by the gamma function where x is not whole."""
    if not is_sparse(x):
        return np.asarray(gammaln(filled(x) + 1.0).sum(axis=1))
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.bincount(rows, gammaln(x.data + 1.0), minlength=x.shape[0])


def logs(table: Array) -> Array:
    """Logs of a table (k, d) of positive numbers, in its memory."""
    map_row_ranges(
        lambda part: np.log(table[:, part], out=table[:, part]), table.shape[1], table[:, 0].nbytes
    )
    return table


def columns_first(table: Array) -> Array:
    """A table (k, d) as sparse tables want it."""
    return np.asfortranarray(table)
