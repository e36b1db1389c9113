"""The interface of a measure of dependence."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from calibayes.core.protocols import Array


class PairStatistics(NamedTuple):
    """Statistics and p-values of all pairs of columns.

    Examples
    --------
    >>> import numpy as np
    >>> PairStatistics(statistic=np.array([0.5]), p_value=np.array([0.01])).p_value
    array([0.01])
    """

    statistic: Array
    """(d, d), symmetric."""
    p_value: Array
    """(d, d), of the test that the two columns are independent."""


class Measure(Protocol):
    """A measure of dependence between pairs of columns. A row of weight w counts as w copies.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes.dependence import Pearson
    >>> columns = np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.2]])
    >>> Pearson().measure(columns, np.ones(4)).statistic.round(3)
    array([[1.   , 0.999],
           [0.999, 1.   ]])
    """

    @property
    def name(self) -> str:
        """Name in tables and plots."""

    def measure(self, columns: Array, weights: Array) -> PairStatistics:
        """Statistics and p-values of all pairs; columns (n, d), weights (n,)."""
