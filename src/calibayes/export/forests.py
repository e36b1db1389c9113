"""Decision trees over columns of bytes: the leaf of a row in each tree, by nested comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.ordered_bytes import OrderedBytes
from calibayes.export.columns import TableColumn
from calibayes.export.expressions import MISSING, Condition, Constant, Entry, Expression, Once, Where
from calibayes.kernels.partitions.forest import Forest
from calibayes.kernels.partitions.tree import Tree

Encode = Callable[[Encoder, Sequence[TableColumn]], tuple[list[Expression], list[Condition]]]
"""The encoded columns of a table, and conditions under which `predict_proba` would raise an error."""


def byte_columns(
    encoder: OrderedBytes, table: Sequence[TableColumn], encode: Encode
) -> tuple[list[Expression], list[Condition]]:
    """The byte of each column; missing where it is 0, for a missing value or a level that did not occur in training."""
    columns: list[Expression] = [MISSING] * len(encoder.indices)
    if not encoder.places:
        return columns, []
    codes, refused = encode(encoder.inner, table)
    for place, order, code in zip(encoder.places, encoder.orders, codes, strict=True):
        columns[place] = Once(Entry(_without_zero(order), code))
    return columns, refused


def _without_zero(order: Array) -> tuple[float, ...]:
    return tuple(np.where(order > 0, order.astype(np.float64), np.nan).tolist())


def leaves(forest: Forest, columns: Sequence[Expression]) -> list[Expression]:
    """The number of the leaf of a row in each tree."""
    return [Once(_leaf(tree, 0, columns)) for tree in forest.trees()]


def _leaf(tree: Tree, node: int, columns: Sequence[Expression]) -> Expression:
    """The leaf of a row in the subtree of a node. A comparison with a missing byte is false: "otherwise" is its branch."""
    left, right = (int(child) for child in tree.children[node])
    if tree.column[node] < 0:
        return Constant(float(left))
    byte, most = columns[tree.column[node]], Constant(float(tree.most[node]))
    below, above = _leaf(tree, left, columns), _leaf(tree, right, columns)
    return Where(most < byte, above, below) if tree.missing_left[node] else Where(byte <= most, below, above)
