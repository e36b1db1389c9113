"""Select the pairs of columns to keep, class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.dependence.multiple_testing import benjamini_hochberg
from calibayes.dependence.table import Dependence


class Selection(Protocol):
    """Selects (class, pair) combinations. Of several candidate selections, cross-validation picks one.

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from calibayes.dependence import TopFraction
    >>> from sklearn.datasets import load_iris
    >>> len(TopFraction(0.5).candidates(measure_dependence(*load_iris(return_X_y=True))))
    1
    """

    def candidates(self, table: Dependence) -> list[Array]:
        """Candidate selections: positions in the flattened (k, pairs) table, the most dependent first."""


@dataclass(frozen=True)
class TopFraction:
    """Keep the most dependent share of all (class, pair); 1 keeps all, 0 none.

    Examples
    --------
    >>> from calibayes import SparseLogBivariateClassifier
    >>> SparseLogBivariateClassifier(selection=TopFraction(0.1)).selection
    TopFraction(share=0.1)
    """

    share: float = 1.0

    def candidates(self, table: Dependence) -> list[Array]:
        return BestFraction((self.share,)).candidates(table)


@dataclass(frozen=True)
class BestFraction:
    """Keep the most dependent share of all (class, pair), chosen by cross-validation (slb-2020, section 3).

    Examples
    --------
    >>> from calibayes import SparseLogBivariateClassifier
    >>> SparseLogBivariateClassifier(selection=BestFraction((0.0, 0.1))).selection.shares
    (0.0, 0.1)
    """

    shares: Sequence[float] = (0.0, 0.03, 0.1, 0.3, 1.0)

    def candidates(self, table: Dependence) -> list[Array]:
        order = table.order
        invalid = [share for share in self.shares if not 0 <= share <= 1]
        if invalid or not self.shares:
            raise ValueError(
                f"shares of pairs must be numbers between 0 and 1, at least one; got {self.shares!r}"
            )
        return [order[: int(np.ceil(share * len(order) - 1e-9))] for share in self.shares]


@dataclass(frozen=True)
class SignificantPairs:
    """Keep the (class, pair) whose independence is rejected, with p-values adjusted for the number of tests.

    Parameters
    ----------
    level : float, default=0.05
        Significance level.
    procedure : function of p-values, default=benjamini_hochberg
        Adjusts the p-values for their number; `bonferroni` is the other one in this package.

    Examples
    --------
    >>> from calibayes import SparseLogBivariateClassifier
    >>> SparseLogBivariateClassifier(selection=SignificantPairs(0.01)).selection.level
    0.01
    """

    level: float = 0.05
    procedure: Callable[[Array], Array] = benjamini_hochberg

    def candidates(self, table: Dependence) -> list[Array]:
        order = table.order
        adjusted = self.procedure(table.p_value.ravel())
        return [order[adjusted[order] <= self.level]]
