"""Trees over columns of levels: what known cells say about missing ones.

Column j has the log probabilities ``tables[j]`` of its levels given its parent's, (k, levels of the parent, levels),
with one level of the parent for a root (parent -1). A known cell cuts the tree, so only what lies between known cells
is ever summed over. ``order`` has parents before their children.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import draw


class Branches(NamedTuple):
    """A tree and its log probabilities."""

    parents: tuple[int, ...]
    order: tuple[int, ...]
    tables: Sequence[Array]


class Upward(NamedTuple):
    """What known cells say."""

    total: Array
    """Log probability of the known cells of each row, (k, n)."""
    gaps: Sequence[Array]
    """Rows that lack each column."""
    below: dict[int, Array]
    """Log probability of the known cells below a missing one given its level, (k, gaps, levels), where there are any."""


def upward(codes: Array, tree: Branches) -> Upward:
    """Sums over missing cells, from the leaves to the roots."""
    gaps = [np.flatnonzero(column < 0) for column in codes.T]
    found = Upward(np.zeros((len(tree.tables[0]), len(codes))), gaps, {})
    for j in reversed(tree.order):
        table, above = tree.tables[j], _above(codes, tree.parents[j])
        sure, open_ = (np.flatnonzero((codes[:, j] >= 0) & side) for side in (above >= 0, above < 0))
        found.total[:, sure] += table[:, above[sure], codes[sure, j]]
        _pass_on(found, tree, j, open_, table[:, :, codes[open_, j]].transpose(0, 2, 1))
        if j in found.below:
            rows, message = gaps[j], _summed(found.below[j], np.exp(table))
            told = np.flatnonzero(above[rows] >= 0)
            found.total[:, rows[told]] += message[:, told, above[rows[told]]]
            open_ = np.flatnonzero(above[rows] < 0)
            _pass_on(found, tree, j, rows[open_], message[:, open_])
    return found


def _above(codes: Array, parent: int) -> Array:
    """The level of the parent in each row, the only one for a root."""
    return np.zeros(len(codes), dtype=np.intp) if parent < 0 else codes[:, parent]


def _pass_on(found: Upward, tree: Branches, j: int, rows: Array, message: Array) -> None:
    """Tell the missing parent of column j what some rows say, (k, rows, levels of the parent)."""
    if len(rows):
        parent = tree.parents[j]
        shape = (len(found.total), len(found.gaps[parent]), tree.tables[parent].shape[2])
        below = found.below.setdefault(parent, np.zeros(shape))
        below[:, np.searchsorted(found.gaps[parent], rows)] += message


def _summed(below: Array, probability: Array) -> Array:
    """log of the sum over the levels of a missing cell, for each level of its parent, (k, rows, levels above)."""
    top = below.max(axis=2, keepdims=True)
    return np.asarray(np.log(np.exp(below - top) @ np.swapaxes(probability, 1, 2)) + top)


def beliefs(codes: Array, tree: Branches) -> tuple[Sequence[Array], Sequence[Array]]:
    """Rows that lack each column, and the probabilities of its levels there given all known cells, (k, rows, levels)."""
    told = upward(codes, tree)
    found: list[Array] = [np.zeros(0)] * len(tree.parents)
    for j in tree.order:
        rows, probability, parent = told.gaps[j], np.exp(tree.tables[j]), tree.parents[j]
        below = told.below.get(j, np.zeros((len(probability), len(rows), 1)))
        likely = np.exp(below - below.max(axis=2, keepdims=True))
        above = _above(codes, parent)[rows]
        from_above = probability[:, np.maximum(above, 0)]
        if open_ := np.flatnonzero(above < 0).tolist():
            weight = found[parent][:, np.searchsorted(told.gaps[parent], rows[open_])]
            seen = np.broadcast_to(likely[:, open_], (*weight.shape[:2], probability.shape[2]))
            from_above[:, open_] = (weight / (seen @ np.swapaxes(probability, 1, 2))) @ probability
        belief = from_above * likely
        found[j] = belief / belief.sum(axis=2, keepdims=True)
    return told.gaps, found


def sampled(codes: Array, classes: Array, tree: Branches, rng: np.random.Generator) -> Array:
    """The rows with missing cells drawn given the known ones, each from its class."""
    told, drawn = upward(codes, tree), codes.copy()
    for j in tree.order:
        rows = told.gaps[j]
        likely = tree.tables[j][classes[rows], _above(drawn, tree.parents[j])[rows]]
        if j in told.below:
            likely = likely + told.below[j][classes[rows], np.arange(len(rows))]
        if len(rows):
            drawn[rows, j] = draw(np.exp(likely - likely.max(axis=1, keepdims=True)), rng)
    return drawn
