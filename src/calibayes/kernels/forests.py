"""Many trees in one set of arrays, and the leaves of rows in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_positions
from calibayes.kernels import tree_nodes
from calibayes.kernels.dispatch import as_int64, as_type, native_team, twin
from calibayes.kernels.tree_nodes import Bounds, ByteColumns, Split, SplitOptions

# -- Grow one tree: split the leaf of the largest gain until there are enough leaves or nothing is gained ----

MANY_CELLS = 2**20
"""Rows times columns from which on threads share the work on a tree."""


class TreeNodes(NamedTuple):
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

    tree: TreeNodes
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
        split = tree_nodes.best_split(sums, self.columns.first, self.options, bounds)
        self.leaves.append(_Leaf(len(self.nodes), rows, sums, bounds, split))
        self.nodes.append(None)

    def split_best(self) -> bool:
        """Split the leaf of the largest gain, the first of equal ones; False if no split gains."""
        leaf = max(self.leaves, key=lambda leaf: (leaf.split.gain, -leaf.node))
        if leaf.split.gain <= 0:
            return False
        left, right = tree_nodes.divide(self.columns, leaf.rows, leaf.split)
        is_left_smaller = len(left) < len(right)
        sums = tree_nodes.node_sums(self.columns, left if is_left_smaller else right, self.packed)
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
        of_left, of_right = np.clip(tree_nodes.log_odds_change(totals, self.options.prior), *leaf.bounds)
        middle = float((of_left + of_right) / 2.0)
        lower, upper = Bounds(leaf.bounds.low, middle), Bounds(middle, leaf.bounds.high)
        return (lower, upper) if direction > 0 else (upper, lower)


def native_grow_tree(
    module: Any, columns: ByteColumns, rows: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> Any:
    if not columns.d or not packed.shape[1]:
        return NotImplemented
    team = native_team(module) if len(rows) * columns.d >= MANY_CELLS else module.Team(1)
    size = 2 * most_leaves - 1
    column, children = np.empty(size, dtype=np.int32), np.empty((size, 2), dtype=np.int32)
    most, missing_left = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.bool_)
    codes, bounds = np.full(columns.n, -1, dtype=np.int32), np.empty((most_leaves, 2))
    arrays = (column, most, missing_left, children, codes, bounds)
    words, first = columns.in_memory()
    numbers = as_type(rows, np.int32), as_int64(packed)
    nodes = module.grow_tree(words, *numbers, first, *options.in_memory(), most_leaves, team, *arrays)
    tree = TreeNodes(*(array[:nodes].copy() for array in (column, most, missing_left, children)))
    return GrownTree(tree, codes, bounds[: (nodes + 1) // 2].copy())


@twin(native_grow_tree)
def grow_tree(
    columns: ByteColumns, rows: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> GrownTree:
    """A tree over some rows (int32), given packed residuals and variances of all rows, (n, c)."""
    growth = _Growth(columns, packed, options)
    growth.add(rows, tree_nodes.node_sums(columns, rows, packed), tree_nodes.UNBOUNDED)
    while len(growth.leaves) < most_leaves and growth.split_best():
        pass
    leaves = sorted(growth.leaves, key=lambda leaf: leaf.node)
    codes = np.full(columns.n, -1, dtype=np.int32)
    for number, leaf in enumerate(leaves):
        codes[leaf.rows] = number
    bounds = np.array([leaf.bounds for leaf in leaves])
    return GrownTree(_tree(growth.nodes, [leaf.node for leaf in leaves]), codes, bounds)


def _tree(nodes: list[tuple[Split, int, int] | None], leaves: list[int]) -> TreeNodes:
    column, children = np.full(len(nodes), -1, dtype=np.int32), np.zeros((len(nodes), 2), dtype=np.int32)
    most, missing_left = np.zeros(len(nodes), dtype=np.uint8), np.zeros(len(nodes), dtype=np.bool_)
    for place, node in enumerate(nodes):
        if node is not None:
            split, *both = node
            column[place], most[place], missing_left[place] = split.column, split.most, split.missing_left
            children[place] = both
    for number, place in enumerate(leaves):
        children[place] = number
    return TreeNodes(column, most, missing_left, children)


# -- Many trees in one set of arrays, and the leaves of rows in all of them ----------------------------------

MOST_LEAVES = 127
"""Largest number of leaves of a tree: codes of leaves are signed bytes."""

ONE_LEAF = TreeNodes(
    np.full(1, -1, np.int32), np.zeros(1, np.uint8), np.zeros(1, np.bool_), np.zeros((1, 2), np.int32)
)
"""A tree that is not split."""


@dataclass(frozen=True)
class Forest:
    """Trees one after another; nodes as in `TreeNodes`, with children numbered within their tree.

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
        types: tuple[Any, ...] = (self.column.dtype, self.most.dtype, self.children.dtype, first.dtype)
        require(types == (np.int32, np.uint8, np.int32, np.int64), f"arrays of trees have types {types}")
        is_partition = len(first) >= 1 and first[0] == 0 and first[-1] == nodes and (np.diff(first) > 0).all()
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

    def trees(self) -> Iterator[TreeNodes]:
        """The trees, one by one."""
        for begin, end in pairwise(self.first):
            parts = (self.column, self.most, self.missing_left, self.children)
            yield TreeNodes(*(array[begin:end] for array in parts))


def _verify_tree(tree: TreeNodes) -> None:
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


def forest_of(trees: Sequence[TreeNodes]) -> Forest:
    """Trees as a forest."""
    sizes = [len(tree.column) for tree in trees]
    none = TreeNodes(*(array[:0] for array in ONE_LEAF))
    column, most, missing_left, children = (np.concatenate(parts) for parts in zip(none, *trees, strict=True))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Forest(column, most, missing_left, children, first)


def native_leaf_codes(module: Any, columns: ByteColumns, forest: Forest) -> Any:
    if not columns.d:
        return NotImplemented
    out = np.empty((columns.n, forest.count), dtype=np.int8)
    column, most = as_type(forest.column, np.int32), as_type(forest.most, np.uint8)
    missing_left, children = as_type(forest.missing_left, np.bool_), as_type(forest.children, np.int32)
    arrays = column, most, missing_left, children, as_int64(forest.first)

    module.leaf_codes(*columns.in_memory(), *arrays, native_team(module), out)
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
                left = tree_nodes.is_left(columns.column(j)[here], tree.most[place], tree.missing_left[place])
                node[here] = tree.children[place][np.where(left, 0, 1)]
        out[:, number] = tree.children[node, 0]
    return out


# -- Contributions of the columns along the paths of rows through trees --------------------------------------


def path_terms(columns: ByteColumns, forest: Forest, values: Array, mass: Array) -> tuple[Array, Array]:
    """What each column contributes to the sum of the values of a row's leaves, (n, k, d), and the value of no column, (k,).

    The value of a node is the average of ``values`` (k, leaves) over its leaves, weighted by ``mass`` (leaves,). A split
    contributes, for its column, the value of the child that the row goes to minus that of the node. The terms of a row
    and the value of no column add up to the sum of the values of its leaves.
    """
    codes, first = leaf_codes(columns, forest), 0
    terms, constant = np.zeros((columns.n, len(values), columns.d)), np.zeros(len(values))
    for tree, leaves in zip(forest.trees(), codes.T, strict=True):
        last = first + (len(tree.column) + 1) // 2
        by_leaf, root = _leaf_terms(tree, values[:, first:last], mass[first:last], columns.d)
        terms += by_leaf[leaves]
        constant += root
        first = last
    return terms, constant


def _leaf_terms(tree: TreeNodes, values: Array, mass: Array, d: int) -> tuple[Array, Array]:
    """The terms of each leaf, (leaves, k, d), and the value of the root, (k,)."""
    node_values, is_leaf = _node_values(tree, values, mass), tree.column < 0
    terms = np.zeros((len(tree.column), len(values), d))
    for node in np.flatnonzero(~is_leaf):
        for child in tree.children[node]:
            terms[child] = terms[node]
            terms[child, :, tree.column[node]] += node_values[child] - node_values[node]
    return terms[is_leaf], node_values[0]


def _node_values(tree: TreeNodes, values: Array, mass: Array) -> Array:
    """Average of the values of the leaves of each node, (nodes, k)."""
    total, weight = np.zeros((len(tree.column), len(values))), np.zeros(len(tree.column))
    share = np.maximum(mass, np.finfo(np.float64).tiny)
    for node in range(len(tree.column) - 1, -1, -1):  # children come after their parents
        left, right = tree.children[node]
        if tree.column[node] < 0:
            total[node], weight[node] = values[:, left] * share[left], share[left]
        else:
            total[node], weight[node] = total[left] + total[right], weight[left] + weight[right]
    return np.asarray(total / weight[:, None])
