"""The thresholds by group of least loss whose rates differ by no more than a tolerance: an exact search.

A threshold divides the rows of a group, sorted by score, into accepted and rejected ones. Each division is a point: a rate
(of acceptance) and a loss. The rates of all groups must lie in a window as wide as the tolerance. The lowest rate of the best
solution is the rate of some point, so that all windows that begin at a point are tried, and in each window every group takes
its point of least loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array

ROUNDING = 1e-12
"""Difference of rates, sums of weights, that counts as none."""


class Points(NamedTuple):
    """The divisions of a group, from none accepted to all; rates ascend."""

    threshold: Array
    """Least score that is accepted, (p,); inf accepts none, -inf all."""
    rate: Array
    loss: Array
    """Sum over the rows of the group."""


def points_of(score: Array, counted: Array, loss_accepted: Array, loss_rejected: Array) -> Points:
    """The divisions of the rows of a group; ``counted`` is each row's share in the rate, (n,), sum 1."""
    order = np.argsort(-score, kind="stable")
    ordered = score[order]
    is_last = np.append(ordered[1:] != ordered[:-1], True)  # of rows with the same score
    ends = np.concatenate([[0], np.flatnonzero(is_last) + 1])
    rate = np.concatenate([[0.0], np.cumsum(counted[order])])[ends]
    change = np.concatenate([[0.0], np.cumsum((loss_accepted - loss_rejected)[order])])[ends]
    return Points(_thresholds(ordered[is_last]), rate, loss_rejected.sum() + change)


def _thresholds(distinct: Array) -> Array:
    """Thresholds that accept none, the highest score, the two highest, ..., all, of distinct scores in descending order."""
    upper, lower = distinct[:-1], distinct[1:]
    with np.errstate(invalid="ignore"):
        middle = (upper + lower) / 2.0
    is_between = np.isfinite(middle) & (middle > lower) & (middle <= upper)
    return np.concatenate([[np.inf], np.where(is_between, middle, upper), [-np.inf]])


def best_points(groups: Sequence[Points], tolerance: float) -> list[int]:
    """The point of each group in the best solution. One exists always: accept none, or all."""
    lowest = np.unique(np.concatenate([points.rate for points in groups]))
    found = [_least_in_windows(points, lowest, lowest + tolerance + ROUNDING) for points in groups]
    total = np.sum([loss for _, loss in found], axis=0)
    best = int(np.argmin(total))
    return [int(places[best]) for places, _ in found]


def _least_in_windows(points: Points, low: Array, high: Array) -> tuple[Array, Array]:
    """Place and loss of the point of least loss whose rate lies in each window; loss inf if there is none."""
    first = np.searchsorted(points.rate, low - ROUNDING, side="left")
    last = np.searchsorted(points.rate, high, side="right") - 1
    is_empty = last < first
    places = _range_argmin(points.loss, np.where(is_empty, 0, first), np.where(is_empty, 0, last))
    return places, np.where(is_empty, np.inf, points.loss[places])


def _range_argmin(values: Array, first: Array, last: Array) -> Array:
    """Position of the least value between first and last, both included, of each range: by a sparse table."""
    table = [np.arange(len(values))]
    while 2 ** len(table) <= len(values):
        before, half = table[-1], 2 ** (len(table) - 1)
        left, right = before[:-half], before[half:]
        table.append(np.where(values[left] <= values[right], left, right))
    level = np.floor(np.log2(last - first + 1)).astype(int)
    left = np.array([table[k][a] for k, a in zip(level.tolist(), first.tolist(), strict=True)], dtype=int)
    ends = (last - 2**level + 1).tolist()
    right = np.array([table[k][b] for k, b in zip(level.tolist(), ends, strict=True)], dtype=int)
    return np.where(values[left] <= values[right], left, right)
