"""Search for the parents of k-dependence Bayes (Sahami 1996)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array
from calibayes.families.tree.network_tables import ParentSets
from calibayes.families.tree.structures import COMPARED_DIGITS, LEAST_INFORMATION, Candidates, Edges
from calibayes.kernels.levels.pairs import PairInformation, table_information


def class_information(count: Array) -> float:
    """Mutual information of a column and the class in nats, from counts (k, levels)."""
    total = count.sum()
    margins = sum(xlogy(margin, margin).sum() for margin in (count.sum(axis=0), count.sum(axis=1)))
    gain = xlogy(count, count).sum() - margins + xlogy(total, total)
    return float(gain / total) if total > 0 else 0.0


def relevance_order(column_counts: Sequence[Array]) -> tuple[int, ...]:
    """The columns by decreasing mutual information with the class; of equal ones, earlier columns first."""
    information = np.array([class_information(np.maximum(count, 0.0)) for count in column_counts])
    return tuple(np.argsort(-_compared(information), kind="stable").tolist())


def ordered_parents(
    order: Sequence[int],
    candidates: Candidates,
    edges: Edges,
    further: Callable[[int, int, Sequence[int]], PairInformation] | None,
) -> ParentSets:
    """One or two parents of each column among those before it in an order.

    The first parent has the largest mutual information with the column given the class. ``further`` gives the dependence
    of a column on others given the class and its first parent: the second parent has the largest, among the columns that
    are joined to the first one by an edge, so that missing values are summed out in tables of at most three columns.
    Without ``further`` there is no second parent. Both must be allowed by ``edges``.
    """
    gains = _gain_matrix(candidates, edges)
    parents: dict[int, tuple[int, ...]] = {}
    for place, j in enumerate(order):
        earlier = np.array(order[:place], dtype=np.intp)
        best = _best(gains[j, earlier])
        parents[j] = () if best < 0 else (int(earlier[best]),)
        if best >= 0 and further is not None:
            first = int(earlier[best])
            joined = [i for i in order[:place] if i in parents[first] or first in parents[i]]
            information = further(j, first, joined)
            second = _best(_allowed_gains(information, edges))
            parents[j] += () if second < 0 else (joined[second],)
    return tuple(parents[j] for j in range(candidates.d))


def conditional_information(tables: Sequence[Array]) -> PairInformation:
    """Dependence of two columns given the class and a third one, from tables (k, third's levels, levels, levels)."""
    parts = [
        [part.sum() for part in table_information(np.maximum(table, 0.0).reshape(-1, 1, *table.shape[2:]))]
        for table in tables
    ]
    return PairInformation(*np.array(parts, dtype=np.float64).reshape(-1, 3).T)


def _gain_matrix(candidates: Candidates, edges: Edges) -> Array:
    """Gain of each pair of columns, (d, d); -inf where no edge is allowed."""
    gains = np.full((candidates.d, candidates.d), -np.inf)
    gains[candidates.left, candidates.right] = _allowed_gains(candidates.pooled(), edges)
    return np.maximum(gains, gains.T)


def _allowed_gains(dependence: PairInformation, edges: Edges) -> Array:
    """Gain of each pair, -inf where no edge is allowed."""
    is_allowed = edges.allowed(dependence) & (dependence.gain > LEAST_INFORMATION * dependence.weight)
    return np.where(is_allowed, dependence.gain, -np.inf)


def _best(gains: Array) -> int:
    """Position of the largest gain, the first of equal ones; -1 if none is finite."""
    if not np.isfinite(gains).any():
        return -1
    return int(np.argmax(_compared(gains)))


def _compared(gains: Array) -> Array:
    """Gains relative to the largest, rounded so that the order of summation does not matter."""
    return np.round(gains / (gains.max(initial=0.0) or 1.0), COMPARED_DIGITS)
