"""Many trees in one set of arrays, and the leaves of rows in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_positions
from calibayes.kernels.dispatch import as_int64, as_type, twin
from calibayes.kernels.partitions.byte_columns import ByteColumns
from calibayes.kernels.partitions.nodes import is_left
from calibayes.kernels.partitions.tree import Tree
from calibayes.kernels.threads import map_row_ranges

MOST_LEAVES = 127
"""Largest number of leaves of a tree: codes of leaves are signed bytes."""

ONE_LEAF = Tree(
    np.full(1, -1, np.int32), np.zeros(1, np.uint8), np.zeros(1, np.bool_), np.zeros((1, 2), np.int32)
)
"""A tree that is not split."""


@dataclass(frozen=True)
class Forest:
    """Trees one after another; nodes as in `Tree`, with children numbered within their tree.

    Attributes
    ----------
    column, most, missing_left, children : arrays
        Of all nodes.
    first : (trees + 1,) int64 array
        First node of each tree, and the number of all nodes.
    """

    column: Array
    most: Array
    missing_left: Array
    children: Array
    first: Array

    def verify(self) -> None:
        """Raises ValueError unless every node leads to later nodes of its tree, down to each leaf once."""
        nodes = len(require_array("column", self.column, (None,), "i"))
        require_array("most", self.most, (nodes,), "u")
        require_array("missing_left", self.missing_left, (nodes,), "b")
        require_array("children", self.children, (nodes, 2), "i")
        first = require_array("first", self.first, (None,), "i")
        types = (self.column.dtype, self.most.dtype, self.children.dtype, first.dtype)
        require(types == (np.int32, np.uint8, np.int32, np.int64), f"arrays of trees have types {types}")
        is_partition = (
            len(first) >= 1 and first[0] == 0 and first[-1] == nodes and (np.diff(first) >= 1).all()
        )
        require(bool(is_partition), "first must be the first nodes of the trees")
        require(bool((self.column >= -1).all()), "column must be -1 for a leaf")
        require(bool((self.most[self.column >= 0] >= 1).all()), "most must be a code from 1 on")
        for tree in self.trees():
            _verify_tree(tree)

    @property
    def count(self) -> int:
        """Number of trees."""
        return len(self.first) - 1

    @property
    def leaves(self) -> tuple[int, ...]:
        """Number of leaves of each tree."""
        return tuple(((np.diff(self.first) + 1) // 2).tolist())

    def trees(self) -> Iterator[Tree]:
        """The trees, one by one."""
        for begin, end in pairwise(self.first):
            parts = (self.column, self.most, self.missing_left, self.children)
            yield Tree(*(array[begin:end] for array in parts))


def _verify_tree(tree: Tree) -> None:
    """Raise ValueError unless this is one tree: every node but the root has one parent, before it."""
    nodes, is_leaf = len(tree.column), tree.column < 0
    children = tree.children[~is_leaf]
    require_positions("children", children.ravel(), nodes)
    later = children > np.flatnonzero(~is_leaf)[:, None]
    require(bool(later.all()), "a node of a tree leads to no later node")
    require(sorted(children.ravel().tolist()) == list(range(1, nodes)), "a node of a tree has not one parent")
    numbers = np.repeat(np.arange(int(is_leaf.sum())), 2).reshape(-1, 2)
    require(bool(np.array_equal(tree.children[is_leaf], numbers)), "leaves must be numbered in order")
    require(len(numbers) <= MOST_LEAVES, f"a tree has more than {MOST_LEAVES} leaves")


def forest_of(trees: Sequence[Tree]) -> Forest:
    """Trees as a forest."""
    sizes = [len(tree.column) for tree in trees]
    none = Tree(*(array[:0] for array in ONE_LEAF))
    column, most, missing_left, children = (np.concatenate(parts) for parts in zip(none, *trees, strict=True))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Forest(column, most, missing_left, children, first)


def native_leaf_codes(module: Any, columns: ByteColumns, forest: Forest) -> Any:
    if not columns.d:
        return NotImplemented
    out = np.empty((columns.n, forest.count), dtype=np.int8)
    arrays = (
        *(as_type(forest.column, np.int32), as_type(forest.most, np.uint8)),
        *(as_type(forest.missing_left, np.bool_), as_type(forest.children, np.int32), as_int64(forest.first)),
    )

    def walk(rows: slice) -> None:
        module.leaf_codes(*columns.rows(rows).in_memory(), *arrays, out[rows])

    map_row_ranges(walk, columns.n, forest.count)
    return out


@twin(native_leaf_codes)
def leaf_codes(columns: ByteColumns, forest: Forest) -> Array:
    """The leaf of each row in each tree, (n, trees) int8."""
    out = np.empty((columns.n, forest.count), dtype=np.int8)
    for number, tree in enumerate(forest.trees()):
        node = np.zeros(columns.n, dtype=np.intp)
        for place, j in enumerate(tree.column):
            here = np.flatnonzero(node == place)
            if j >= 0 and len(here):
                left = is_left(columns.column(j)[here], tree.most[place], tree.missing_left[place])
                node[here] = tree.children[place][np.where(left, 0, 1)]
        out[:, number] = tree.children[node, 0]
    return out
