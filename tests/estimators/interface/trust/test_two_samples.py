"""Tests of two samples: p-values are uniform without a change, and small with one."""

import numpy as np
import pytest
from scipy import stats

from calibayes.analysis.two_sample_tests import (
    SampleCounts,
    equal_means,
    holm,
    homogeneity,
    merged,
    mixture_fit,
    superiority,
)

CLASSES = np.array([[0.5, 0.3, 0.1, 0.1, 0.0], [0.1, 0.1, 0.3, 0.4, 0.1]])
"""Shares of cells by class; the last is a missing value."""


def drawn(rng, old, new, shares=(0.5, 0.5), cells=CLASSES, *, ordered=True):
    return SampleCounts(
        np.stack([rng.multinomial(old // 2, row) for row in CLASSES]),
        rng.multinomial(new, np.array(shares) @ cells),
        ordered,
    )


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("old", "new"), [(200, 30), (60, 2000), (1000, 1000)])
def test_false_alarms_are_as_frequent_as_stated(old, new, ordered):
    rng, truth = np.random.default_rng(old), np.array([[0.5, 0.5]])
    pairs = [drawn(rng, old, new, ordered=ordered) for _ in range(300)]
    assert np.mean([homogeneity(pair) <= 0.05 for pair in pairs]) < 0.08
    assert np.mean([mixture_fit(pair, truth) <= 0.05 for pair in pairs]) < 0.08


@pytest.mark.parametrize("ordered", [True, False])
def test_other_class_frequencies_change_the_distribution_and_fit_a_mixture(ordered):
    counts = drawn(np.random.default_rng(0), 1000, 500, (0.9, 0.1), ordered=ordered)
    assert homogeneity(counts) < 1e-6
    assert mixture_fit(counts, np.array([[0.9, 0.1]])) > 0.01
    assert mixture_fit(counts, np.array([[0.5, 0.5]])) < 1e-6


@pytest.mark.parametrize("ordered", [True, False])
def test_another_distribution_within_a_class_fits_no_mixture(ordered):
    other = np.array([[0.1, 0.1, 0.1, 0.1, 0.6], CLASSES[1]])
    counts = drawn(np.random.default_rng(0), 1000, 500, cells=other, ordered=ordered)
    every = np.stack([np.linspace(0, 1, 50), np.linspace(1, 0, 50)], axis=1)
    assert mixture_fit(counts, every) < 1e-6


def test_the_chi_square_of_levels_is_that_of_scipy():
    counts = SampleCounts(np.array([[40, 30, 20, 25]]), np.array([20, 40, 10, 30]), False)
    both = counts.both.sum()
    found = stats.chi2_contingency(np.vstack([counts.old, counts.new]))
    assert homogeneity(counts) == pytest.approx(stats.chi2.sf(found.statistic * (both - 1) / both, 3))


def test_rank_statistic_and_superiority_are_those_of_scipy():
    rng = np.random.default_rng(1)
    old, new = rng.integers(0, 6, 80), rng.integers(1, 7, 50)
    counts = SampleCounts(np.bincount(old, minlength=8)[None], np.bincount(new, minlength=8), True)
    found = stats.mannwhitneyu(new, old, use_continuity=False, method="asymptotic")
    assert superiority(counts) == pytest.approx(found.statistic / (80 * 50))
    assert homogeneity(counts) <= 2 * found.pvalue * (1 + 1e-9)


def test_small_cells_are_merged_without_losing_rows():
    counts = SampleCounts(np.array([[100, 1, 0, 2, 90, 1]]), np.array([90, 0, 1, 1, 100, 0]), False)
    small = merged(counts)
    assert len(small.new) == 2
    assert (small.old.sum(), small.new.sum()) == (counts.old.sum(), counts.new.sum())


def test_nothing_is_found_without_rows_or_with_one_cell():
    assert homogeneity(SampleCounts(np.array([[5, 0]]), np.array([7, 0]), True)) == 1
    assert mixture_fit(SampleCounts(np.array([[5, 0]]), np.array([7, 0]), True), np.ones((1, 1))) == 1


def test_equal_means():
    rng = np.random.default_rng(2)
    p_values = [
        equal_means(rng.dirichlet([1, 2, 0.3], 60), rng.dirichlet([1, 2, 0.3], 40)) for _ in range(600)
    ]
    assert 0.02 < np.mean(np.array(p_values) <= 0.05) < 0.08
    assert equal_means(rng.dirichlet([1, 2], 60), rng.dirichlet([2, 1], 60)) < 1e-3


def test_holm():
    np.testing.assert_allclose(holm(np.array([0.03, 0.01, 0.5])), [0.06, 0.03, 0.5])
