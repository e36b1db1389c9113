"""Cells of the ordered bits of numbers, divided in at most four passes until none is heavy."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.ordered_cells import (
    CellCounts,
    CellTree,
    cell_counts,
    ordered_bits,
    root_tree,
)

MOST_SHARE = 1024
"""A cell is heavy if it has several distinct numbers and more than one row in so many."""
PARTS = 4
"""A heavy cell is divided into about so many times as many parts as it would need if its rows were evenly spread."""
PASSES = 4
"""Largest number of passes over the rows: the first counts the cells of the root, each further one divides heavy cells."""


def refined(tree: CellTree, counts: CellCounts) -> CellTree | None:
    """The tree whose heavy cells are divided, from their rows, smallest and largest numbers; None if no cell is heavy."""
    total = int(counts.rows.sum())
    heavy = (counts.rows * MOST_SHARE > total) & (counts.low < counts.high)
    if not heavy.any():
        return None
    base = ordered_bits(counts.low[heavy])
    span = ordered_bits(counts.high[heavy]) - base
    parts = -(-PARTS * MOST_SHARE * counts.rows[heavy] // total)
    shift = np.maximum(_bit_length(span) - _bit_length(parts - 1), 0)
    sizes = (span >> shift.astype(np.uint64)).astype(np.int64) + 1
    child = np.append(tree.child, np.full(sizes.sum(), -1, dtype=np.int32))
    child[counts.entries[heavy]] = np.arange(len(tree.base), len(tree.base) + len(base))
    return CellTree(
        np.append(tree.base, base),
        np.append(tree.shift, shift),
        np.append(tree.first, tree.first[-1] + np.cumsum(sizes)),
        child,
    )


def _bit_length(numbers: Array) -> Array:
    """Number of bits of integers from 0 on, as `int.bit_length`."""
    words = numbers.astype(np.uint64)
    high, low = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    lengths = [np.frexp(half.astype(np.float64))[1] for half in (high, low)]
    return np.asarray(np.where(high > 0, 32 + lengths[0], lengths[1]).astype(np.int64))


def divided(x: Array, weight: Array) -> tuple[CellTree, CellCounts]:
    """The cells of numbers in memory, (n,), with row weights, and the tree that tells them apart."""
    tree = root_tree()
    for _ in range(PASSES - 1):
        counts = cell_counts(x, weight, tree)
        further = refined(tree, counts)
        if further is None:
            return tree, counts
        tree = further
    return tree, cell_counts(x, weight, tree)
