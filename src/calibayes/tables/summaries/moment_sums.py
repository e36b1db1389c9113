"""Number, mean and sum of squared differences of numbers, which can be added (Chan, Golub and LeVeque 1983)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.known_moments import KnownMoments

PIVOT_STEP = 64
"""One in so many rows is used to find a number near the mean."""


@dataclass(frozen=True)
class MomentSums:
    """Moments of the known numbers of a column, each row counted once."""

    count: int
    pivot: float
    """A number near the mean."""
    offset: float
    """The mean less the pivot: apart, since the difference of two means may be much smaller than their rounding."""
    squares: float
    """Sum of squared differences from the mean."""

    def plus(self, other: MomentSums) -> MomentSums:
        """The moments of the numbers of both."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        shift, share = (other.pivot - self.pivot) + (other.offset - self.offset), other.count / count
        squares = self.squares + other.squares + shift * shift * self.count * share
        return MomentSums(count, self.pivot, self.offset + shift * share, squares)

    @property
    def mean(self) -> float:
        """Mean of the numbers; 0 without any."""
        return self.pivot + self.offset

    @property
    def variance(self) -> float:
        """Variance of the numbers; 0 without any."""
        return self.squares / self.count if self.count else 0.0


def pivot_of(numbers: Array) -> float:
    """The mean of every 64th of the numbers (n,) that are known, 0 without any.

    The squared difference from the mean of all is then at most 63 variances, if as many of these rows are known as of
    the others: sums around it lose at most six bits.
    """
    some = numbers[::PIVOT_STEP].astype(np.float64)
    some = some[~np.isnan(some)]
    with np.errstate(invalid="ignore", over="ignore"):
        return float(some.mean()) if len(some) else 0.0


def moment_sums(moments: KnownMoments, pivot: float) -> MomentSums:
    """Moments of known numbers, from sums around a pivot."""
    return _around(moments.known, pivot, moments.total, moments.squares)


def repeated_moments(values: Array, rows: Array) -> MomentSums:
    """Moments of numbers, (v,), each of which occurs in so many rows, (v,)."""
    count = int(rows.sum())
    pivot = float(values @ rows) / max(count, 1)
    differences = values - pivot
    return _around(count, pivot, float(differences @ rows), float((differences * differences) @ rows))


def _around(count: int, pivot: float, total: float, squares: float) -> MomentSums:
    """Moments from the sums of differences from a pivot and of their squares."""
    if not count:
        return MomentSums(0, 0.0, 0.0, 0.0)
    offset = total / count
    return MomentSums(count, pivot, offset, max(squares - count * offset * offset, 0.0))
