"""p-values by permutation, for any measure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibayes.core.protocols import Array
from calibayes.dependence.hsic import HSIC
from calibayes.dependence.measure import Measure, Measured


@dataclass(frozen=True)
class Permuted:
    """Another measure with p-values from shuffled columns: all columns are shuffled at once, so each shuffle serves all pairs.

    Parameters
    ----------
    of : measure, default=HSIC()
    times : int, default=200
        Shuffles; no p-value is below 1 / (times + 1).
    seed : int, default=0
    """

    of: Measure = field(default_factory=HSIC)
    times: int = 200
    seed: int = 0

    @property
    def name(self) -> str:
        return self.of.name

    def measure(self, columns: Array, weights: Array) -> Measured:
        found = self.of.measure(columns, weights).statistic
        copies = np.repeat(columns, weights.astype(np.int64), axis=0) if (weights % 1 == 0).all() else columns
        rng, one = np.random.default_rng(self.seed), np.ones(len(copies))
        beyond = np.zeros_like(found)
        for _ in range(self.times):
            null = self.of.measure(rng.permuted(copies, axis=0), one).statistic
            beyond += np.abs(null) >= np.abs(found)
        return Measured(found, (beyond + 1.0) / (self.times + 1.0))
