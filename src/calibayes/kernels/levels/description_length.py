"""Supervised cut points of an ordered column by minimum description length (Fayyad and Irani 1993)."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from calibayes.core.protocols import Array

LEAST_SHARE = 1e-12
"""Share of the rows below which a class counts as absent: rounding of differences of cumulative weights."""


def cuts(counts: Array) -> Array:
    """Accepted cut points, ascending: cut ``p`` separates the values before position ``p`` from the others.

    ``counts`` (values, k) are the weights of each class at each value, values ascending. Each interval is split
    recursively at the cut of least class entropy, as long as `is_accepted` holds.
    """
    cumulative = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    candidates = boundary_points(counts)
    pending: list[tuple[int, int]] = [(0, len(counts))]
    accepted: list[int] = []
    while pending:
        low, high = pending.pop()
        inside = candidates[slice(*np.searchsorted(candidates, (low + 1, high)))]
        if not len(inside):
            continue
        left = _without_rounding(cumulative[inside] - cumulative[low])
        right = _without_rounding(cumulative[high] - cumulative[inside])
        best = int(np.argmin(entropy_bits(left) + entropy_bits(right)))
        if is_accepted(left[best], right[best]):
            accepted.append(int(inside[best]))
            pending += [(low, accepted[-1]), (accepted[-1], high)]
    return np.array(sorted(accepted), dtype=np.intp)


def boundary_points(counts: Array) -> Array:
    """Positions where a cut of least entropy can be: all but those between two pure values of the same class."""
    pure, first = np.count_nonzero(counts, axis=1) == 1, np.argmax(counts > 0, axis=1)
    same = pure[1:] & pure[:-1] & (first[1:] == first[:-1])
    return np.flatnonzero(~same) + 1


def entropy_bits(counts: Array) -> Array:
    """Number of rows times the entropy of their classes in bits, over the last axis of (..., k)."""
    total = counts.sum(axis=-1)
    return np.asarray((xlogy(total, total) - xlogy(counts, counts).sum(axis=-1)) / np.log(2.0))


def is_accepted(left: Array, right: Array) -> bool:
    """Whether a cut into class counts (k,) shortens the description: Fayyad and Irani's criterion times the row count."""
    parts = (left + right, left, right)
    n = float(parts[0].sum())
    if n <= 1.0:
        return False
    before, *after = (float(entropy_bits(part)) for part in parts)
    penalties = [
        np.count_nonzero(part) * float(entropy_bits(part)) / float(part.sum()) for part in parts
    ]  # number of classes times entropy
    k = np.count_nonzero(parts[0])
    delta = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0**-k) - (penalties[0] - penalties[1] - penalties[2])
    return bool(before - sum(after) > np.log2(n - 1.0) + delta)


def _without_rounding(counts: Array) -> Array:
    return np.where(counts > LEAST_SHARE * counts.sum(axis=-1, keepdims=True), counts, 0.0)
