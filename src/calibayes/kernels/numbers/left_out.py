"""Variances of independent columns without each row in turn, as shares of given variances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, is_matrix, row_major, twin

COLUMNS_AT_ONCE = 32
"""Columns whose shares are multiplied: 1e-6 to this power is no underflow, and one logarithm is enough for all."""


class ClassTables(NamedTuple):
    """Numbers of each class and column, (k, d) each; see `left_out_shares`."""

    mean: Array
    scale: Array
    inverse: Array
    least: Array


def native_left_out_shares(module: Any, x: Array, tables: ClassTables, codes: Array, change: Array) -> Any:
    if not is_matrix(x, "f") or not len(tables.mean) or x.shape[1] == 0:
        return NotImplemented
    distance, product = np.empty(len(x)), np.empty((len(x), -(-x.shape[1] // COLUMNS_AT_ONCE)))
    given = [as_float64(table) for table in tables]
    module.left_out_shares(row_major(x), as_int64(codes), *given, as_float64(change), distance, product)
    return distance, product


@twin(native_left_out_shares)
def left_out_shares(x: Array, tables: ClassTables, codes: Array, change: Array) -> tuple[Array, Array]:
    """Sums of z / share over the columns of each row, (n,), and products of the shares of 32 columns each, (n, groups).

    z is (x - mean)^2 times ``scale`` and a share 1 - z plus ``change`` (n,) times ``inverse``, with the numbers of the row's
    class, ``codes`` (n,). The sum is -1 if a share is below ``least``.
    """
    distance, product = np.zeros(len(x)), np.ones((len(x), -(-x.shape[1] // COLUMNS_AT_ONCE)))
    for c, (mean, scale, inverse, least) in enumerate(zip(*tables, strict=True)):
        rows = np.flatnonzero(codes == c)
        z = (x[rows] - mean) ** 2 * scale
        share = 1.0 - z + np.multiply.outer(change[rows], inverse)
        with np.errstate(divide="ignore", invalid="ignore"):
            distance[rows] = np.where((share >= least).all(axis=1), np.sum(z / share, axis=1), -1.0)
        product[rows] = _products(share)
    return distance, product


def _products(share: Array) -> Array:
    """Products of up to so many columns, (n, groups)."""
    starts = range(0, share.shape[1], COLUMNS_AT_ONCE)
    groups = [share[:, start : start + COLUMNS_AT_ONCE] for start in starts]
    return np.stack([_product(group) for group in groups], axis=1) if groups else np.ones((len(share), 0))


def _product(columns: Array) -> Array:
    """The product of each row, (n,), column by column: faster than along the rows."""
    result = columns[:, 0].copy()
    for column in columns.T[1:]:
        result *= column
    return result
