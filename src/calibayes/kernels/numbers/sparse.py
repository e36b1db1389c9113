"""Tables of numbers, dense or mostly zero (CSR): the sums over cells that families over counts and flags need.

A sparse table is never made dense, and no cell of it is missing. In a dense one NaN is a missing cell.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from calibayes.core.protocols import Array
from calibayes.kernels.numbers import moments

MOST_CELLS = 2 * 10**8
ROUNDING = 1e-12
"""A difference of sums below this share of the weights in them is rounding."""


def is_sparse(x: Array) -> bool:
    """Whether a table is sparse."""
    return bool(sparse.issparse(x))


def as_dense(x: Array, copies: int = 1) -> Array:
    """The table with every cell written out: only where a few rows are looked at, ``copies`` times as many cells."""
    if x.shape[0] * x.shape[1] * copies > MOST_CELLS:
        raise ValueError(
            f"{x.shape[0]} rows of {x.shape[1]} columns are too many to write out: take fewer rows at a time"
        )
    return x.toarray() if is_sparse(x) else x


def filled(x: Array) -> Array:
    """The cells, 0 where one is missing."""
    return x if is_sparse(x) else np.where(np.isnan(x), 0.0, x)


def known(x: Array, weights: Array) -> Array:
    """Weight of the known cells, (k, d)."""
    if is_sparse(x):
        return np.repeat(moments.zeroth(weights)[:, None], x.shape[1], axis=1)
    return moments.first((~np.isnan(x)).astype(np.float64), weights)


def zeros(x: Array, weights: Array) -> Array:
    """Weight of the known cells that are 0, among cells of 0 and 1, (k, d)."""
    if not is_sparse(x):
        return moments.first(np.where(np.isnan(x), 0.0, 1.0 - x), weights)
    rest = known(x, weights) - moments.first(x, weights)
    return np.where(np.abs(rest) <= ROUNDING * np.abs(weights).sum(axis=0)[:, None], 0.0, rest)


def over_known(x: Array, table: Array) -> Array:
    """Sum of a table's entries (k, d) over the known cells of each row, (n, k)."""
    if is_sparse(x):
        return np.repeat(table.sum(axis=1)[None], x.shape[0], axis=0)
    return (~np.isnan(x)).astype(np.float64) @ table.T


def columns_where(x: Array, condition: Callable[[Array], Array]) -> Array:
    """Columns with a cell that meets a condition, which zero does not meet; ascending positions."""
    if is_sparse(x):
        return np.unique(x.indices[condition(x.data)])
    return np.flatnonzero(condition(x).any(axis=0))
