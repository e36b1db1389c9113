"""Many trees in one set of arrays, and the leaves of rows in all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_array, require_positions
from calibayes.kernels import tree_nodes
from calibayes.kernels.dispatch import as_int64, as_type, native_team, twin
from calibayes.kernels.tree_nodes import Bounds, ByteColumns, Split, SplitOptions

# -- Grow one tree: split the leaf of the largest gain until there are enough leaves or nothing is gained ----
#
# Rows in memory are divided by native code, node by node. Rows in blocks, wherever they lie, are divided in passes over all
# blocks. Both find the same tree, since sums are whole numbers.

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
    bounds: Array
    """`Bounds` of the leaves, (leaves, 2)."""


class SplitRequest(NamedTuple):
    """A node whose rows are to be divided. Nodes are numbered in the order in which they are divided, the root is 0."""

    node: int
    split: Split
    left: int
    right: int
    """Numbers of the new nodes."""
    is_left_summed: bool
    """Whether the sums of the left one are wanted; those of the other one follow by subtraction."""


SplitSums = Callable[[Sequence[SplitRequest]], Array]
"""Divides nodes and returns the sums of one child of each, (m, 2, cells, c): one pass over the rows."""


@dataclass(eq=False)
class _Node:
    """A node of a growing tree: its sums as long as it is not divided, and then its children."""

    number: int
    sums: Array
    bounds: Bounds
    split: Split
    children: tuple[_Node, ...] = ()


class _Replay(NamedTuple):
    """A tree as far as it is known."""

    nodes: list[tuple[_Node, tuple[int, int] | None]]
    """The nodes in the order of the tree, and the places of their children."""
    wanted: list[_Node]
    """Leaves to be divided before the growth can go on; empty if it is over."""


def best_first(
    first: Array, options: SplitOptions, most_leaves: int, sums: Array, split_sums: SplitSums
) -> GrownTree:
    """The tree that splits the leaf of the largest gain, until there are so many leaves or nothing is gained.

    ``sums`` are those of all rows. Leaves that will be split next, as far as one can tell, are divided in one pass: the tree is
    the same as if they were divided one by one, and needs few passes.
    """

    def node(number: int, own: Array, bounds: Bounds) -> _Node:
        return _Node(number, own, bounds, tree_nodes.best_split(own, first, options, bounds))

    root, numbers = node(0, sums, tree_nodes.UNBOUNDED), count(1)
    while (known := _replay(root, most_leaves)).wanted:
        requests = [
            SplitRequest(leaf.number, leaf.split, next(numbers), next(numbers), _is_left_smaller(leaf, first))
            for leaf in known.wanted
        ]
        for leaf, request, own in zip(known.wanted, requests, split_sums(requests), strict=True):
            other = leaf.sums - own
            left, right = (own, other) if request.is_left_summed else (other, own)
            below, above = _child_bounds(leaf, first, options, left, right)
            leaf.children = node(request.left, left, below), node(request.right, right, above)
            leaf.sums = leaf.sums[:, :0]
    return _grown(known.nodes)


def _replay(root: _Node, most_leaves: int) -> _Replay:
    """Split leaf after leaf, that of the largest gain, the first of equal ones; those whose children are unknown are wanted."""
    nodes: list[tuple[_Node, tuple[int, int] | None]] = [(root, None)]
    open_, leaves = [0], 1
    wanted: list[_Node] = []
    while leaves < most_leaves and open_:
        place = max(open_, key=lambda place: (nodes[place][0].split.gain, -place))
        node = nodes[place][0]
        if node.split.gain <= 0:
            break
        open_.remove(place)
        leaves += 1
        if not node.children:
            wanted.append(node)
            continue
        new = len(nodes), len(nodes) + 1
        nodes[place] = node, new
        nodes += [(child, None) for child in node.children]
        open_ += new
    return _Replay(nodes, wanted)


def _is_left_smaller(leaf: _Node, first: Array) -> bool:
    """Whether the left child has less variance, and hence, as a rule, fewer rows."""
    begin, most = int(first[leaf.split.column]), leaf.split.most
    variance = leaf.sums[1, begin : int(first[leaf.split.column + 1])].sum(axis=1)
    left = variance[1 : most + 1].sum() + (variance[0] if leaf.split.missing_left else 0)
    return bool(2 * left < variance.sum())


def _child_bounds(
    leaf: _Node, first: Array, options: SplitOptions, left: Array, right: Array
) -> tuple[Bounds, Bounds]:
    """Bounds of both children: on either side of the mean of their changes, if the column has a direction."""
    direction = int(options.direction[leaf.split.column])
    if not direction:
        return leaf.bounds, leaf.bounds
    totals = np.stack([sums[:, : first[1]].sum(axis=1) for sums in (left, right)], axis=1)
    of_left, of_right = np.clip(tree_nodes.log_odds_change(totals, options.prior), *leaf.bounds)
    middle = float((of_left + of_right) / 2.0)
    lower, upper = Bounds(leaf.bounds.low, middle), Bounds(middle, leaf.bounds.high)
    return (lower, upper) if direction > 0 else (upper, lower)


def _grown(nodes: list[tuple[_Node, tuple[int, int] | None]]) -> GrownTree:
    """The tree of these nodes, its leaves numbered in their order."""
    column, children = np.full(len(nodes), -1, dtype=np.int32), np.zeros((len(nodes), 2), dtype=np.int32)
    most, missing_left = np.zeros(len(nodes), dtype=np.uint8), np.zeros(len(nodes), dtype=np.bool_)
    bounds: list[Bounds] = []
    for place, (node, below) in enumerate(nodes):
        if below is None:
            children[place] = len(bounds)
            bounds.append(node.bounds)
        else:
            split, children[place] = node.split, below
            column[place], most[place], missing_left[place] = split.column, split.most, split.missing_left
    return GrownTree(TreeNodes(column, most, missing_left, children), np.array(bounds))


@dataclass(eq=False)
class DividedRows:
    """Rows by node, with packed residuals (n, c)."""

    packed: Array
    rows: dict[int, Array]
    """Node -> its rows, int32."""

    def sums(self, columns: ByteColumns, node: int) -> Array:
        """Sums over the rows of a node, (2, cells, c)."""
        return tree_nodes.node_sums(columns, self.rows[node], self.packed)

    def divide(self, columns: ByteColumns, request: SplitRequest) -> None:
        """Divide the rows of a node."""
        halves = tree_nodes.divide(columns, self.rows.pop(request.node), request.split)
        self.rows[request.left], self.rows[request.right] = halves

    def split_sums(self, columns: ByteColumns, requests: Sequence[SplitRequest]) -> Array:
        """Divide nodes and return the sums of one child of each, (m, 2, cells, c)."""
        for request in requests:
            self.divide(columns, request)
        summed = [request.left if request.is_left_summed else request.right for request in requests]
        return np.stack([self.sums(columns, node) for node in summed])


def training_rows(held_out: Array) -> Array:
    """The rows where ``held_out`` (n,) is false, int32."""
    return np.flatnonzero(~held_out).astype(np.int32)


def native_grow_tree(
    module: Any, columns: ByteColumns, held_out: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> Any:
    if not columns.d or not packed.shape[1]:
        return NotImplemented
    team = native_team(module, alone=columns.n * columns.d < MANY_CELLS)
    size = 2 * most_leaves - 1
    column, children = np.empty(size, dtype=np.int32), np.empty((size, 2), dtype=np.int32)
    most, missing_left = np.empty(size, dtype=np.uint8), np.empty(size, dtype=np.bool_)
    bounds = np.empty((most_leaves, 2))
    words, first = columns.in_memory()
    numbers = as_type(held_out, np.bool_), as_int64(packed)
    arrays = (column, most, missing_left, children, bounds)
    nodes = module.grow_tree(words, *numbers, first, *options.in_memory(), most_leaves, team, *arrays)
    tree = TreeNodes(*(array[:nodes].copy() for array in (column, most, missing_left, children)))
    return GrownTree(tree, bounds[: (nodes + 1) // 2].copy())


@twin(native_grow_tree)
def grow_tree(
    columns: ByteColumns, held_out: Array, packed: Array, options: SplitOptions, most_leaves: int
) -> GrownTree:
    """`best_first` on the rows that are not held out, given packed residuals and variances (n, c)."""
    rows = DividedRows(packed, {0: training_rows(held_out)})
    split_sums = partial(rows.split_sums, columns)
    return best_first(columns.first, options, most_leaves, rows.sums(columns, 0), split_sums)


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
