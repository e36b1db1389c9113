"""How many distinct numbers the cells of a column have, estimated from a sample of the distinct numbers."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.levels.distinct_sample import DistinctSample
from calibayes.kernels.levels.ordered_cells import CellCounts

TOGETHER = 64
"""Sampled numbers of neighboring cells that are taken together: fewer would make estimates too noisy."""


def distinct_estimates(counts: CellCounts, sampled: DistinctSample) -> Array:
    """Number of distinct numbers of each cell, cells ascending, (cells,); 1 for a cell of one number.

    Neighboring cells have distinct numbers in proportion to their rows, and together as many as the sample shows.
    """
    several = counts.low < counts.high
    low, high, rows = counts.low[several], counts.high[several], counts.rows[several]
    in_sample = np.searchsorted(sampled.values, high, side="right") - np.searchsorted(sampled.values, low)
    group = np.maximum(np.cumsum(in_sample) - 1, 0) // TOGETHER
    share = np.bincount(group, in_sample) * 2.0**sampled.zeros / np.maximum(np.bincount(group, rows), 1)
    estimates = np.ones(len(counts.rows))
    estimates[several] = np.maximum(np.minimum(share, 1.0)[group] * rows, 1.0)
    return estimates
