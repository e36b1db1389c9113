"""Tables of numbers, dense or sparse (CSR): the sums that families over counts and flags need.

A sparse table has no missing values, and only `as_dense` makes it dense. In a dense one NaN is a missing value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from calibayes.core.protocols import Array
from calibayes.kernels.numbers import moments

is_sparse: Callable[[Any], bool] = sparse.issparse
"""Whether a table is a SciPy sparse array or matrix. SciPy's annotation would narrow an array to a type without shape."""
MOST_CELLS = 2 * 10**8
"""Largest number of cells that `as_dense` writes out."""
ROUNDING = 1e-12
"""A difference of sums below this share of their weights counts as 0."""


def as_dense(x: Array, copies: int = 1) -> Array:
    """The table as a dense array, for functions that need every cell ``copies`` times in memory.

    Raises ValueError if that would be too many cells.
    """
    if x.shape[0] * x.shape[1] * copies > MOST_CELLS:
        raise ValueError(
            f"{x.shape[0]} rows of {x.shape[1]} columns are too many for a dense array: pass fewer rows at a time"
        )
    return x.toarray() if is_sparse(x) else x


def filled(x: Array) -> Array:
    """The table with 0 for missing values."""
    return x if is_sparse(x) else np.where(np.isnan(x), 0.0, x)


def known_weights(x: Array, weights: Array) -> Array:
    """Sum of the weights (n, k) over the known cells of each column, (k, d)."""
    if is_sparse(x):
        return np.repeat(moments.zeroth(weights)[:, None], x.shape[1], axis=1)
    return moments.first((~np.isnan(x)).astype(np.float64), weights)


def zero_weights(x: Array, weights: Array) -> Array:
    """Sum of the weights (n, k) over the cells that are 0 in a table of 0 and 1, (k, d)."""
    if not is_sparse(x):
        return moments.first(np.where(np.isnan(x), 0.0, 1.0 - x), weights)
    difference = known_weights(x, weights) - moments.first(x, weights)
    return np.where(np.abs(difference) <= ROUNDING * np.abs(weights).sum(axis=0)[:, None], 0.0, difference)


def sum_over_known(x: Array, table: Array) -> Array:
    """Sum of the entries of a table (k, d) over the known cells of each row, (n, k)."""
    if is_sparse(x):
        return np.repeat(table.sum(axis=1)[None], x.shape[0], axis=0)
    return (~np.isnan(x)).astype(np.float64) @ table.T


def columns_where(x: Array, condition: Callable[[Array], Array]) -> Array:
    """Positions of the columns with a cell for which ``condition`` holds, ascending; it must not hold for 0."""
    if is_sparse(x):
        return np.unique(x.indices[condition(x.data)])
    return np.flatnonzero(condition(x).any(axis=0))
