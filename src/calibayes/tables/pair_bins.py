"""Fine bins for tables of two columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from calibayes.core.protocols import Array
from calibayes.tables.bins import AdaptiveBins, MDLBins
from calibayes.tables.read import Table

FEWEST = 4
"""Bins that a column may have however many columns there are."""


@dataclass(frozen=True)
class PairBins(AdaptiveBins):
    """Adaptive bins that get coarser as columns get more, so that the tables of all pairs of columns stay small.

    Parameters
    ----------
    few, parts
        As in `AdaptiveBins`, for few columns.
    budget : int, default=2**23
        Cells of all pairs together that columns with ``few`` bins each may have.
    """

    budget: int = 2**23

    def fit(self, table: Table, indices: Sequence[int], weight: Array, codes: Array | None = None) -> Self:
        pairs = max(math.comb(len(indices), 2), 1)
        most = max(math.isqrt(self.budget // pairs), FEWEST)
        few, parts = min(self.few, most), min(self.parts, most // 2)
        return super(PairBins, replace(self, few=few, parts=parts)).fit(table, indices, weight, codes)


@dataclass(frozen=True)
class InformedBins(PairBins):
    """Such bins, cut also where that says something about the class, as in `MDLBins`.

    Numbers of few values have one bin a value anyway; others get no more further cuts than that.
    """

    def inner(self, values: Array, row: Array, weight: Array, codes: Array | None) -> Array:
        plain = super().inner(values, row, weight, codes)
        if len(values) <= self.few:
            return plain
        told = MDLBins().inner(values, row, weight, codes)
        some = np.unique(np.linspace(0, len(told) - 1, min(len(told), self.few)).astype(int))
        return np.union1d(plain, told[some])
