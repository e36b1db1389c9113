"""Class scores of the classifiers on log densities when only some columns are known, and what each column adds to them.

The score of a class is linear in log densities of one and of two columns, in which an unknown column is dropped. It is thus a
sum of terms of single known columns and of pairs of known columns, whose Shapley values need no sum over sets: the term of a
pair belongs to its two columns in equal parts (Shapley 1953; Grabisch and Roubens 1999 on 2-additive games).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.analysis.marginals import Marginals, ModelNeedsAllColumns
from calibayes.core.protocols import Array
from calibayes.estimators.log_kernel_densities import new_logs
from calibayes.model.checked_rows import new_table


@dataclass(frozen=True)
class PairSum:
    """A function of a sum of terms of single columns and of pairs of columns.

    Attributes
    ----------
    columns : (d,) positions in the table
    constant : (s,) array
        The scores if no column is known.
    single : (n, s, d) array
    pairs : (2, pairs) positions among the columns
    double : (n, s, pairs) array
        What is added to the terms of both columns if both are known.
    classes : callable
        From scores (n, s) to those of the classes, (n, k).
    is_linear : bool
        Whether differences between the classes are linear in the scores.
    """

    columns: tuple[int, ...]
    constant: Array
    single: Array
    pairs: Array
    double: Array
    classes: Callable[[Array], Array]
    is_linear: bool

    def scores(self, present: Array) -> Array:
        both = present[self.pairs].all(axis=0)
        sums = self.single[:, :, present].sum(axis=2) + self.double[:, :, both].sum(axis=2)
        return self.classes(self.constant + sums)

    def along(self, order: Array) -> Iterator[Array]:
        present = np.zeros(len(self.columns), dtype=bool)
        for j in order:
            present[j] = True
            yield self.scores(present)

    @property
    def shapley_terms(self) -> Array | None:
        """The Shapley values of the scores of the classes, (n, k, d); None if they are no sums."""
        if not self.is_linear:
            return None
        terms = self.single.copy()
        for place, (i, j) in enumerate(self.pairs.T):
            terms[:, :, i] += 0.5 * self.double[:, :, place]
            terms[:, :, j] += 0.5 * self.double[:, :, place]
        return np.stack([self.classes(terms[:, :, j]) for j in range(terms.shape[2])], axis=2)


def marginals_of(self: Any, X: Any) -> Marginals:
    """log p(class | known columns) of the rows, for any known columns: densities of the others are dropped.

    Raises ModelNeedsAllColumns for a classifier without probabilities.
    """
    table = new_table(self, X)
    linear = self._linear_loss()
    if linear.log_probability is None:
        raise ModelNeedsAllColumns(
            "loss='hinge' has no probabilities, so that it cannot be explained: use loss='log'"
        )
    part = _pair_sum(self, *new_logs(self, table), linear.class_scores, linear.is_linear)
    return Marginals(table.names, np.zeros(len(self.classes_)), (part,))


def _pair_sum(
    model: Any, standardized: Array, logs: Array, classes: Callable[[Array], Array], is_linear: bool
) -> PairSum:
    """The terms of rows from their standardized columns (n, numbers) and log densities, NaN where a value is missing."""
    densities, raw = model.densities_, standardized.shape[1]
    n, d, k, u = len(logs), len(densities.varying), len(densities.kernels), densities.n_univariate
    weight = model.coef_[:, raw:]
    constant = model.intercept_ + weight @ densities.expected
    single = np.zeros((n, len(constant), d))
    if raw:
        single[:, :, densities.numeric] += np.nan_to_num(standardized)[:, None] * model.coef_[:, :raw]
    gains = np.nan_to_num(logs[:, :u] - densities.expected[:u]).reshape(n, 1, k, d)
    single += (gains * weight[:, :u].reshape(-1, k, d)).sum(axis=2)
    distinct, place = np.unique(densities.pairs, axis=1, return_inverse=True)
    double = np.zeros((n, len(constant), distinct.shape[1]))
    for q, (pair, first, second) in enumerate(zip(densities.pairs.T, *densities.parts, strict=True)):
        excess = densities.excess[:, q] - densities.expected[u + q]
        alone = np.nan_to_num(np.stack([logs[:, first] + excess[0], logs[:, second] + excess[1]]))
        both = np.isnan(logs[:, [first, second]]).any(axis=1)
        known = np.where(np.isnan(logs[:, u + q]), alone[0] + densities.expected[u + q], logs[:, u + q])
        together = np.where(both, 0.0, known - densities.expected[u + q] - alone.sum(axis=0))
        for j, gain in zip(pair, alone, strict=True):
            single[:, :, j] += gain[:, None] * weight[:, u + q]
        double[:, :, place.ravel()[q]] += together[:, None] * weight[:, u + q]
    columns = tuple(densities.varying.tolist())
    return PairSum(columns, constant, single, distinct, double, classes, is_linear)
