"""Points near most rows, about which moments are summed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibayes.core.protocols import Array

CENTER_ROWS = 512
"""Number of rows, evenly spaced in the sample, whose medians are the centers of the columns."""


def center_rows(n: int) -> slice:
    """Evenly spaced rows of a sample of n rows, for `column_centers`."""
    return slice(None, None, -(-n // CENTER_ROWS))


def column_centers(rows: Array, means: Callable[[Array], Array]) -> Array:
    """A point near most rows, (d,): medians of few rows (n, d), which outliers do not move as they move a mean.

    A column that is missing in all those rows has the mean of its known values instead: ``means`` of such columns, (d,)
    booleans.
    """
    some = rows.astype(np.float64)
    if not np.isnan(some.sum()):
        return np.asarray(np.median(some.T.copy(), axis=1))
    all_missing = np.isnan(some).all(axis=0)
    center = np.nanmedian(np.where(all_missing, 0.0, some), axis=0)
    if all_missing.any():
        center[all_missing] = means(all_missing)
    return center
