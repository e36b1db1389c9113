"""Discretization of a column into cells: quantile ranges of numbers, levels otherwise, and one cell for missing values."""

from __future__ import annotations

import numpy as np

from calibayes.checks.columns import Column
from calibayes.core.protocols import Array

RANGES, LEVELS = 32, 1_000
"""Largest number of ranges, and of levels; all further levels share one cell."""


def cells_of(column: Column, chosen: Array, ranges: int = RANGES) -> tuple[Array, int]:
    """The cell of each row, (n,), and the number of cells; the last cell is for missing values.

    Ranges and levels are determined from the rows where ``chosen`` is true.
    """
    numbers = column.numbers
    if numbers is None:
        return _level_cells(column, chosen)
    known = np.isfinite(numbers)
    edges = np.unique(
        np.quantile(numbers[known & chosen], np.arange(1, ranges) / ranges, method="inverted_cdf")
        if (known & chosen).any()
        else np.zeros(0)
    )
    cells = np.where(known, np.searchsorted(edges, numbers, side="left"), len(edges) + 1)
    return cells, len(edges) + 2


def _level_cells(column: Column, chosen: Array) -> tuple[Array, int]:
    rows = np.bincount(column.codes[chosen] + 1, minlength=len(column.levels) + 1)[1:]
    # Ties are broken at random, not by first occurrence: cells must not depend on the order of the rows.
    ties = np.random.default_rng(0).permutation(len(rows))
    kept = np.lexsort((ties, -rows))[:LEVELS]
    places = np.full(len(column.levels) + 1, len(kept))
    places[kept] = np.arange(len(kept))
    places[-1] = len(kept) + 1  # codes of missing values are -1
    return places[column.codes], len(kept) + 2
