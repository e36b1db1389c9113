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
    spans = (ordered_bits(counts.high[heavy]) - base).tolist()
    parts = -(-PARTS * MOST_SHARE * counts.rows[heavy] // total)
    shift = [
        max(span.bit_length() - (part - 1).bit_length(), 0)
        for span, part in zip(spans, parts.tolist(), strict=True)
    ]
    sizes = [(span >> bits) + 1 for span, bits in zip(spans, shift, strict=True)]
    child = np.append(tree.child, np.full(sum(sizes), -1, dtype=np.int32))
    child[counts.entries[heavy]] = np.arange(len(tree.base), len(tree.base) + len(base))
    return CellTree(
        np.append(tree.base, base),
        np.append(tree.shift, shift),
        np.append(tree.first, tree.first[-1] + np.cumsum(sizes)),
        child,
    )


def divided(x: Array) -> tuple[CellTree, CellCounts]:
    """The cells of numbers in memory, (n,), and the tree that tells them apart."""
    tree = root_tree()
    for _ in range(PASSES - 1):
        counts = cell_counts(x, tree)
        further = refined(tree, counts)
        if further is None:
            return tree, counts
        tree = further
    return tree, cell_counts(x, tree)
