"""What the tables of a tree borrow, from a prior, from the class as a whole, from neighbouring cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.families.bandwidths import FEWEST, Bandwidth
from calibayes.families.branching import Branching
from calibayes.kernels.counts import offsets
from calibayes.kernels.smoothing import smooth


def borrowed(tree: Branching, per_level: Array, singles: Sequence[Array], back_off: float) -> Array:
    """Pseudo-counts of the tables of a tree, (k, cells).

    Every level has its column's ``per_level`` (d,), shared out over the levels of its parent; under each of those there
    are ``back_off`` rows more, spread as the column's counts in the class are, with the same pseudo-count.
    """
    tables = []
    for parent, above, own, count in zip(tree.parents, tree.above, per_level, singles, strict=True):
        rows = back_off * _shares(count + own) if parent >= 0 else np.zeros(count.shape)
        tables.append(np.repeat(own / above + rows[:, None, :], above, axis=1))
    return tree.joined(tables)


def _shares(count: Array) -> Array:
    total = count.sum(axis=1, keepdims=True)
    return np.where(total > 0, count / np.where(total > 0, total, 1.0), 1.0 / count.shape[1])


def widths(rule: Bandwidth, layout: Layout, singles: Sequence[Array]) -> Array:
    """The bandwidth of each class and column in cells, (k, d); 0 where cells do not lie in order."""
    found = np.zeros((len(layout.classes), len(layout.columns)))
    first = offsets(layout.levels)
    for j, cells in enumerate(layout.ordered):
        if cells >= FEWEST:
            volume = layout.log_volume[first[j] : first[j] + cells]
            count = np.maximum(singles[j][:, :cells], 0.0)
            found[:, j] = rule.cells(count, volume, 2)
    return found


def smoothed(
    tables: Sequence[Array], tree: Branching, bandwidth: Array, ordered: Sequence[int]
) -> list[Array]:
    """The tables (k, levels of the parent, levels), smoothed along cells in order by bandwidths (k, d)."""
    done = []
    for j, (parent, table) in enumerate(zip(tree.parents, tables, strict=True)):
        along = _along(table, bandwidth[:, j], ordered[j])
        if parent >= 0:
            along = np.swapaxes(_along(np.swapaxes(along, 1, 2), bandwidth[:, parent], ordered[parent]), 1, 2)
        done.append(along)
    return done


def _along(table: Array, bandwidth: Array, cells: int) -> Array:
    """The table (k, ..., levels) smoothed over its first cells; never below zero, where rounding might take it."""
    if not bandwidth.any():
        return table
    line = np.maximum(smooth(table[..., :cells], bandwidth[:, None]), 0.0)
    return np.concatenate([line, table[..., cells:]], axis=-1)
