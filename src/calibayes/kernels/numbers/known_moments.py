"""Range, and sums of differences from a pivot, of the known numbers of a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, twin


class KnownMoments(NamedTuple):
    """Moments of the numbers of a column that are not NaN."""

    known: int
    """Number of rows with a number."""
    low: float
    """Smallest number; infinity if there is none."""
    high: float
    """Largest number; minus infinity if there is none."""
    total: float
    """Sum of the differences from the pivot."""
    squares: float
    """Sum of their squares."""


def native_known_moments(module: Any, x: Array, pivot: float) -> Any:
    return KnownMoments(*module.known_moments(as_float64(x), pivot))


@twin(native_known_moments)
def known_moments(x: Array, pivot: float) -> KnownMoments:
    """Range of the numbers of x (n,) that are not NaN, and sums of powers of their differences from a pivot."""
    numbers = np.asarray(x, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    low, high = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
    with np.errstate(invalid="ignore", over="ignore"):  # the range shows infinite numbers
        differences = numbers - pivot
        return KnownMoments(
            len(numbers), low, high, float(differences.sum()), float(np.dot(differences, differences))
        )
