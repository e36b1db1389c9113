"""Range, mean and squared differences from it of the known numbers of a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import as_float64, twin


class KnownMoments(NamedTuple):
    """Moments of the numbers of a column that are not NaN."""

    count: int
    low: float
    """Smallest number; infinity if there is none."""
    high: float
    """Largest number; minus infinity if there is none."""
    pivot: float
    """The mean, as it was rounded."""
    offset: float
    """Mean of the differences from the pivot."""
    squares: float
    """Sum of squared differences from the mean."""


def native_known_moments(module: Any, x: Array) -> Any:
    return KnownMoments(*module.known_moments(as_float64(x)))


@twin(native_known_moments)
def known_moments(x: Array) -> KnownMoments:
    """Moments of the numbers of x (n,) that are not NaN; x may have infinite numbers, which only the range shows."""
    numbers = np.asarray(x, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return KnownMoments(0, np.inf, -np.inf, 0.0, 0.0, 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        pivot = float(numbers.mean())
        differences = numbers - pivot
        offset = float(differences.mean())
        squares = max(float(np.dot(differences, differences)) - len(numbers) * offset * offset, 0.0)
    return KnownMoments(
        len(numbers), float(numbers.min()), float(numbers.max()), pivot, offset, squares
    )
