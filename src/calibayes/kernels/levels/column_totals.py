"""Rows and weights by class of the values of a column, in one sweep over its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_aligned, as_float64, as_type, twin
from calibayes.kernels.levels.ordered_cells import CellCounts, CellTree, cell_counts, cell_weights, tree_arrays


class LabeledRows(NamedTuple):
    """Labels and weights of rows."""

    labels: Array
    """Class codes, (n,) int32, negative for a row without a label."""
    weight: Array
    """(n,)"""
    columns: int
    """Number of classes and one: weights of rows without a label are in the last column."""


class CellTotals(NamedTuple):
    """The cells of a tree that have rows, and their weights by class (cells, k + 1)."""

    counts: CellCounts
    weights: Array


class CodeTotals(NamedTuple):
    """Rows (size,) and weights by class (size, k + 1) of codes."""

    rows: Array
    weights: Array


def native_cell_totals(module: Any, x: Array, tree: CellTree, rows: LabeledRows) -> Any:
    size = len(tree.child)
    entries, totals = np.empty(size, dtype=np.int64), np.empty((size, 3 + rows.columns))
    count = module.cell_totals(as_float64(x), *tree_arrays(tree), *_row_arrays(rows), entries, totals)
    order = np.argsort(entries[:count])
    totals = totals[order]
    weights = totals[:, 3:].copy()
    low, high = totals[:, 1].copy(), totals[:, 2].copy()
    counts = CellCounts(entries[order], totals[:, 0].astype(np.int64), low, high, weights.sum(axis=1))
    return CellTotals(counts, weights)


@twin(native_cell_totals)
def cell_totals(x: Array, tree: CellTree, rows: LabeledRows) -> CellTotals:
    """Rows, weights by class, smallest and largest number of the cells of x (n,); NaN is in no cell."""
    counts = cell_counts.numpy(x, rows.weight, tree)
    weights = cell_weights.numpy(x, tree, rows.labels, rows.weight, rows.columns)
    return CellTotals(counts, weights[counts.entries])


def native_code_totals(module: Any, codes: Array, first: int, size: int, rows: LabeledRows) -> Any:
    totals = np.zeros((size, 1 + rows.columns))
    codes = as_aligned(np.ascontiguousarray(codes, dtype=codes.dtype.newbyteorder("=")))
    module.add_code_totals(codes, first, *_row_arrays(rows), totals)
    return CodeTotals(totals[:, 0].astype(np.int64), totals[:, 1:].copy())


@twin(native_code_totals)
def code_totals(codes: Array, first: int, size: int, rows: LabeledRows) -> CodeTotals:
    """Rows and weights by class of the codes from ``first`` to ``first + size - 1``; codes (n,) are integers.

    Raises ValueError if there are others.
    """
    if len(codes) and not first <= int(codes.min()) <= int(codes.max()) < first + size:
        raise ValueError("a code or a label is beyond the totals")
    places = (codes - np.asarray(first, dtype=codes.dtype)).astype(np.int64)
    labels = np.where(rows.labels < 0, rows.columns - 1, rows.labels)
    weights = np.bincount(places * rows.columns + labels, rows.weight, size * rows.columns)
    return CodeTotals(np.bincount(places, minlength=size), weights.reshape(size, rows.columns))


def _row_arrays(rows: LabeledRows) -> tuple[Array, Array]:
    return as_type(rows.labels, np.int32), as_float64(rows.weight)
