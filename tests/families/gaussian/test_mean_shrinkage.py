"""Shrunken class means and inflated covariances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import NearestCentroid

from calibayes.core.protocols import Layout
from calibayes.families import Gaussian, Inflated, SoftThreshold, Tied, TiedDiagonal
from calibayes.families.covariance_shapes import Ridge


def fitted(family, x, y):
    """A bound family and its parameters."""
    k = int(y.max()) + 1
    layout = Layout(
        tuple("abc"[:k]), tuple(f"x{j}" for j in range(x.shape[1])), center=x.mean(0), variance=x.var(0)
    )
    bound = family.bind(layout)
    sums = bound.statistics(x, np.eye(k)[y])
    prepared = bound.prepare(sums)
    return prepared, prepared.parameters(sums)


def table(seed=0, n=60, d=12, k=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) * np.linspace(0.5, 3.0, d) + 0.4 * rng.normal(size=(k, d))[y], y


class TestSoftThreshold:
    @pytest.mark.parametrize("threshold", [0.3, 1.0, 2.5])
    def test_means_are_those_of_the_definition(self, threshold):
        x, y = table()
        _, parameters = fitted(Gaussian(TiedDiagonal(), means=SoftThreshold(threshold)), x, y)
        for c in range(3):
            for j in range(x.shape[1]):
                within = sum(np.sum((x[y == a, j] - x[y == a, j].mean()) ** 2) for a in range(3)) / len(x)
                error = np.sqrt(within * (1 / np.sum(y == c) - 1 / len(x)))
                difference = x[y == c, j].mean() - x[:, j].mean()
                shrunk = np.sign(difference) * max(abs(difference) - threshold * error, 0.0)
                assert parameters["mean"][c, j] == pytest.approx(x[:, j].mean() + shrunk)

    def test_zero_changes_nothing_and_a_large_threshold_leaves_the_common_mean(self):
        x, y = table()
        _, plain = fitted(Gaussian(TiedDiagonal()), x, y)
        _, zero = fitted(Gaussian(TiedDiagonal(), means=SoftThreshold(0.0)), x, y)
        _, large = fitted(Gaussian(TiedDiagonal(), means=SoftThreshold(1e3)), x, y)
        assert_allclose(zero["mean"], plain["mean"])
        assert_allclose(large["mean"], np.tile(x.mean(axis=0), (3, 1)))

    def test_the_same_columns_are_left_out_as_by_nearest_shrunken_centroids(self):
        """scikit-learn adds the median standard deviation to all of them: equal variances make that a factor of 2."""
        rng = np.random.default_rng(4)
        x, y = rng.normal(size=(80, 50)), np.arange(80) % 2
        x[:, :5] += np.outer(y, np.linspace(0.2, 2.0, 5))
        within = np.sqrt(sum(((x[y == c] - x[y == c].mean(0)) ** 2).sum(0) for c in (0, 1)) / 78)
        x = x / within
        theirs = NearestCentroid(shrink_threshold=0.5).fit(x, y)
        _, ours = fitted(Gaussian(TiedDiagonal(), means=SoftThreshold(2 * 0.5 * np.sqrt(80 / 78))), x, y)
        assert_allclose(ours["mean"], theirs.centroids_, atol=1e-10)

    @pytest.mark.parametrize("threshold", [-1.0, np.inf, np.nan])
    def test_invalid_thresholds_are_refused(self, threshold):
        with pytest.raises(ValueError, match="threshold must be finite and not negative"):
            SoftThreshold(threshold)


class TestInflated:
    @pytest.mark.parametrize("shape", [Tied(), TiedDiagonal()])
    def test_divides_differences_of_log_densities(self, shape):
        x, y = table()
        plain, plain_parameters = fitted(Gaussian(shape), x, y)
        inflated, parameters = fitted(Gaussian(shape, regularizer=Inflated(4.0)), x, y)
        before, after = plain.log_density(x, plain_parameters), inflated.log_density(x, parameters)
        assert_allclose(after - after[:, :1], (before - before[:, :1]) / 4.0, atol=1e-10)

    def test_follows_another_regularizer(self):
        x, y = table()
        _, inner = fitted(Gaussian(TiedDiagonal(), regularizer=Ridge(0.3)), x, y)
        _, both = fitted(Gaussian(TiedDiagonal(), regularizer=Inflated(2.0, Ridge(0.3))), x, y)
        assert_allclose(both["variance"], 2.0 * inner["variance"])

    @pytest.mark.parametrize("factor", [0.0, -1.0, np.inf, np.nan])
    def test_invalid_factors_are_refused(self, factor):
        with pytest.raises(ValueError, match="factor must be positive and finite"):
            Inflated(factor)
