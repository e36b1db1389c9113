"""Rank statistics against scipy and published values."""

import numpy as np
import pytest
from scipy import stats

from calibayes.dependence.pairs import bonferroni
from calibayes.plots import plot_ranks
from calibayes.plots.rank_diagram import indistinguishable_groups
from calibayes.ranks import (
    average_ranks,
    critical_difference,
    friedman,
    holm,
    rank_summary,
    wilcoxon,
)

RNG = np.random.default_rng(0)
ERRORS = RNG.uniform(size=(12, 4)) + np.array([0.0, 0.1, 0.3, 0.9])


def test_critical_differences_of_demsar():
    """Demsar (2006), table 5 and section 3.2.2: q at 0.05 is 1.960 for two methods, 2.569 for four, 2.949 for seven."""
    for methods, q in ((2, 1.960), (4, 2.569), (7, 2.949)):
        scale = np.sqrt(methods * (methods + 1) / 60)
        assert critical_difference(methods, 10) / scale == pytest.approx(q, abs=0.001)


def test_friedman_is_that_of_scipy():
    statistic, p = friedman(ERRORS)
    expected = stats.friedmanchisquare(*ERRORS.T)
    assert (statistic, p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert friedman(np.ones((5, 3))) == (0.0, 1.0)
    with pytest.raises(ValueError, match="at least three"):
        friedman(ERRORS[:, :2])


def test_ranks_share_ties():
    assert average_ranks([[1.0, 1.0, 0.0]]).tolist() == [2.5, 2.5, 1.0]


def test_wilcoxon():
    assert wilcoxon(ERRORS[:, 0], ERRORS[:, 3]) == pytest.approx(
        stats.wilcoxon(ERRORS[:, 0], ERRORS[:, 3], method="exact").pvalue
    )
    assert wilcoxon(ERRORS[:, 0], ERRORS[:, 0]) == 1.0


def test_corrected_p_values_are_not_below_the_uncorrected_ones():
    p = RNG.uniform(size=6) ** 3
    assert (holm(p) >= p).all()
    assert (bonferroni(p) >= holm(p)).all()
    assert (np.diff(holm(np.sort(p))) >= 0).all()


def test_summary_and_its_diagram():
    summary = rank_summary(ERRORS, ["a", "b", "c", "d"], correction=bonferroni)
    assert summary.average_ranks.sum() == pytest.approx(10)
    assert len(summary.pairs) == len(summary.pair_p) == 6
    text = " ".join(label.get_text() for label in plot_ranks(summary).texts)
    assert "critical difference 1.35" in text
    assert "d (" in text
    with pytest.raises(ValueError, match="3 names"):
        rank_summary(ERRORS, ["a", "b", "c"])
    with pytest.raises(ValueError, match="array of finite numbers"):
        average_ranks([1.0, 2.0])


def test_bars_join_ranks_within_the_critical_difference():
    assert indistinguishable_groups([1.0, 1.5, 2.2, 4.0], 1.0) == [(1.0, 1.5), (1.5, 2.2)]
    assert indistinguishable_groups([1.0, 3.0], 1.0) == []
