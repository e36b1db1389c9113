"""The interface of a measure of dependence."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from calibayes.core.protocols import Array


class PairStatistics(NamedTuple):
    """Statistics and p-values of all pairs of columns."""

    statistic: Array
    """(d, d), symmetric."""
    p_value: Array
    """(d, d), of the test that the two columns are independent."""


class Measure(Protocol):
    """A measure of dependence between pairs of columns. A row of weight w counts as w copies."""

    @property
    def name(self) -> str:
        """Name in tables and plots."""

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        """Statistics and p-values of all pairs; columns (n, d), weights (n,)."""
