"""Row weights as numbers of rows: whole weights are counts of equal rows."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array

MOST_COUNT = 2.0**53
ROUNDING = 1e-12
"""Relative distance from a whole number that a weight may have after class weights were divided out."""
MOST_COPIES, LEAST_COPIES = 8, 1000
"""Whole weights are counts of rows, up to 8 times the number of weights, or 1,000; larger ones are divided."""


def whole_counts(weight: Array) -> Array | None:
    """The weights (n,) if all of them are whole numbers."""
    counts = np.round(weight)
    if weight.max() >= MOST_COUNT or (np.abs(weight - counts) > ROUNDING * counts).any():
        return None
    return np.asarray(counts)


def count_of_one(counts: Array) -> float:
    """The count of one row: the greatest common divisor, or more if copies would be too many."""
    most = max(MOST_COPIES * len(counts), LEAST_COPIES)
    return max(float(np.gcd.reduce(counts.astype(np.int64))), float(counts.sum()) / most)


def weight_of_one(weight: Array) -> float:
    """The weight of one row: the common divisor of whole weights, otherwise the average weight of a row.

    The average is weighted by the weights themselves, so that rows of tiny weight do not count.

    >>> weight_of_one(np.array([2.0, 4.0, 6.0]))
    2.0
    """
    counts, top = whole_counts(weight), float(weight.max())
    relative = weight / top
    return top * float(relative @ relative / relative.sum()) if counts is None else count_of_one(counts)
