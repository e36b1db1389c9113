"""Number, mean and sum of squared differences of numbers, which can be added (Chan, Golub and LeVeque 1983)."""

from __future__ import annotations

from dataclasses import dataclass

from calibayes.core.protocols import Array
from calibayes.kernels.numbers.known_moments import KnownMoments


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


def moment_sums(moments: KnownMoments) -> MomentSums:
    """Moments of known numbers, without their range."""
    return MomentSums(moments.count, moments.pivot, moments.offset, moments.squares)


def repeated_moments(values: Array, rows: Array) -> MomentSums:
    """Moments of numbers, (v,), each of which occurs in so many rows, (v,)."""
    count = int(rows.sum())
    if not count:
        return MomentSums(0, 0.0, 0.0, 0.0)
    pivot = float(values @ rows) / count
    differences = values - pivot
    offset = float(differences @ rows) / count
    squares = max(float((differences * differences) @ rows) - count * offset * offset, 0.0)
    return MomentSums(count, pivot, offset, squares)
