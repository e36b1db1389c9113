"""Sparse rows: calls of the native twins of `calibayes.kernels.events`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import gammaln

from calibayes.core.protocols import Array
from calibayes.kernels.native.arrays import floats, is_matrix, whole

SMALL = 256


def _taken(x: Any) -> bool:
    return (
        getattr(x, "format", "") == "csr"
        and x.indices.dtype in (np.int32, np.int64)
        and x.data.dtype.kind in "fiub"
    )


def _parts(x: Any) -> tuple[Array, Array, Array]:
    return floats(x.data), np.ascontiguousarray(x.indices), whole(x.indptr)


def scores(module: Any, x: Any, table: Array) -> Any:
    if not _taken(x) or not is_matrix(table, "fiub") or table.shape[1] != x.shape[1]:
        return NotImplemented
    out = np.empty((x.shape[0], len(table)))
    module.sparse_sums(*_parts(x), floats(table.T), out)
    return out


def totals(module: Any, x: Any, weights: Array) -> Any:
    if not _taken(x) or not is_matrix(weights, "fiub") or len(weights) != x.shape[0]:
        return NotImplemented
    out = np.zeros((x.shape[1], weights.shape[1]))
    module.sparse_totals(*_parts(x), floats(weights), out)
    return out.T


def log_factorials(module: Any, x: Any) -> Any:
    if not _taken(x):
        return NotImplemented
    out = np.empty(x.shape[0])
    module.log_factorials(floats(x.data), whole(x.indptr), _small(), out)
    return out


@cache
def _small() -> Array:
    return gammaln(np.arange(SMALL) + 1.0)
