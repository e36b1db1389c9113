"""Permutation p-values for any measure of dependence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibayes.core.protocols import Array
from calibayes.dependence.hsic import HSIC
from calibayes.dependence.measure import Measure, PairStatistics


@dataclass(frozen=True)
class Permuted:
    """Another measure with p-values by permutation; one permutation of all columns serves all pairs.

    Parameters
    ----------
    of : Measure, default=HSIC()
        Computes the statistic.
    times : int, default=200
        Number of permutations; no p-value is below 1 / (times + 1).
    seed : int, default=0
        Seed of the permutations.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from calibayes.dependence import Pearson
    >>> from sklearn.datasets import load_iris
    >>> measure_dependence(*load_iris(return_X_y=True), measure=Permuted(Pearson(), times=20)).p_values.shape
    (3, 4, 4)
    """

    of: Measure = field(default_factory=HSIC)
    times: int = 200
    seed: int = 0

    @property
    def name(self) -> str:
        return self.of.name

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        statistic = self.of.measure(columns, weights).statistic
        copies = np.repeat(columns, weights.astype(np.int64), axis=0) if (weights % 1 == 0).all() else columns
        rng, unit_weights = np.random.default_rng(self.seed), np.ones(len(copies))
        as_large = np.zeros_like(statistic)
        for _ in range(self.times):
            null = self.of.measure(rng.permuted(copies, axis=0), unit_weights).statistic
            as_large += np.abs(null) >= np.abs(statistic)
        return PairStatistics(statistic, (as_large + 1.0) / (self.times + 1.0))
