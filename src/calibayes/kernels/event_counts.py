"""Tables of event counts (n, d), dense or CSR: sums over cells for multinomial and Poisson families.

For CSR rows, tables (k, d) are fastest in Fortran order: the entries of a column are then contiguous and native code
needs no copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeGuard, cast

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from calibayes.core.protocols import AnyArray, Array
from calibayes.kernels import moments
from calibayes.kernels.dispatch import as_float64, as_int64, as_type, is_matrix, map_ranges, portable, twin

# -- Tables of numbers, dense or sparse (CSR): the sums that families over counts and flags need -------------
#
# A sparse table has no missing values, and only `as_dense` makes it dense. In a dense one NaN is a missing value.

is_sparse: Callable[[Any], TypeGuard[Any]] = cast(Any, sparse.issparse)
"""Whether a table is a SciPy sparse array or matrix. SciPy's annotation would narrow an array to a type without shape."""
MOST_CELLS = 2 * 10**8
"""Largest number of cells that `as_dense` writes out."""
ROUNDING = 1e-12
"""A difference of sums below this share of their weights counts as 0."""


def as_dense(x: Array, copies: int = 1) -> Array:
    """The table as a dense array, for functions that need every cell ``copies`` times in memory.

    Raises ValueError if that would be too many cells.
    """
    n, d = x.shape
    if n * d * copies > MOST_CELLS:
        raise ValueError(f"{n} rows of {d} columns are too many for a dense array: pass fewer rows at a time")
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


def columns_where(x: AnyArray, condition: Callable[[Array], Array]) -> Array:
    """Positions of the columns with a cell for which ``condition`` holds, ascending; it must not hold for 0."""
    if is_sparse(x):
        return np.unique(x.indices[condition(x.data)])
    return np.flatnonzero(condition(x).any(axis=0))


# -- Tables of event counts (n, d), dense or CSR: sums over cells for multinomial and Poisson families -------
#
# For CSR rows, tables (k, d) are fastest in Fortran order: the entries of a column are then contiguous and native code
# needs no copy.

TABULATED = 256
"""log x! of integers below this is read from a table."""


def _native_supports(x: Any) -> bool:
    is_csr = getattr(x, "format", "") == "csr"
    return is_csr and x.indices.dtype in (np.int32, np.int64) and x.data.dtype.kind in "fiub"


def _csr_arrays(x: Any) -> tuple[Array, Array, Array]:
    """Values, column numbers and row starts in the types that native code takes."""
    return as_float64(x.data), as_type(x.indices, x.indices.dtype), as_int64(x.indptr)


def native_scores(module: Any, x: Any, table: Array) -> Any:
    if not _native_supports(x) or not is_matrix(table, "fiub") or table.shape[1] != x.shape[1]:
        return NotImplemented
    out = np.empty((x.shape[0], len(table)))
    module.sparse_sums(*_csr_arrays(x), as_float64(table.T), out)
    return out


def native_totals(module: Any, x: Any, weights: Array) -> Any:
    if not _native_supports(x) or not is_matrix(weights, "fiub") or len(weights) != x.shape[0]:
        return NotImplemented
    out = np.zeros((x.shape[1], weights.shape[1]))
    module.sparse_totals(*_csr_arrays(x), as_float64(weights), out)
    return out.T


def native_log_factorials(module: Any, x: Any) -> Any:
    if not _native_supports(x):
        return NotImplemented
    out = np.empty(x.shape[0])
    module.log_factorials(as_float64(x.data), as_int64(x.indptr), _log_factorial_table(), out)
    return out


@cache
def _log_factorial_table() -> Array:
    return gammaln(np.arange(TABULATED) + 1.0)


@twin(native_scores)
def scores(x: Array, table: Array) -> Array:
    """Products x @ table.T of counts (n, d) with a table (k, d), (n, k)."""
    return np.asarray(x @ table.T)


@twin(native_totals)
def totals(x: Array, weights: Array) -> Array:
    """Weighted sums of the columns of x (n, d), (k, d), for weights (n, k) of any sign."""
    return np.asarray(moments.first(x, weights))


@twin(native_log_factorials)
def log_factorials(x: AnyArray) -> Array:
    """Sum of log x! over the known cells of each row, (n,); log gamma(x + 1) where x is not an integer."""
    if not is_sparse(x):
        return np.asarray(gammaln(filled(x) + 1.0).sum(axis=1))
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.bincount(rows, gammaln(x.data + 1.0), minlength=x.shape[0])


@portable
def log_multinomial_coefficients(x: Array) -> Array:
    """log of (sum of x)! / product of x! over the cells of each row, (n,)."""
    return np.asarray(gammaln(x.sum(axis=1) + 1.0) - log_factorials(x))


@portable
def log_in_place(table: Array) -> Array:
    """Replace the entries of a table (k, d) of positive numbers by their logs, in parallel, and return it."""
    map_ranges(lambda part: np.log(table[:, part], out=table[:, part]), table.shape[1], table[:, 0].nbytes)
    return table


@portable
def fortran_order(table: Array) -> Array:
    """A table (k, d) in Fortran order."""
    return np.asfortranarray(table)
