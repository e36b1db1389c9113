"""Tests whether counts of two samples come from one distribution, plain or after their classes are weighted.

Cells are merged by the counts of both samples together, so that merging does not depend on which sample a row is in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from calibayes.core.protocols import Array

LEAST_EXPECTED = 5.0
"""Least expected count of a merged cell in the smaller sample, for the chi-square distribution to hold."""
MOST_ORDERED = 10
"""Merged cells of a number: more would lower the power against a gradual change."""


class SampleCounts(NamedTuple):
    """Rows by cell of two samples; the last cell is a missing value."""

    old: Array
    """(k, cells) by class."""
    new: Array
    """(cells,)"""
    is_ordered: bool
    """Whether all cells but the last are in the order of a number."""

    @property
    def both(self) -> Array:
        """Rows by cell of both samples, (cells,)."""
        return self.old.sum(axis=0) + self.new


def merged(counts: SampleCounts) -> SampleCounts:
    """The counts with small cells merged: neighbors of a number, the rarest levels otherwise."""
    groups = merged_cells(counts)
    kept = groups >= 0
    size = groups.max(initial=-1) + 1
    old = np.stack([np.bincount(groups[kept], row[kept], size) for row in counts.old])
    return SampleCounts(old, np.bincount(groups[kept], counts.new[kept], size), counts.is_ordered)


def merged_cells(counts: SampleCounts) -> Array:
    """The merged cell of each cell, (cells,); -1 for missing numbers that are too few."""
    both = counts.both
    least = LEAST_EXPECTED * both.sum() / max(min(counts.old.sum(), counts.new.sum()), 1.0)
    if not counts.is_ordered:
        order = np.argsort(-both, kind="stable")
        return _greedy(both[order], least)[np.argsort(order)]
    groups = _greedy(both[:-1], max(least, both[:-1].sum() / MOST_ORDERED))
    return np.append(groups, groups.max(initial=-1) + 1 if both[-1] >= least else -1)


def _greedy(sizes: Array, least: float) -> Array:
    """Neighbors joined until each group has a size; what is left over joins the last group."""
    groups, group, total, remaining = np.zeros(len(sizes), dtype=int), 0, 0.0, float(sizes.sum())
    for cell, size in enumerate(sizes):
        groups[cell] = group
        total, remaining = total + size, remaining - size
        if total >= least and remaining >= least:
            group, total = group + 1, 0.0
    return groups


def homogeneity(counts: SampleCounts) -> float:
    """p-value of equal distributions: the smaller of a chi-square and a rank test, times two; a chi-square test of levels."""
    old = counts._replace(old=counts.old.sum(axis=0, keepdims=True))
    square = _chi_square(merged(old))
    return min(1.0, 2 * min(square, _rank_test(old))) if counts.is_ordered else square


def _chi_square(counts: SampleCounts) -> float:
    both, total = counts.both, counts.both.sum()
    if len(both) < 2 or not counts.new.sum() or not counts.old.sum():
        return 1.0
    expected = both * (counts.new.sum() / total)
    variance = expected * (counts.old.sum() / total)
    statistic = ((counts.new - expected) ** 2 / variance).sum() * (total - 1) / total
    return float(stats.chi2.sf(statistic, len(both) - 1))


def _rank_test(counts: SampleCounts) -> float:
    """Two-sided p-value of the test of Wilcoxon, Mann and Whitney, with its exact variance under ties."""
    old, new, both = counts.old.sum(axis=0)[:-1], counts.new[:-1], counts.both[:-1]
    total, n = both.sum(), new.sum()
    ranks = middle_ranks(both)
    spread = (both * (ranks - (total + 1) / 2) ** 2).sum() / max(total - 1, 1)
    variance = spread * n * old.sum() / max(total, 1)
    if not variance > 0:
        return 1.0
    return float(2 * stats.norm.sf(abs((new * ranks).sum() - n * (total + 1) / 2) / np.sqrt(variance)))


def middle_ranks(both: Array) -> Array:
    """Mean rank of the rows of each cell, in the order of the cells."""
    return np.asarray(np.cumsum(both) - (both - 1) / 2)


def superiority(counts: SampleCounts) -> float:
    """Probability that a new number exceeds an old one, ties counted half; missing values left out."""
    old, new = counts.old.sum(axis=0)[:-1], counts.new[:-1]
    if not old.sum() or not new.sum():
        return 0.5
    below = np.cumsum(old) - old / 2
    return float((new * below).sum() / (new.sum() * old.sum()))


def mixture_fit(counts: SampleCounts, frequencies: Array) -> float:
    """p-value of new rows that are a mixture of the old classes, the largest over class frequencies (draws, k)."""
    small = merged(counts)
    if len(small.new) < 2 or not small.new.sum():
        return 1.0
    squares = _squared_norms(*_differences(small, frequencies))
    freedom, p = _freedom(small), len(small.new) - 1
    square = float(stats.f.sf(squares.min() * (freedom - p + 1) / (freedom * p), p, freedom - p + 1))
    return min(1.0, 2 * min(square, _mixture_rank_test(counts, frequencies))) if counts.is_ordered else square


def _freedom(counts: SampleCounts) -> float:
    """Degrees of freedom of the covariance of a difference (Satterthwaite): few if there are few old rows and many new ones.

    The part of the covariance that comes from the new rows is that of the mixture, which is known much better than that of
    each class.
    """
    m, n = float(counts.old.sum()), float(counts.new.sum())
    return max(m - len(counts.old), float(len(counts.new))) * (1 + m / n) ** 2


def _differences(counts: SampleCounts, frequencies: Array) -> tuple[Array, Array]:
    """Shares of the new rows minus those of the mixtures, (draws, cells), and their covariances if a mixture is true."""
    rows = counts.old.sum(axis=1)
    present = rows > 0
    old, rows, n = counts.old[present], rows[present], counts.new.sum()
    shares = frequencies[:, present] + 1e-9
    shares = shares / shares.sum(axis=1, keepdims=True)
    guess = (old + 1e-3) / (old + 1e-3).sum(axis=1, keepdims=True)
    joint = shares[:, :, None] * guess
    pooled = old + counts.new * joint / joint.sum(axis=1, keepdims=True)
    pooled = pooled / pooled.sum(axis=2, keepdims=True)
    covariance = _multinomial(np.einsum("bc,bcg->bg", shares, pooled)) / n
    covariance += np.einsum("bc,bcgh->bgh", shares**2 / rows, _multinomial(pooled))
    return counts.new / n - (shares / rows) @ old, covariance


def _multinomial(shares: Array) -> Array:
    """Covariance matrices (..., cells, cells) of one draw."""
    return shares[..., None] * np.eye(shares.shape[-1]) - shares[..., None] * shares[..., None, :]


def _squared_norms(difference: Array, covariance: Array) -> Array:
    """Squared lengths in the metric of covariances whose rows sum to zero: those of all cells but one."""
    inverse = np.linalg.pinv(covariance[:, :-1, :-1], hermitian=True)
    return np.einsum("bg,bgh,bh->b", difference[:, :-1], inverse, difference[:, :-1])


def _mixture_rank_test(counts: SampleCounts, frequencies: Array) -> float:
    """Two-sided p-value of equal mean ranks of known numbers, the largest over class frequencies."""
    known = SampleCounts(counts.old[:, :-1], counts.new[:-1], True)
    if not known.new.sum() or not known.old.sum():
        return 1.0
    difference, covariance = _differences(known, frequencies)
    ranks = middle_ranks(known.both) / known.both.sum()
    variance = np.einsum("g,bgh,h->b", ranks, covariance, ranks)
    if not (variance > 0).all():
        return 1.0
    standardized = (np.abs(difference @ ranks) / np.sqrt(variance)).min()
    return float(2 * stats.t.sf(standardized, _freedom(known)))


def equal_means(old: Array, new: Array) -> float:
    """p-value of equal mean vectors of rows (m, k) and (n, k): Hotelling's statistic with the covariance of all rows."""
    both = np.concatenate([old, new])
    centered = both - both.mean(axis=0)
    covariance = centered.T @ centered / (len(both) - 1) * (1 / len(old) + 1 / len(new))
    values, axes = np.linalg.eigh(covariance)
    kept = values > 1e-9 * max(values.max(initial=0.0), 1e-300)
    projected = ((new.mean(axis=0) - old.mean(axis=0)) @ axes)[kept]
    return float(stats.chi2.sf((projected**2 / values[kept]).sum(), max(int(kept.sum()), 1)))


def holm(p_values: Array) -> Array:
    """p-values adjusted for their number by Holm's method: all errors together are as frequent as the level says."""
    order = np.argsort(p_values)
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return np.asarray(adjusted[np.argsort(order)])
