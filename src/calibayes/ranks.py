"""Compare several methods over several data sets: average ranks, Friedman and Wilcoxon tests (Demsar 2006)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from calibayes.core.protocols import Array
from calibayes.dependence.pairs import bonferroni

__all__ = [
    "RankSummary",
    "average_ranks",
    "bonferroni",
    "critical_difference",
    "friedman",
    "holm",
    "rank_summary",
    "wilcoxon",
]

Correction = Callable[[Array], Array]
"""Adjusts the p-values of several tests for their number."""


@dataclass(frozen=True)
class RankSummary:
    """Average ranks of methods and tests of their differences; rank 1 is the lowest error.

    Attributes
    ----------
    names : k names
    average_ranks : (k,) array
    rows : int
        Number of data sets.
    friedman_statistic, friedman_p : float
        Friedman's test that all methods have equal ranks.
    pairs : tuple of pairs of names
    pair_p : array
        p-values of Wilcoxon's signed-rank tests of the pairs, corrected for their number.
    critical_difference : float
        Nemenyi's critical difference: average ranks further apart differ significantly.
    level : float
        Significance level of the critical difference.

    Examples
    --------
    >>> summary = rank_summary([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.2, 0.3, 0.4]], ["A", "B", "C"])
    >>> summary.average_ranks.round(2)
    array([1.  , 2.33, 2.67])
    """

    names: tuple[str, ...]
    average_ranks: Array
    rows: int
    friedman_statistic: float
    friedman_p: float
    pairs: tuple[tuple[str, str], ...]
    pair_p: Array
    critical_difference: float
    level: float


def average_ranks(errors: Array) -> Array:
    """Rank of each method (k,), averaged over data sets; ties get the mean of their ranks.

    >>> average_ranks([[0.1, 0.2, 0.2], [0.1, 0.3, 0.2]]).tolist()
    [1.0, 2.75, 2.25]
    """
    return np.asarray(stats.rankdata(_table(errors), axis=1).mean(axis=0))


def friedman(errors: Array) -> tuple[float, float]:
    """Friedman's statistic and p-value for errors of shape (data sets, methods), at least three methods.

    If all methods have equal errors on every data set the statistic is 0 and the p-value 1. Raises ValueError for
    fewer than three methods.

    Examples
    --------
    >>> import numpy as np
    >>> statistic, p_value = friedman(np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.2, 0.3, 0.4]]))
    >>> round(p_value, 3)
    0.097
    """
    table = _table(errors)
    if table.shape[1] < 3:
        raise ValueError(
            f"Friedman's test compares at least three methods, got {table.shape[1]}; for two use wilcoxon"
        )
    if (table == table[:, :1]).all():
        return 0.0, 1.0
    statistic, p = stats.friedmanchisquare(*table.T)
    return float(statistic), float(p)


def wilcoxon(first: ArrayLike, second: ArrayLike) -> float:
    """p-value of Wilcoxon's two-sided signed-rank test of the errors of two methods on the same data sets.

    Data sets with equal errors are dropped; if none is left the p-value is 1.

    Examples
    --------
    >>> import numpy as np
    >>> round(wilcoxon(np.array([0.1, 0.2, 0.3, 0.4, 0.5]), np.array([0.2, 0.25, 0.33, 0.48, 0.56])), 4)
    0.0625
    """
    difference = np.round(np.asarray(first, dtype=float) - np.asarray(second, dtype=float), 12)
    nonzero = difference[difference != 0]
    if not len(nonzero):
        return 1.0
    exact = len(nonzero) <= 25 and len(np.unique(np.abs(nonzero))) == len(nonzero)
    method: Literal["exact", "approx"] = "exact" if exact else "approx"
    return float(stats.wilcoxon(nonzero, method=method).pvalue)


def holm(p: Array) -> Array:
    """Holm's correction: the smallest of m p-values times m, the next times m - 1, and so on, kept non-decreasing.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=float)
    order = np.argsort(values, kind="stable")
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def critical_difference(methods: int, rows: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks for ``rows`` data sets (Demsar 2006).

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    q = stats.studentized_range.ppf(1.0 - level, methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(methods * (methods + 1) / (6.0 * rows)))


def rank_summary(
    errors: Array, names: Sequence[str], *, level: float = 0.05, correction: Correction = holm
) -> RankSummary:
    """Average ranks with Friedman's test, Wilcoxon's tests of all pairs and the critical difference.

    Parameters
    ----------
    errors : (data sets, methods) array
        Lower is better.
    names : names of the methods
    level : float, default=0.05
        Significance level of the critical difference.
    correction : function, default=holm
        Adjusts the p-values of the pairs: `holm`, `bonferroni`, or any function of p-values.

    Examples
    --------
    >>> from calibayes.ranks import rank_summary
    >>> errors = [[0.30, 0.20, 0.25], [0.40, 0.31, 0.33], [0.10, 0.05, 0.07], [0.22, 0.20, 0.21]]
    >>> rank_summary(errors, ["ML", "RC", "GD"]).average_ranks.tolist()
    [3.0, 1.0, 2.0]
    """
    table = _table(errors)
    if table.shape[1] != len(names):
        raise ValueError(
            f"errors has {table.shape[1]} columns, but {len(names)} names are given; give one for each column"
        )
    pair_p = [wilcoxon(first, second) for first, second in combinations(table.T, 2)]
    return RankSummary(
        tuple(names),
        average_ranks(table),
        len(table),
        *friedman(table),
        tuple(combinations(names, 2)),
        correction(np.array(pair_p)),
        critical_difference(len(names), len(table), level),
        level,
    )


def _table(errors: Array) -> Array:
    table = np.asarray(errors, dtype=float)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError(
            "errors must be a two-dimensional array of finite numbers: a row for each data set, a column for each "
            f"method; got shape {table.shape}"
        )
    return table
