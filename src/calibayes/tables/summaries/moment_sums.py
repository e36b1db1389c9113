"""Number, mean and sum of squared differences of numbers, which can be added (Chan, Golub and LeVeque 1983)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibayes.core.protocols import Array


@dataclass(frozen=True)
class MomentSums:
    """Moments of the known numbers of a column, each row counted once."""

    count: int
    mean: float
    squares: float
    """Sum of squared differences from the mean."""

    def plus(self, other: MomentSums) -> MomentSums:
        """The moments of the numbers of both."""
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        shift, share = other.mean - self.mean, other.count / count
        squares = self.squares + other.squares + shift * shift * self.count * share
        return MomentSums(count, self.mean + shift * share, squares)

    @property
    def variance(self) -> float:
        """Variance of the numbers; 0 without any."""
        return self.squares / self.count if self.count else 0.0


def moment_sums(numbers: Array) -> MomentSums:
    """Moments of known numbers, (n,)."""
    if not len(numbers):
        return MomentSums(0, 0.0, 0.0)
    mean = float(numbers.mean())
    differences = numbers - mean
    return MomentSums(len(numbers), mean, float(np.dot(differences, differences)))
