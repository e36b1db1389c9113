"""Measures of dependence against their definitions."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import mutual_info_score

from calibayes.dependence import (
    HSIC,
    BestFraction,
    Dependence,
    MutualInformation,
    Pearson,
    Permuted,
    SignificantPairs,
    Spearman,
    TopFraction,
    benjamini_hochberg,
    bonferroni,
)
from calibayes.dependence.measures import median_squared_gaps
from calibayes.engines.serial_and_threads import one_thread

MEASURES = [HSIC(), HSIC(exact_rows=0), Pearson(), Spearman(), MutualInformation()]


def rows(n=57, d=5, seed=0):
    """Dependent, tied, heavy-tailed and independent columns."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n, d))
    columns[:, 1] += columns[:, 0] ** 2
    columns[:, 2] = np.round(columns[:, 2] + columns[:, 0])
    columns[:, 3] = rng.standard_t(2, size=n)
    return columns


def direct_hsic(columns):
    """tr(K H L H) / n^2, with the median over pairs of different rows."""
    n = len(columns)
    center, upper = np.eye(n) - 1 / n, np.triu_indices(n, 1)
    gaps = [(column[:, None] - column) ** 2 for column in columns.T]
    grams = [np.exp(-gap / np.median(gap[upper])) for gap in gaps]
    return np.array([[np.trace(k @ center @ m @ center) / n**2 for m in grams] for k in grams])


@pytest.mark.parametrize("n", [7, 40, 57, 200])
def test_hsic_is_the_direct_formula(n):
    assert_allclose(HSIC().measure(rows(n), np.ones(n)).statistic, direct_hsic(rows(n)), atol=1e-12)


def test_hsic_in_blocks_is_hsic(monkeypatch):
    monkeypatch.setattr("calibayes.dependence.measures.CELLS_PER_BLOCK", 57 * 5 * 4)
    assert_allclose(HSIC().measure(rows(), np.ones(57)).statistic, direct_hsic(rows()), atol=1e-12)


@pytest.mark.parametrize("power", [1, 3], ids=["light tails", "heavy tails"])
def test_low_rank_hsic_agrees_with_exact_hsic_and_its_ranking(power):
    mixed = rows(2000, 9) @ np.random.default_rng(1).normal(size=(9, 9))
    columns, weights = mixed**power, np.ones(2000)
    upper = np.triu_indices(9, 1)
    exact, low_rank = (HSIC(exact_rows=m).measure(columns, weights).statistic[upper] for m in (2000, 0))
    assert_allclose(low_rank, exact, rtol=1e-3, atol=1e-6)
    assert_array_equal(np.argsort(-low_rank)[:20], np.argsort(-exact)[:20])


@pytest.mark.parametrize(("n", "d"), [(1000, 100), (20_000, 10)])
def test_hsic_of_many_rows_is_fast(n, d):
    columns = rows(n, d)
    with one_thread():
        start = time.process_time()
        HSIC().measure(columns, np.ones(n))
        assert time.process_time() - start < 3


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, 1.0, 3.0, 3.0], [1.0, 5.0, 2.0, 8.0, 8.5]])
def test_median_gap_is_that_of_all_pairs(values):
    column = np.array(values)
    gaps = ((column[:, None] - column) ** 2)[np.triu_indices(len(column), 1)]
    assert_allclose(median_squared_gaps(column[:, None], np.ones(len(column))), [np.median(gaps)])


def test_median_gap_of_mostly_equal_rows_is_twice_the_variance():
    column = np.array([0.0] * 9 + [1.0])
    assert_allclose(median_squared_gaps(column[:, None], np.ones(10)), [2 * column.var()])


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_weights_count_as_copies(measure):
    columns = rows()
    copies = np.random.default_rng(1).integers(1, 4, len(columns))
    weighted = measure.measure(columns, copies.astype(float))
    repeated = measure.measure(np.repeat(columns, copies, axis=0), np.ones(copies.sum()))
    assert_allclose(weighted.statistic, repeated.statistic, atol=1e-6)
    assert_allclose(weighted.p_value, repeated.p_value, atol=1e-4)


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_a_constant_column_is_independent_of_all(measure):
    columns = rows()
    columns[:, 0] = 3.0
    result = measure.measure(columns, np.ones(len(columns)))
    assert_allclose(result.statistic[0, 1:], 0, atol=1e-9)
    assert_allclose(result.p_value[0, 1:], 1, atol=1e-6)


@pytest.mark.parametrize(("measure", "oracle"), [(Pearson(), stats.pearsonr), (Spearman(), stats.spearmanr)])
def test_correlations_are_scipys(measure, oracle):
    columns = rows()
    result = measure.measure(columns, np.ones(len(columns)))
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        expected = oracle(columns[:, i], columns[:, j])
        assert_allclose([result.statistic[i, j], result.p_value[i, j]], expected, rtol=1e-6, atol=1e-12)


def test_mutual_information_is_scikit_learns():
    columns = np.floor(np.argsort(np.argsort(rows(60)[:, [0, 1, 3, 4]], axis=0), axis=0) / 15)
    information = MutualInformation(bins=4).measure(columns, np.ones(60)).statistic
    assert_allclose(information[0, 1], mutual_info_score(columns[:, 0], columns[:, 1]))


def test_adjusted_p_values_are_scipys():
    p_values = np.random.default_rng(0).random(30) ** 2
    assert_allclose(benjamini_hochberg(p_values), stats.false_discovery_control(p_values))
    assert_allclose(bonferroni(p_values), np.minimum(30 * p_values, 1))


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_p_values_of_independent_columns_are_about_uniform(measure):
    columns = np.random.default_rng(3).normal(size=(100, 60))
    p_values = measure.measure(columns, np.ones(100)).p_value[np.triu_indices(60, 1)]
    assert 0.02 < np.mean(p_values < 0.05) < 0.09


def test_permutations_agree_with_the_approximation():
    columns, weights = rows(80), np.ones(80)
    upper = np.triu_indices(5, 1)
    approximate = HSIC().measure(columns, weights).p_value[upper]
    permuted = Permuted(HSIC(), times=300).measure(columns, weights).p_value[upper]
    assert permuted.min() == 1 / 301
    assert_allclose(permuted, approximate, atol=0.08)


def table(statistics, p_values):
    shape = (1, 3, 3)
    s, p = np.zeros(shape), np.ones(shape)
    s[:, *np.triu_indices(3, 1)], p[:, *np.triu_indices(3, 1)] = statistics, p_values
    return Dependence("any", ("a", "b", "c"), ("all",), s, p)


def test_selections_keep_the_most_dependent_pairs():
    dependence = table([0.1, -0.9, 0.5], [0.2, 0.001, 0.03])
    assert [list(candidate) for candidate in BestFraction((0.0, 0.3, 1.0)).candidates(dependence)] == [
        [],
        [1],
        [1, 2, 0],
    ]
    assert [list(candidate) for candidate in TopFraction(0.5).candidates(dependence)] == [[1, 2]]
    assert [list(candidate) for candidate in SignificantPairs(0.05).candidates(dependence)] == [[1, 2]]
    assert [list(candidate) for candidate in SignificantPairs(0.05, bonferroni).candidates(dependence)] == [
        [1]
    ]
    with pytest.raises(ValueError, match="between 0 and 1"):
        TopFraction(1.5).candidates(dependence)
