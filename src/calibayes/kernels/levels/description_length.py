"""Cuts of an ordered column that pay for their own description (Fayyad and Irani 1993)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array

LEAST_SHARE = 1e-12
"""Share of the rows below which a class counts as absent: what differences of sums of weights leave behind."""


def cuts(counts: Array) -> Array:
    """The accepted cuts, ascending: a cut ``p`` parts the values before ``p`` from the others.

    ``counts`` are the weights of each class at each value, (values, k), values ascending. Every part is cut where the
    entropy of the classes falls most, as long as that saves more bits than it takes to say where the cut is.
    """
    below = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    candidates = boundaries(counts)
    pending, found = [(0, len(counts))], []
    while pending:
        low, high = pending.pop()
        inside = candidates[slice(*np.searchsorted(candidates, (low + 1, high)))]
        if not len(inside):
            continue
        left, right = _clean(below[inside] - below[low]), _clean(below[high] - below[inside])
        best = int(np.argmin(bits(left) + bits(right)))
        if worth(left[best], right[best]):
            found.append(int(inside[best]))
            pending += [(low, found[-1]), (found[-1], high)]
    return np.array(sorted(found), dtype=np.intp)


def boundaries(counts: Array) -> Array:
    """Where a cut of least entropy can be: not between two values that have one class only, and the same."""
    pure, first = np.count_nonzero(counts, axis=1) == 1, np.argmax(counts > 0, axis=1)
    same = pure[1:] & pure[:-1] & (first[1:] == first[:-1])
    return np.flatnonzero(~same) + 1


def bits(counts: Array) -> Array:
    """Rows times the entropy of their classes, over the last axis."""
    total = counts.sum(axis=-1)
    return np.asarray((xlogy(total, total) - xlogy(counts, counts).sum(axis=-1)) / np.log(2.0))


def worth(left: Array, right: Array) -> bool:
    """Whether a cut saves more than it costs: the criterion of Fayyad and Irani, multiplied by the number of rows."""
    parts = (left + right, left, right)
    n = float(parts[0].sum())
    if n <= 1.0:
        return False
    whole, *halves = (float(bits(part)) for part in parts)
    spread = [np.count_nonzero(part) * float(bits(part)) / float(part.sum()) for part in parts]
    k = np.count_nonzero(parts[0])
    delta = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - (spread[0] - spread[1] - spread[2])
    return bool(whole - sum(halves) > np.log2(n - 1.0) + delta)


def _clean(counts: Array) -> Array:
    return np.where(counts > LEAST_SHARE * counts.sum(axis=-1, keepdims=True), counts, 0.0)
