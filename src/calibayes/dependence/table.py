"""Dependence of all pairs of columns within each class, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import TOLERANCE, require, require_array


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
