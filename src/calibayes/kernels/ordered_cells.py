"""Columns of numbers as few cells of neighboring numbers: distinct numbers, and cells of their ordered bits.

The bits of a float64 number, those of negative numbers inverted and the sign bit of the others set, are an integer that
ascends with the number. A `CellTree` divides these integers into cells: entry ``(bits - base) >> shift`` of its first
node is a cell, or the number of a further node. Which rows a cell has, and its smallest and largest number, does not
depend on the order of the rows, so that cells counted in parts of a table can be added.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, as_int64, as_type, twin

ROOT_BITS = 16
"""Leading bits that the first node of a tree tells apart: sign, exponent and four bits of the fraction."""
SIGN = np.uint64(2**63)
SORTED_ROWS, FIRST_ROWS = 2**16, 256
"""Up to the first number of rows, sorting is faster than hashing if more than half of the first rows are distinct; up to
twice the second, in any case."""


class CellTree(NamedTuple):
    """Nodes that divide the ordered bits of numbers."""

    base: Array
    """Ordered bits of the smallest number of each node, (nodes,) uint64."""
    shift: Array
    """Number of trailing bits that each node ignores, (nodes,)."""
    first: Array
    """Position of the first entry of each node, and the number of all entries, (nodes + 1,)."""
    child: Array
    """The node that each entry is divided by, (entries,) int32; -1 if the entry is a cell."""


class CellCounts(NamedTuple):
    """The cells that have rows."""

    entries: Array
    """Positions among the entries of a tree, ascending, (cells,)."""
    rows: Array
    """Number of rows of each cell, (cells,) integers."""
    low: Array
    high: Array
    """Smallest and largest number of each cell, (cells,)."""
    weight: Array
    """Total weight of the rows of each cell, (cells,)."""


@cache
def root_tree() -> CellTree:
    """The tree of one node."""
    child = np.full(2**ROOT_BITS, -1, dtype=np.int32)
    child.flags.writeable = False  # it is shared
    return CellTree(
        np.zeros(1, dtype=np.uint64), np.array([64 - ROOT_BITS]), np.array([0, 2**ROOT_BITS]), child
    )


def ordered_bits(x: Array) -> Array:
    """The ordered bits of numbers, as uint64; both zeros are the same."""
    bits = (np.asarray(x, dtype=np.float64) + 0.0).view(np.uint64)
    return np.where(bits >= SIGN, ~bits, bits | SIGN)


def native_distinct_positions(module: Any, x: Array, most: int) -> Any:
    x = as_float64(x)
    is_short = len(x) <= 2 * FIRST_ROWS
    if is_short or (len(x) <= SORTED_ROWS and _is_varied(module, x[:FIRST_ROWS])):
        return distinct_positions.numpy(x, most)
    values, positions = np.empty(most), np.empty(len(x), dtype=np.int64)
    count = module.distinct_positions(x, values, positions)
    if count < 0:
        return None
    order = np.argsort(values[:count])
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    return values[order], ranks[positions]


def _is_varied(module: Any, x: Array) -> bool:
    """Whether more than half of the numbers are distinct."""
    room = np.empty(len(x) // 2), np.empty(len(x), dtype=np.int64)
    return bool(module.distinct_positions(x, *room) < 0)


@twin(native_distinct_positions)
def distinct_positions(x: Array, most: int) -> tuple[Array, Array] | None:
    """Distinct numbers of x (n,), ascending, and the position of each row's number among them; None if more than ``most``.

    x has no missing values.
    """
    values, positions = np.unique(np.asarray(x, dtype=np.float64) + 0.0, return_inverse=True)
    return (values, positions) if len(values) <= most else None


def native_cell_counts(module: Any, x: Array, weight: Array, tree: CellTree) -> Any:
    tallies, entries = np.zeros((len(tree.child), 4)), np.empty(len(tree.child), dtype=np.int64)
    count = module.tally_cells(as_float64(x), as_float64(weight), *tree_arrays(tree), tallies, entries)
    entries = np.sort(entries[:count])
    rows, low, high, weights = tallies[entries].T
    return CellCounts(entries, rows.astype(np.int64), low, high, weights)


@twin(native_cell_counts)
def cell_counts(x: Array, weight: Array, tree: CellTree) -> CellCounts:
    """Rows, weight, smallest and largest number of the cells of x (n,); NaN is in no cell."""
    x = np.asarray(x, dtype=np.float64) + 0.0
    known, size = ~np.isnan(x), len(tree.child)
    cells = cell_numbers(x[known], tree)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, cells, x[known])
    np.maximum.at(high, cells, x[known])
    rows, weights = np.bincount(cells, minlength=size), np.bincount(cells, weight[known], size)
    entries = np.flatnonzero(rows)
    return CellCounts(entries, rows[entries], low[entries], high[entries], weights[entries])


def native_cell_weights(
    module: Any, x: Array, tree: CellTree, labels: Array, weight: Array, columns: int
) -> Any:
    weights = np.zeros((len(tree.child), columns))
    module.weigh_cells(as_float64(x), *tree_arrays(tree), as_int64(labels), as_float64(weight), weights)
    return weights


@twin(native_cell_weights)
def cell_weights(x: Array, tree: CellTree, labels: Array, weight: Array, columns: int) -> Array:
    """Weights of the rows of x (n,) by entry and label, (entries, columns); negative labels are in the last column."""
    known = ~np.isnan(x)
    cells = cell_numbers(np.asarray(x, dtype=np.float64)[known], tree)
    labels = np.where(labels < 0, columns - 1, labels)[known]
    sums = np.bincount(cells * columns + labels, weight[known], minlength=len(tree.child) * columns)
    return sums.reshape(-1, columns)


def cell_numbers(x: Array, tree: CellTree) -> Array:
    """The entry that each number of x (n,), none of them NaN, falls into."""
    bits, node = ordered_bits(x), np.zeros(len(x), dtype=np.int64)
    entry = np.zeros(len(x), dtype=np.int64)
    pending = np.arange(len(x))
    while len(pending):
        at = node[pending]
        place = (bits[pending] - tree.base[at]) >> tree.shift[at].astype(np.uint64)
        last = (tree.first[at + 1] - tree.first[at] - 1).astype(np.uint64)
        entry[pending] = tree.first[at] + np.minimum(place, last).astype(np.int64)
        node[pending] = tree.child[entry[pending]]
        pending = pending[node[pending] >= 0]
    return entry


def tree_arrays(tree: CellTree) -> tuple[Array, ...]:
    """The arrays of a tree, in the types of native code."""
    return (
        as_type(tree.base, np.uint64),
        as_int64(tree.shift),
        as_int64(tree.first),
        as_type(tree.child, np.int32),
    )
