"""Clusters of each class, from which the components of a mixture are started."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from calibayes import FewRowsWarning
from calibayes.encoders import Clusters
from calibayes.kernels import cut_points
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array


def clumps(n=200, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    return rng.normal(size=(n, 2)) * [1.0, 50.0] + np.array([[0, 0], [6, 400], [3, -300]])[
        rng.integers(0, 3, n)
    ], codes


def fitted_seeds(X, codes, weight=None, **options):
    weight = np.ones(len(X)) if weight is None else weight
    return Clusters(**options).fit(summary_of(read_array(X), weight, codes), range(X.shape[1])).seeds


def test_centers_are_as_good_as_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(300, 4)), rng.uniform(0.5, 3.0, 300)
    for count in (2, 3, 5):
        ours = cut_points.cluster_centers(rows, weight, count, seed=0)
        other = KMeans(count, n_init=20, random_state=0).fit(rows, sample_weight=weight)
        inertia = weight @ cut_points.squared_distances(rows, ours).min(axis=1)
        assert inertia <= 1.01 * other.inertia_


def test_centers_do_not_depend_on_the_order_and_repetition_of_rows():
    X, codes = clumps()
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    plain = fitted_seeds(X[weight > 0], codes[weight > 0], weight[weight > 0], components=3)
    order = np.random.default_rng(2).permutation(np.repeat(np.arange(len(X)), weight.astype(int)))
    for ours, repeated in zip(plain, fitted_seeds(X[order], codes[order], components=3), strict=True):
        assert_allclose(ours, repeated, rtol=1e-10)


def test_rounding_errors_do_not_decide_between_equal_distances():
    """Whole numbers have many rows at equal distances from two centers, and a mean of 3 equals a known 3 but for rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, codes = rng.poisson(2.0, size=(60, 3)).astype(float), np.arange(60) % 2
        X[rng.random(X.shape) < 0.1] = np.nan
        order = rng.permutation(60)
        pairs = zip(
            fitted_seeds(X, codes, components=3),
            fitted_seeds(X[order], codes[order], components=3),
            strict=True,
        )
        assert all(np.allclose(ours, other, rtol=1e-8) for ours, other in pairs), seed


def test_centers_scale_with_the_units_of_columns():
    X, codes = clumps()
    for plain, scaled in zip(
        fitted_seeds(X, codes, components=3),
        fitted_seeds(X * [1e3, 1e-3] + 7, codes, components=3),
        strict=True,
    ):
        assert_allclose(plain * [1e3, 1e-3] + 7, scaled, rtol=1e-6)


def test_rows_without_a_label_are_ignored():
    X, codes = clumps()
    hidden = np.concatenate([codes, np.full(30, -1)])
    more = np.concatenate([X, X[:30]])
    assert len(fitted_seeds(more, hidden)) == 2
    assert_array_equal([len(seeds) for seeds in fitted_seeds(more, hidden, components=(1, 4))], [1, 4])


def test_missing_values_give_finite_centers():
    X, codes = clumps()
    X[::3, 0], X[1::3, 1] = np.nan, np.nan
    assert all(np.isfinite(seeds).all() for seeds in fitted_seeds(X, codes, components=3))
    X[codes == 1, 0] = np.nan
    assert all(np.isfinite(seeds).all() for seeds in fitted_seeds(X, codes, components=3))


def test_fewer_distinct_rows_than_components():
    X, codes = clumps(8)
    X[codes == 1] = X[1]
    with pytest.warns(FewRowsWarning, match="class number 1 \\(1 row\\)"):
        seeds = fitted_seeds(X, codes, components=3)
    assert [len(class_seeds) for class_seeds in seeds] == [3, 1]


def test_bad_numbers_of_components():
    for components in (0, 1.5, "two", [], [2, 0]):
        with pytest.raises(ValueError, match="components must be a positive integer, or one for each class"):
            Clusters(components)
    X, codes = clumps()
    with pytest.raises(ValueError, match="given for 1 classes, but there are 2"):
        fitted_seeds(X, codes, components=(2,))


def test_encoders_with_different_clusters_are_not_united():
    X, codes = clumps()
    table = read_array(X)
    parts = [
        Clusters(2, seed).fit(summary_of(table, np.ones(len(X)), np.roll(codes, seed)), range(2))
        for seed in (0, 1)
    ]
    with pytest.raises(ValueError, match="models with different clusters"):
        parts[0].unite(parts[1])
    assert Clusters(1).fit(summary_of(table, np.ones(len(X)), codes), range(2)).data_dependence == ""


def test_flags_in_all_combinations_have_the_same_clusters_in_any_order_of_columns():
    """Only how often its rows occur tells such a column from another."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, codes = (rng.random((400, 4)) < [0.5, 0.45, 0.55, 0.5]).astype(float), np.arange(400) % 2
        order = rng.permutation(4)
        pairs = zip(
            fitted_seeds(X, codes, components=3),
            fitted_seeds(X[:, order], codes, components=3),
            strict=True,
        )
        assert all(np.allclose(ours[:, order], other, rtol=1e-8) for ours, other in pairs), seed
