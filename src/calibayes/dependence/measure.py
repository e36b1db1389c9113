"""What a measure of dependence is."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from calibayes.core.protocols import Array


class Measured(NamedTuple):
    """All pairs of columns at once."""

    statistic: Array
    """(d, d), symmetric."""
    p_value: Array
    """(d, d): how probable so large a statistic is where the columns are independent."""


class Measure(Protocol):
    """How dependent pairs of columns are. A weight counts as that many copies of its row."""

    @property
    def name(self) -> str:
        """For tables and pictures."""

    def measure(self, columns: Array, weights: Array) -> Measured:
        """Statistics and p-values of all pairs; columns (n, d), weights (n,)."""
