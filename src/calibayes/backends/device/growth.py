"""Growth of trees on rows that lie on a device: the steps of `calibayes.kernels.growth_rows`, to the same bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibayes.backends.device.array import Placement
from calibayes.backends.device.tree_rows import DeviceRows, FoundSplit, GivenRows, device_rows
from calibayes.core.protocols import Array
from calibayes.kernels.forests import GrownTree, SplitRequest, TreeNodes, best_first
from calibayes.kernels.growth_rows import FoldRows, GrowthRows, OneBlock, RowMarks
from calibayes.kernels.tree_nodes import UNBOUNDED, SplitOptions, Units

AHEAD = 0.2
"""Nodes whose gain is at least so large a share of that of the next one are divided with it."""


@dataclass(frozen=True, eq=False)
class DeviceBlock(OneBlock):
    """All rows as one block, which is copied to a device for each fold in which trees are grown."""

    place: Placement

    def fold(self, growth: str, fold: int, units: Units) -> FoldRows:
        return DeviceFold(device_rows(self.place, given_rows(self.rows, fold), units), self.rows.first)

    def marked(self, marks: RowMarks) -> DeviceBlock:
        return DeviceBlock(self.rows.marked(marks), self.place)


def given_rows(rows: GrowthRows, fold: int) -> GivenRows:
    """The rows of a fold."""
    held_out, weight = rows.held_out[fold], np.broadcast_to(rows.weight, rows.n)
    words, first = rows.columns
    counted = ~held_out, np.where(held_out, weight, 0.0)
    return GivenRows(words, first, rows.labels, weight, rows.scores(), rows.fractions, *counted)


@dataclass(eq=False)
class DeviceFold:
    """`FoldRows` of rows on a device."""

    rows: DeviceRows
    first: Array

    def grow(self, options: SplitOptions, most_leaves: int) -> GrownTree:
        """A tree. Its splits are found on the device, unless columns have directions."""
        if options.direction.any():
            sums = self.rows.residual_sums()
            return best_first(self.first, options, most_leaves, sums, self.rows.split_sums)
        tree = grown(self.rows, options, most_leaves)
        return GrownTree(tree, np.tile(UNBOUNDED, ((len(tree.column) + 1) // 2, 1)))

    def leaf_sums(self, tree: TreeNodes) -> Array:
        return np.stack(self.rows.leaf_sums(tree))

    def move(self, factors: Array) -> int:
        return self.rows.move(factors)

    def loss(self) -> int:
        return self.rows.loss()


# -- A tree of splits that are found on the device, several nodes at a time: that of one split after the other


@dataclass(eq=False)
class _FoundNode:
    """A node whose best split is known."""

    number: int
    found: FoundSplit
    children: tuple[_FoundNode, ...] = ()

    @property
    def gain(self) -> float:
        return self.found.split.gain


class _Known(NamedTuple):
    """A tree as far as it is known."""

    nodes: list[_FoundNode]
    splits: list[tuple[int, int]]
    """Places of a node and of its first child."""
    wanted: list[_FoundNode]
    """Nodes to be divided next."""

    def tree(self) -> TreeNodes:
        """The tree, its leaves numbered in their order."""
        count = len(self.nodes)
        column, children = np.full(count, -1, dtype=np.int32), np.zeros((count, 2), dtype=np.int32)
        most, missing_left = np.zeros(count, dtype=np.uint8), np.zeros(count, dtype=np.bool_)
        for place, child in self.splits:
            _, column[place], most[place], missing_left[place] = self.nodes[place].found.split
            children[place] = child, child + 1
        children[column < 0] = np.arange((count + 1) // 2)[:, None]
        return TreeNodes(column, most, missing_left, children)


def grown(rows: DeviceRows, options: SplitOptions, most_leaves: int) -> TreeNodes:
    """The tree of `calibayes.kernels.forests.best_first`, without directions of columns."""
    root, count = _FoundNode(0, rows.first_split(options)), 1
    while (known := _replayed(root, most_leaves)).wanted:
        numbers = range(count, count + 2 * len(known.wanted), 2)
        requests = [_request(*pair) for pair in zip(known.wanted, numbers, strict=True)]
        found = rows.child_splits(requests)
        for node, left, *splits in zip(known.wanted, numbers, found[::2], found[1::2], strict=True):
            node.children = _FoundNode(left, splits[0]), _FoundNode(left + 1, splits[1])
        count += len(found)
    return known.tree()


def _request(node: _FoundNode, left: int) -> SplitRequest:
    return SplitRequest(node.number, node.found.split, left, left + 1, node.found.is_left_smaller)


def _replayed(root: _FoundNode, most_leaves: int) -> _Known:
    """Split the leaf of the largest gain, the first of equal ones, again and again; without unknown children it has none.

    Nodes that gain far less than the first one with unknown children are left for later: its children may gain more.
    """
    known = _Known([root], [], [])
    nodes, leaves, count = known.nodes, {0}, 1
    while leaves and count < most_leaves:
        place = min(leaves, key=lambda place: (-nodes[place].gain, place))
        node = nodes[place]
        if node.gain <= (AHEAD * known.wanted[0].gain if known.wanted else 0.0):
            break
        leaves.remove(place)
        count += 1
        if not node.children:
            known.wanted.append(node)
            continue
        known.splits.append((place, len(nodes)))
        leaves |= {len(nodes), len(nodes) + 1}
        nodes += node.children
    return known
