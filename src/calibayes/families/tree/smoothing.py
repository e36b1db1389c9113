"""What the tables of a tree borrow, from a prior, from the class as a whole, from neighboring cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibayes.core.protocols import Array, Layout
from calibayes.families.kernel.bandwidths import FEWEST, Bandwidth
from calibayes.families.tree.branching import Branching
from calibayes.kernels.levels.counts import offsets
from calibayes.kernels.levels.smoothing import smoothing_matrices


def borrowed(tree: Branching, per_level: Array, singles: Sequence[Array], back_off: float) -> Array:
    """Pseudo-counts of the tables of a tree, (k, cells).

    AllEdges level has its column's ``per_level`` (d,), shared out over the levels of its parent; under each of those there
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


def kernels(tree: Branching, bandwidth: Array, ordered: Sequence[int]) -> list[Array | None]:
    """What each level of a column gives to each other, (k, levels, levels) a column, for bandwidths (k, d).

    Levels that lie in no order keep what they have. None for a column in which all do.
    """
    return [
        _kernel(own, cells, levels) if own.any() else None
        for own, cells, levels in zip(bandwidth.T, ordered, tree.levels, strict=True)
    ]


def _kernel(bandwidth: Array, cells: int, levels: int) -> Array:
    found = np.repeat(np.eye(levels)[None], len(bandwidth), axis=0)
    found[:, :cells, :cells] = smoothing_matrices(bandwidth, np.full(len(bandwidth), cells))
    return found


def smoothed(tables: Sequence[Array], tree: Branching, kernel: Sequence[Array | None]) -> list[Array]:
    """The tables (k, levels of the parent, levels), smoothed along both by the kernels of their columns."""
    done = []
    for parent, table, own in zip(tree.parents, tables, kernel, strict=True):
        along = table if own is None else np.matmul(table, own)
        above = None if parent < 0 else kernel[parent]
        done.append(along if above is None else np.matmul(np.swapaxes(above, 1, 2), along))
    return done
