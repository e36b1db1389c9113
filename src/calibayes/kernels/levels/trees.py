"""Belief propagation in trees over columns of levels: sums over missing values, posteriors and samples of them.

Column j has a table of log probabilities of its levels given those of its parent, (k, parent's levels, levels); a root
(parent -1) has one row. Known values separate the tree, so only the missing ones between known ones are summed over.
Codes (n, d) are negative where missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.counts import draw


class TreeTables(NamedTuple):
    """A tree over d columns and its conditional log probabilities."""

    parents: tuple[int, ...]
    order: tuple[int, ...]
    """All columns, parents before their children."""
    tables: Sequence[Array]


class UpwardPass(NamedTuple):
    """Result of the pass from the leaves to the roots."""

    total: Array
    """Log probability of the known cells of each row, (k, n)."""
    missing: Sequence[Array]
    """For each column, the positions of the rows in which it is missing."""
    below: dict[int, Array]
    """Column -> log probability of the known cells below it given its level, (k, missing, levels); absent if none."""


def upward_pass(codes: Array, tree: TreeTables) -> UpwardPass:
    """Sum over missing values, from the leaves to the roots."""
    missing = [np.flatnonzero(column < 0) for column in codes.T]
    result = UpwardPass(np.zeros((len(tree.tables[0]), len(codes))), missing, {})
    for j in reversed(tree.order):
        table, parent_codes = tree.tables[j], _parent_codes(codes, tree.parents[j])
        parent_known, parent_missing = (
            np.flatnonzero((codes[:, j] >= 0) & side) for side in (parent_codes >= 0, parent_codes < 0)
        )
        result.total[:, parent_known] += table[:, parent_codes[parent_known], codes[parent_known, j]]
        _add_message(
            result, tree, j, parent_missing, table[:, :, codes[parent_missing, j]].transpose(0, 2, 1)
        )
        if j in result.below:
            rows, message = missing[j], _log_sum(result.below[j], np.exp(table))
            parent_known = np.flatnonzero(parent_codes[rows] >= 0)
            result.total[:, rows[parent_known]] += message[:, parent_known, parent_codes[rows[parent_known]]]
            parent_missing = np.flatnonzero(parent_codes[rows] < 0)
            _add_message(result, tree, j, rows[parent_missing], message[:, parent_missing])
    return result


def _parent_codes(codes: Array, parent: int) -> Array:
    """The level of the parent in each row, (n,); 0 for a root."""
    return np.zeros(len(codes), dtype=np.intp) if parent < 0 else codes[:, parent]


def _add_message(result: UpwardPass, tree: TreeTables, j: int, rows: Array, message: Array) -> None:
    """Add a message (k, rows, parent's levels) from column j to its parent, which is missing in these rows."""
    if len(rows):
        parent = tree.parents[j]
        shape = (len(result.total), len(result.missing[parent]), tree.tables[parent].shape[2])
        below = result.below.setdefault(parent, np.zeros(shape))
        below[:, np.searchsorted(result.missing[parent], rows)] += message


def _log_sum(below: Array, probability: Array) -> Array:
    """log of the sum over the levels of a missing value, for each level of its parent, (k, rows, parent's levels)."""
    top = below.max(axis=2, keepdims=True)
    return np.asarray(np.log(np.exp(below - top) @ np.swapaxes(probability, 1, 2)) + top)


def beliefs(codes: Array, tree: TreeTables) -> tuple[Sequence[Array], Sequence[Array]]:
    """For each column, the rows in which it is missing and the posterior of its levels there, (k, rows, levels).

    The posterior is given all known cells of the row.
    """
    passed = upward_pass(codes, tree)
    posteriors: list[Array] = [np.zeros(0)] * len(tree.parents)
    for j in tree.order:
        rows, probability, parent = passed.missing[j], np.exp(tree.tables[j]), tree.parents[j]
        below = passed.below.get(j, np.zeros((len(probability), len(rows), 1)))
        likelihood = np.exp(below - below.max(axis=2, keepdims=True))
        parent_codes = _parent_codes(codes, parent)[rows]
        from_parent = probability[:, np.maximum(parent_codes, 0)]
        if parent_missing := np.flatnonzero(parent_codes < 0).tolist():
            belief = posteriors[parent][:, np.searchsorted(passed.missing[parent], rows[parent_missing])]
            # The parent's posterior contains the message of this column, which is divided out.
            message = np.broadcast_to(
                likelihood[:, parent_missing], (*belief.shape[:2], probability.shape[2])
            ) @ np.swapaxes(probability, 1, 2)
            from_parent[:, parent_missing] = (belief / message) @ probability
        joint = from_parent * likelihood
        posteriors[j] = joint / joint.sum(axis=2, keepdims=True)
    return passed.missing, posteriors


def draw_missing(codes: Array, classes: Array, tree: TreeTables, rng: np.random.Generator) -> Array:
    """The rows with missing values drawn given the known ones and the class (n,) of each row, (n, d)."""
    passed, complete = upward_pass(codes, tree), codes.copy()
    for j in tree.order:
        rows = passed.missing[j]
        log_weight = tree.tables[j][classes[rows], _parent_codes(complete, tree.parents[j])[rows]]
        if j in passed.below:
            log_weight = log_weight + passed.below[j][classes[rows], np.arange(len(rows))]
        if len(rows):
            complete[rows, j] = draw(np.exp(log_weight - log_weight.max(axis=1, keepdims=True)), rng)
    return complete
