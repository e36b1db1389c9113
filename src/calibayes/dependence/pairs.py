"""Select the pairs of columns to keep, class by class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import TOLERANCE, require, require_array

# -- Adjust p-values for the number of tests (multiple testing) ----------------------------------------------


def bonferroni(p_values: Array) -> Array:
    """Bonferroni-adjusted p-values: control the probability of any false discovery.

    >>> bonferroni([0.01, 0.2]).tolist()
    [0.02, 0.4]
    """
    values = np.asarray(p_values, dtype=float)
    return np.minimum(values * values.size, 1.0)


def benjamini_hochberg(p_values: Array) -> Array:
    """Benjamini-Hochberg-adjusted p-values: control the expected share of false discoveries (FDR).

    >>> benjamini_hochberg(np.array([0.01, 0.2, 0.02])).round(3).tolist()
    [0.03, 0.2, 0.03]
    """
    order = np.argsort(p_values, kind="stable")[::-1]
    ranks = np.arange(p_values.size, 0, -1)
    adjusted = np.empty(p_values.size)
    adjusted[order] = np.minimum.accumulate(p_values[order] * p_values.size / ranks)
    return np.minimum(adjusted, 1.0)


# -- Dependence of all pairs of columns within each class, as a table ----------------------------------------


@dataclass(frozen=True, repr=False)
class Dependence:
    """Statistics and p-values of all pairs of columns within each class.

    Attributes
    ----------
    measure : str
        Name of the measure.
    names : (d,) names of the columns
    classes : (k,) labels, or ("all",) if no labels were given
    statistics, p_values : (k, d, d) arrays

    Examples
    --------
    >>> from calibayes import measure_dependence
    >>> from sklearn.datasets import load_iris
    >>> list(measure_dependence(*load_iris(return_X_y=True)).frame().columns)
    ['class', 'first', 'second', 'statistic', 'p_value']
    """

    measure: str
    names: tuple[str, ...]
    classes: tuple[Any, ...]
    statistics: Array
    p_values: Array

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d = len(self.names)
        require_array("statistics", self.statistics, (len(self.classes), d, d))
        require_array("p_values", self.p_values, (len(self.classes), d, d))
        outside = (self.p_values < 0) | (self.p_values > 1 + TOLERANCE)
        require(not outside.any(), "p_values contains numbers that are no probabilities")

    @property
    def pairs(self) -> Array:
        """Positions of the columns of each pair, (2, pairs)."""
        return np.stack(np.triu_indices(len(self.names), 1))

    @property
    def statistic(self) -> Array:
        """Statistic of each class and pair, (k, pairs)."""
        return self.statistics[:, *self.pairs]

    @property
    def p_value(self) -> Array:
        """p-value of each class and pair, (k, pairs)."""
        return self.p_values[:, *self.pairs]

    @property
    def order(self) -> Array:
        """Positions in the flattened (k, pairs) table, by decreasing absolute statistic."""
        return np.argsort(-np.abs(self.statistic).ravel(), kind="stable")

    def frame(self, backend: Any = "pandas") -> Any:
        """A data frame with a row for each class and pair, by decreasing absolute statistic."""
        first, second = self.pairs
        label, pair = np.divmod(self.order, max(len(first), 1))
        columns = {
            "class": np.array(self.classes)[label],
            "first": np.array(self.names)[first[pair]],
            "second": np.array(self.names)[second[pair]],
            "statistic": self.statistic[label, pair],
            "p_value": self.p_value[label, pair],
        }
        return nw.from_dict(columns, backend=backend).to_native()

    def __repr__(self) -> str:
        first, second = self.pairs
        label, pair = np.divmod(self.order[:5], max(len(first), 1))
        lines = [
            f"  {self.names[first[p]]} - {self.names[second[p]]} ({self.classes[c]}): "
            f"{self.statistic[c, p]:.3g}, p = {self.p_value[c, p]:.2g}"
            for c, p in zip(label, pair, strict=True)
        ]
        head = (
            f"{self.measure} of {len(first)} pairs in {len(self.classes)} classes, the most dependent first:"
        )
        return "\n".join([head, *lines])


# -- Select the pairs of columns to keep, class by class -----------------------------------------------------


class PairSelection(Protocol):
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
