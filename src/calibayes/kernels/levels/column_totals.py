"""Rows and weights by class of the values of a column, in one sweep over its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_aligned, as_float64, as_int64, as_type, twin
from calibayes.kernels.levels.ordered_cells import (
    CellCounts,
    CellTree,
    cell_counts,
    cell_weights,
    tree_arrays,
)


class LabeledRows(NamedTuple):
    """Labels and weights of rows."""

    labels: Array
    """Class codes, (n,) int32, negative for a row without a label."""
    weight: Array
    """(n,)"""
    columns: int
    """Number of classes and one: weights of rows without a label are in the last column."""


class CellTotals(NamedTuple):
    """The cells of a tree that have rows."""

    entries: Array
    """Positions among the entries of the tree, ascending, (cells,)."""
    totals: Array
    """Rows, smallest number, largest number, and weights by class of each cell, (cells, 3 + k + 1)."""

    @property
    def weights(self) -> Array:
        """Weights by class, (cells, k + 1)."""
        return self.totals[:, 3:]

    @property
    def counts(self) -> CellCounts:
        """Rows, smallest and largest number, and total weight of each cell."""
        rows, low, high = self.totals[:, :3].T.copy()
        return CellCounts(self.entries, rows.astype(np.int64), low, high, self.weights.sum(axis=1))


class CodeTotals(NamedTuple):
    """Rows (size,) and weights by class (size, k + 1) of codes."""

    rows: Array
    weights: Array


def native_cell_totals(module: Any, x: Array, tree: CellTree, rows: LabeledRows) -> Any:
    size = len(tree.child)
    entries, order = np.empty((2, size), dtype=np.int64)
    totals = np.empty((size, 3 + rows.columns))
    out = entries, order, totals
    count = module.cell_totals(as_float64(x), *tree_arrays(tree), *_row_arrays(rows), *out)
    order = order[:count]
    return CellTotals(entries[order], totals[order])


@twin(native_cell_totals)
def cell_totals(x: Array, tree: CellTree, rows: LabeledRows) -> CellTotals:
    """Rows, smallest and largest number, and weights by class of the cells of x (n,); NaN is in no cell."""
    counts = cell_counts.numpy(x, rows.weight, tree)
    weights = cell_weights.numpy(x, tree, rows.labels, rows.weight, rows.columns)[counts.entries]
    return cells_with(counts, weights)


def cells_with(counts: CellCounts, weights: Array) -> CellTotals:
    """Cells and their weights by class as `CellTotals`."""
    return CellTotals(counts.entries, np.column_stack([counts.rows, counts.low, counts.high, weights]))


def native_united_cells(module: Any, left: CellTotals, right: CellTotals) -> Any:
    room = len(left.entries) + len(right.entries)
    entries, totals = np.empty(room, dtype=np.int64), np.empty((room, left.totals.shape[1]))
    parts = [(as_int64(part.entries), as_float64(part.totals)) for part in (left, right)]
    count = module.united_cells(*parts[0], *parts[1], entries, totals)
    return CellTotals(entries[:count].copy(), totals[:count].copy())


@twin(native_united_cells)
def united_cells(left: CellTotals, right: CellTotals) -> CellTotals:
    """The cells that have rows in either part, with the totals of both."""
    entries = np.union1d(left.entries, right.entries)
    totals = np.zeros((len(entries), left.totals.shape[1]))
    totals[:, 1], totals[:, 2] = np.inf, -np.inf
    for part in (left, right):
        at = np.searchsorted(entries, part.entries)
        totals[at, 0] += part.totals[:, 0]
        totals[at, 1] = np.minimum(totals[at, 1], part.totals[:, 1])
        totals[at, 2] = np.maximum(totals[at, 2], part.totals[:, 2])
        totals[at, 3:] += part.totals[:, 3:]
    return CellTotals(entries, totals)


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
