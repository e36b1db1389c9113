"""Contributions of the columns along the paths of rows through trees."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.partitions.byte_columns import ByteColumns
from calibayes.kernels.partitions.forest import Forest, leaf_codes
from calibayes.kernels.partitions.tree import Tree


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


def _leaf_terms(tree: Tree, values: Array, mass: Array, d: int) -> tuple[Array, Array]:
    """The terms of each leaf, (leaves, k, d), and the value of the root, (k,)."""
    node_values, is_leaf = _node_values(tree, values, mass), tree.column < 0
    terms = np.zeros((len(tree.column), len(values), d))
    for node in np.flatnonzero(~is_leaf):
        for child in tree.children[node]:
            terms[child] = terms[node]
            terms[child, :, tree.column[node]] += node_values[child] - node_values[node]
    return terms[is_leaf], node_values[0]


def _node_values(tree: Tree, values: Array, mass: Array) -> Array:
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
