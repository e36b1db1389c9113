"""The summary of one column: its known values in ascending order, in cells, with rows and weights of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.distinct_sample import DistinctSample
from calibayes.kernels.levels.ordered_cells import CellCounts
from calibayes.tables.summaries.distinct_estimates import distinct_estimates

MOST_DISTINCT = 2**16
"""Distinct numbers of a column up to which each is a cell of its own."""
MOST_SAMPLED = 2**12
"""Distinct numbers of a column with more, by which the number of them in each cell is estimated."""


@dataclass(frozen=True)
class ColumnSummary:
    """The known values of a column, ascending, in cells of neighboring values.

    A column with at most `MOST_DISTINCT` distinct values has a cell for each; a column of text has one for each in any
    case. A column with more distinct numbers has cells of the ordered bits of its numbers, which are divided until no
    cell with several distinct numbers has more than a 1024th of the rows (see `calibayes.tables.summaries.cells`).
    Neither the order of the rows nor their division into blocks changes a cell.
    """

    low: Array
    """Smallest value of each cell, (cells,): float64 for numbers, otherwise of the type of the column."""
    high: Array
    """Largest value of each cell, (cells,); the same array as ``low`` if every cell is one value."""
    rows: Array
    """Number of rows of each cell, (cells,) integers."""
    weight: Array
    """Total weight of the rows of each cell, (cells,)."""
    distinct: Array
    """Number of distinct values of each cell, (cells,); estimated in cells of several values."""
    is_exact: bool
    """Whether every cell is one value."""
    count_classes: Callable[[], Array]
    """Function that returns `class_weights`, which take much memory if there are many classes."""

    @property
    def class_weights(self) -> Array:
        """Total weight of the rows of each cell by class, (cells, k + 1); the last column is that of rows without a label."""
        return self.count_classes()

    @property
    def values(self) -> Array:
        """A value for each cell, (cells,): the value itself, or the middle of the cell."""
        return self.low if self.is_exact else np.asarray((self.low + self.high) / 2)

    @property
    def midpoints(self) -> Array:
        """The points midway between neighboring cells, (cells - 1,)."""
        return np.asarray((self.low[1:] + self.high[:-1]) / 2)

    @property
    def distinct_count(self) -> int:
        """Number of distinct values; if not `is_exact`, an estimate above `MOST_DISTINCT`."""
        return len(self.low) if self.is_exact else max(int(self.distinct.sum()), MOST_DISTINCT + 1)


def values_summary(
    values: Array, rows: Array, weight: Array, count_classes: Callable[[], Array]
) -> ColumnSummary:
    """The summary of a column with a cell for each distinct value, ascending."""
    return ColumnSummary(
        values, values, rows, weight, np.ones(len(values)), is_exact=True, count_classes=count_classes
    )


def cells_summary(
    counts: CellCounts, sampled: DistinctSample, count_classes: Callable[[], Array]
) -> ColumnSummary:
    """The summary of a column with very many distinct numbers, from cells in any order and a sample of its distinct numbers."""
    order = np.argsort(counts.low)
    counts = CellCounts(*(part[order] for part in counts))
    return ColumnSummary(
        counts.low,
        counts.high,
        counts.rows,
        counts.weight,
        distinct_estimates(counts, sampled),
        is_exact=False,
        count_classes=lambda: count_classes()[order],
    )
