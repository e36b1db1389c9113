"""Grow one tree: split the leaf of the largest gain until there are enough leaves or nothing is gained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_int64, as_type, twin
from calibayes.kernels.partitions.byte_columns import ByteColumns
from calibayes.kernels.partitions.nodes import (
    UNBOUNDED,
    Bounds,
    Split,
    SplitOptions,
    best_split,
    divide,
    log_odds_change,
    node_sums,
)
from calibayes.kernels.threads import most_threads

MANY_CELLS = 2**22
"""Rows times columns from which on threads share the work on a tree."""


class Tree(NamedTuple):
    """Nodes of a tree, the root first; children come after their parents."""

    column: Array
    """Column that a node is split by, -1 for a leaf, (nodes,) int32."""
    most: Array
    """Largest code that goes left, (nodes,) bytes."""
    missing_left: Array
    """Whether missing values go left, (nodes,) booleans."""
    children: Array
    """Left and right child, (nodes, 2) int32; the number of the leaf, twice, for a leaf."""


class GrownTree(NamedTuple):
    """A tree, and what its growth found."""

    tree: Tree
    codes: Array
    """Number of the leaf of each row that it was grown on, -1 for other rows, (n,) int32."""
    bounds: Array
    """`Bounds` of the leaves, (leaves, 2)."""


@dataclass
class _Leaf:
    """A leaf that may be split."""

    node: int
    rows: Array
    sums: Array
    bounds: Bounds
    split: Split


@dataclass
class _Growth:
    """A tree while it grows."""

    columns: ByteColumns
    packed: Array
    options: SplitOptions
    leaves: list[_Leaf] = field(default_factory=list)
    nodes: list[tuple[Split, int, int] | None] = field(default_factory=list)

    def add(self, rows: Array, sums: Array, bounds: Bounds) -> None:
        """A new leaf with its best split."""
        split = best_split(sums, self.columns.first, self.options, bounds)
        self.leaves.append(_Leaf(len(self.nodes), rows, sums, bounds, split))
        self.nodes.append(None)

    def split_best(self) -> bool:
        """Split the leaf of the largest gain, the first of equal ones; False if no split gains."""
        leaf = max(self.leaves, key=lambda leaf: (leaf.split.gain, -leaf.node))
        if leaf.split.gain <= 0:
            return False
        left, right = divide(self.columns, leaf.rows, leaf.split)
        is_left_smaller = len(left) < len(right)
        sums = node_sums(self.columns, left if is_left_smaller else right, self.packed)
        leaf.sums -= sums
        of_left, of_right = (sums, leaf.sums) if is_left_smaller else (leaf.sums, sums)
        self.leaves.remove(leaf)
        self.nodes[leaf.node] = (leaf.split, len(self.nodes), len(self.nodes) + 1)
        below, above = self._child_bounds(leaf, of_left, of_right)
        self.add(left, of_left, below)
        self.add(right, of_right, above)
        return True

    def _child_bounds(self, leaf: _Leaf, left: Array, right: Array) -> tuple[Bounds, Bounds]:
        """Bounds of both children: on either side of the mean of their changes, if the column has a direction."""
        direction = int(self.options.direction[leaf.split.column])
        if not direction:
            return leaf.bounds, leaf.bounds
        codes = self.columns.first[1]
        totals = np.stack([sums[:codes].sum(axis=0) for sums in (left, right)])
        of_left, of_right = np.clip(log_odds_change(totals, self.options.prior), *leaf.bounds)
        middle = float((of_left + of_right) / 2.0)
        lower, upper = Bounds(leaf.bounds.low, middle), Bounds(middle, leaf.bounds.high)
        return (lower, upper) if direction > 0 else (upper, lower)


def native_grow_tree(
    module: Any, columns: ByteColumns, rows: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> Any:
    is_shared = (
        most_threads() > 1 and len(rows) * columns.d >= MANY_CELLS
    )  # threads share the sums of each node
    if is_shared or not columns.d or not packed.shape[1]:
        return NotImplemented
    size = 2 * most_leaves - 1
    column, children = np.empty(size, dtype=np.int32), np.empty((size, 2), dtype=np.int32)
    most, missing_left = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.bool_)
    codes, bounds = np.full(columns.n, -1, dtype=np.int32), np.empty((most_leaves, 2))
    arrays = (column, most, missing_left, children, codes, bounds)
    words, first = columns.in_memory()
    numbers = as_type(rows, np.int32), as_int64(packed)
    nodes = module.grow_tree(words, *numbers, first, *options.in_memory(), most_leaves, *arrays)
    tree = Tree(*(array[:nodes].copy() for array in (column, most, missing_left, children)))
    return GrownTree(tree, codes, bounds[: (nodes + 1) // 2].copy())


@twin(native_grow_tree)
def grow_tree(
    columns: ByteColumns, rows: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> GrownTree:
    """A tree over some rows (int32), given packed residuals and variances of all rows, (n, c)."""
    growth = _Growth(columns, packed, options)
    growth.add(rows, node_sums(columns, rows, packed), UNBOUNDED)
    while len(growth.leaves) < most_leaves and growth.split_best():
        pass
    leaves = sorted(growth.leaves, key=lambda leaf: leaf.node)
    codes = np.full(columns.n, -1, dtype=np.int32)
    for number, leaf in enumerate(leaves):
        codes[leaf.rows] = number
    bounds = np.array([leaf.bounds for leaf in leaves])
    return GrownTree(_tree(growth.nodes, [leaf.node for leaf in leaves]), codes, bounds)


def _tree(nodes: list[tuple[Split, int, int] | None], leaves: list[int]) -> Tree:
    column, children = np.full(len(nodes), -1, dtype=np.int32), np.zeros((len(nodes), 2), dtype=np.int32)
    most, missing_left = np.zeros(len(nodes), dtype=np.uint8), np.zeros(len(nodes), dtype=np.bool_)
    for place, node in enumerate(nodes):
        if node is not None:
            split, *both = node
            column[place], most[place], missing_left[place] = split.column, split.most, split.missing_left
            children[place] = both
    for number, place in enumerate(leaves):
        children[place] = number
    return Tree(column, most, missing_left, children)
