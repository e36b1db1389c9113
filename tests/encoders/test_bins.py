"""Bins: edges computed by hand, by an independent reference and from the literature."""

from math import log2

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.preprocessing import KBinsDiscretizer

from calibayes.encoders import (
    AdaptiveBins,
    InformedBins,
    KMeansBins,
    MDLBins,
    PairBins,
    QuantileBins,
    UniformBins,
)
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array
from calibayes.tables.table import Table

STRATEGIES = [
    KMeansBins(4),
    QuantileBins(4),
    UniformBins(4),
    MDLBins(),
    AdaptiveBins(few=3, parts=4),
    InformedBins(few=3, parts=4),
]
IDS = {"ids": lambda bins: type(bins).__name__}


def fitted(bins, columns, codes=None, weight=None):
    columns = np.asarray(columns, dtype=float)
    weight = np.ones(len(columns)) if weight is None else weight
    codes = np.zeros(len(columns), dtype=int) if codes is None else codes
    return bins.fit(summary_of(read_array(columns), weight, codes), range(columns.shape[1]))


def noisy(n=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    columns = np.round(rng.normal(size=(n, 3)) + codes[:, None] * np.array([3.0, 1.0, 0.0]), 1)
    return columns, codes


@pytest.mark.parametrize("bins", STRATEGIES, **IDS)
class TestEveryStrategy:
    def test_weighted_rows_are_repeated_rows(self, bins):
        columns, codes = noisy()
        times = np.random.default_rng(1).integers(1, 4, size=len(codes))
        once = fitted(bins, columns, codes, times.astype(float))
        often = fitted(bins, np.repeat(columns, times, axis=0), np.repeat(codes, times))
        for left, right in zip(once.edges, often.edges, strict=True):
            assert_allclose(left, right, rtol=1e-12)

    def test_edges_do_not_depend_on_the_order_of_rows(self, bins):
        columns, codes = noisy()
        order = np.random.default_rng(2).permutation(len(codes))
        for left, right in zip(
            fitted(bins, columns, codes).edges, fitted(bins, columns[order], codes[order]).edges, strict=True
        ):
            assert_array_equal(left, right)

    def test_missing_values_have_no_bin_and_do_not_change_the_edges(self, bins):
        columns, codes = noisy()
        with_missing = np.vstack([columns, np.full((20, 3), np.nan)])
        complete, incomplete = (
            fitted(bins, columns, codes),
            fitted(bins, with_missing, np.append(codes, np.zeros(20, dtype=int))),
        )
        for left, right in zip(complete.edges, incomplete.edges, strict=True):
            assert_array_equal(left, right)
        assert (incomplete.encode(read_array(with_missing))[300:] == -1).all()

    def test_values_outside_the_training_range_are_in_the_outermost_bins(self, bins):
        trained = fitted(bins, *noisy())
        levels = np.array(trained.layout()["levels"])
        assert_array_equal(trained.encode(read_array(np.full((1, 3), -1e9)))[0], [0, 0, 0])
        assert_array_equal(trained.encode(read_array(np.full((1, 3), 1e9)))[0], levels - 1)

    def test_decoded_codes_are_encoded_as_the_same_codes(self, bins):
        columns, codes = noisy()
        trained = fitted(bins, columns, codes)
        encoded = trained.encode(read_array(columns))
        decoded = np.stack(trained.decode(encoded, np.random.default_rng(0)), axis=1)
        assert_array_equal(trained.encode(read_array(decoded)), encoded)

    def test_a_constant_column_has_one_bin(self, bins):
        trained = fitted(bins, np.full((10, 1), 7.0), np.arange(10) % 2)
        assert trained.layout()["levels"] == (1,)
        assert trained.decode(np.zeros((1, 1), dtype=int), np.random.default_rng(0))[0].tolist() == [7.0]


@pytest.mark.parametrize("bins", STRATEGIES[:3], **IDS)
def test_few_distinct_values_have_a_bin_each(bins):
    trained = fitted(bins, [[1.0], [1.0], [1.0], [2.0], [8.0]])
    assert_allclose(trained.edges[0], [1.0, 1.5, 5.0, 8.0])
    assert trained.remarks() == ["3 distinct values, 3 bins"]


def test_quantile_bins_have_equal_weight():
    trained = fitted(QuantileBins(4), np.arange(12.0)[:, None])
    assert_allclose(trained.edges[0], [0.0, 2.5, 5.5, 8.5, 11.0])
    heavy = fitted(QuantileBins(4), np.arange(12.0)[:, None], weight=np.array([100.0] + [1.0] * 11))
    assert_allclose(heavy.edges[0], [0.0, 0.5, 11.0])  # the first value alone is more than three quarters
    continuous = np.random.default_rng(0).normal(size=(10_000, 1))
    sizes = np.bincount(fitted(QuantileBins(7), continuous).encode(read_array(continuous))[:, 0])
    assert sizes.max() - sizes.min() <= 1


def test_uniform_bins_are_those_of_scikit_learn():
    columns, _ = noisy()
    theirs = KBinsDiscretizer(6, encode="ordinal", strategy="uniform").fit(columns)
    for edges, expected in zip(fitted(UniformBins(6), columns).edges, theirs.bin_edges_, strict=True):
        assert_allclose(edges, expected)


def entropy(labels):
    shares = [labels.count(label) / len(labels) for label in set(labels)]
    return -sum(share * log2(share) for share in shares)


def plain_cuts(pairs):
    """Fayyad and Irani (1993), line by line, over sorted (value, label) pairs."""
    labels = [label for _, label in pairs]
    n, best = len(pairs), None
    for i in range(1, n):
        if pairs[i - 1][0] < pairs[i][0]:
            left, right = labels[:i], labels[i:]
            after = (len(left) * entropy(left) + len(right) * entropy(right)) / n
            if best is None or after < best[0] - 1e-12:
                best = (after, i)
    if best is None:
        return []
    after, i = best
    left, right = labels[:i], labels[i:]
    k, k1, k2 = (len(set(part)) for part in (labels, left, right))
    delta = log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - after <= log2(n - 1) / n + delta / n:
        return []
    middle = (pairs[i - 1][0] + pairs[i][0]) / 2
    return [*plain_cuts(pairs[:i]), middle, *plain_cuts(pairs[i:])]


class TestMDL:
    def test_iris_as_published(self):
        """The cut points of the R package discretization, mdlp(iris)."""
        X, y = load_iris(return_X_y=True)
        expected = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
        for edges, inner in zip(fitted(MDLBins(), X, y).edges, expected, strict=True):
            assert_allclose(edges[1:-1], inner)

    @pytest.mark.parametrize("seed", range(5))
    def test_equals_a_plain_reference(self, seed):
        columns, codes = noisy(200, seed)
        for column, edges in zip(columns.T, fitted(MDLBins(), columns, codes).edges, strict=True):
            assert_allclose(edges[1:-1], plain_cuts(sorted(zip(column, codes.tolist(), strict=True))))

    def test_rows_without_a_label_are_ignored(self):
        columns, codes = noisy()
        more = np.vstack([columns, np.random.default_rng(3).uniform(-1, 2, size=(100, 3))])
        semi = fitted(MDLBins(), more, np.append(codes, np.full(100, -1)))
        for left, right in zip(fitted(MDLBins(), columns, codes).edges, semi.edges, strict=True):
            assert_array_equal(left[1:-1], right[1:-1])
        assert fitted(MDLBins(), columns, np.full(300, -1)).layout()["levels"] == (1, 1, 1)

    def test_noise_has_one_bin_and_a_remark(self):
        rng = np.random.default_rng(0)
        trained = fitted(MDLBins(), rng.normal(size=(500, 1)), rng.integers(2, size=500))
        assert trained.layout()["levels"] == (1,)
        assert trained.remarks() == ["500 distinct values, 1 bin: it does not separate the classes"]

    def test_weights_below_one(self):
        columns, codes = noisy()
        few = fitted(MDLBins(), columns, codes, np.full(300, 1e-3))
        assert few.layout()["levels"] == (1, 1, 1)  # a total weight of 0.3 rows is worth no edge
        thirds = fitted(MDLBins(), np.repeat(columns, 3, axis=0), np.repeat(codes, 3), np.full(900, 1 / 3))
        for left, right in zip(fitted(MDLBins(), columns, codes).edges, thirds.edges, strict=True):
            assert_allclose(left, right)

    def test_many_cuts(self):
        column = np.arange(20_000.0)[:, None]
        edges = fitted(MDLBins(), column, (np.arange(20_000) // 100) % 2).edges[0]
        assert_allclose(edges[1:-1], np.arange(99.5, 19_900, 100))

    def test_raises_without_class_codes(self):
        with pytest.raises(ValueError, match="needs the class codes"):
            MDLBins().fit(summary_of(read_array(np.ones((3, 1))), np.ones(3)), [0])


def test_at_least_one_bin():
    with pytest.raises(ValueError, match="at least one bin"):
        QuantileBins(0)


def test_pair_bins_are_coarser_with_more_columns():
    rng = np.random.default_rng(0)
    for d, most in ((5, 64), (100, 41), (700, 5)):
        columns = rng.normal(size=(400, d))
        levels = fitted(PairBins(), columns).layout()["levels"]
        assert max(levels) <= most
        assert min(levels) >= most // 2
        assert sum(levels) ** 2 / 2 <= 2**23 * 1.1


class TestInformed:
    def test_edges_are_those_of_pair_bins_and_of_mdl(self):
        columns, codes = noisy()
        edges = fitted(InformedBins(few=20, parts=4), columns, codes).edges
        for informed, adaptive, mdl in zip(
            edges,
            fitted(PairBins(few=20, parts=4), columns, codes).edges,
            fitted(MDLBins(), columns, codes).edges,
            strict=True,
        ):
            assert_array_equal(informed, np.union1d(adaptive, mdl))

    def test_the_number_of_further_edges_is_limited(self):
        column = np.arange(20_000.0)[:, None]
        edges = fitted(InformedBins(few=16, parts=4), column, (np.arange(20_000) // 100) % 2).edges[0]
        assert 16 <= len(edges) - 2 <= 16 + 6

    def test_few_distinct_values_have_a_bin_each_and_no_more(self):
        column = (np.arange(300) % 7.0)[:, None]
        assert len(fitted(InformedBins(), column, np.arange(300) % 7).edges[0]) == 8


def by_column(columns, kinds=(np.float64, np.float32, np.int16)):
    """The same numbers as a table of columns of several types, with a column of text."""
    typed = [column.astype(kind) for column, kind in zip(columns.T, kinds, strict=True)]
    return Table(("a", "b", "c", "d"), (*typed, np.full(len(columns), "x", dtype=object)))


def test_columns_of_several_types_have_the_codes_of_a_matrix():
    columns = np.round(4 * noisy(n=5000)[0])
    columns[::7, :2] = np.nan
    for bins in (QuantileBins(40), UniformBins(5), AdaptiveBins()):
        of_matrix = fitted(bins, columns)
        assert_array_equal(of_matrix.encode(by_column(columns)), of_matrix.encode(read_array(columns)))


@pytest.mark.parametrize(("value", "problem"), [(np.inf, "infinity"), (-1e101, "values beyond 1e\\+100")])
def test_columns_of_several_types_refuse_numbers_that_are_too_large(value, problem):
    columns, _ = noisy()
    bins, table = fitted(QuantileBins(4), columns), by_column(columns)
    table.content[0][5] = value
    with pytest.raises(ValueError, match=f"column 'a' contains {problem}"):
        bins.encode(table)
    with pytest.raises(ValueError, match="column 'd' does not hold numbers"):
        fitted(QuantileBins(4), np.hstack([columns, columns[:, :1]])).encode(table)
