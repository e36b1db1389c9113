"""Weighted quantiles against NumPy's quantiles of repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from calibayes.kernels import cut_points
from calibayes.kernels.grids import interquartile_ranges
from tests.seeds import generator

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@pytest.fixture
def columns() -> np.ndarray:
    return generator(0).normal(size=(40, 3)).round(1)


@pytest.fixture
def copies() -> np.ndarray:
    return generator(1).integers(0, 4, size=40)


def test_quantiles_are_the_linear_ones_of_repeated_rows(columns: np.ndarray, copies: np.ndarray) -> None:
    expected = np.quantile(np.repeat(columns, copies, axis=0), SHARES, axis=0)
    result = cut_points.quantiles(columns, copies.astype(float), np.array(SHARES))
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_inverse_cdf_quantiles_are_the_averaged_ones_of_repeated_rows(
    columns: np.ndarray, copies: np.ndarray
) -> None:
    for column in columns.T:
        repeated = np.repeat(column, copies)
        expected = np.quantile(repeated, SHARES[1:-1], method="averaged_inverted_cdf")
        for unit in (1.0, 1e-3):
            weight = unit * copies
            np.testing.assert_allclose(
                cut_points.inverse_cdf_quantiles(column, weight, SHARES[1:-1]), expected
            )


def test_histogram_quantiles_interpolate_within_bins() -> None:
    result = cut_points.histogram_quantiles(np.array([2.0, 0.0, 6.0]), (0.125, 0.25, 0.625, 1.0))
    np.testing.assert_allclose(result, [0.5, 1.0, 2.5, 3.0])
    assert interquartile_ranges(np.array([[2.0, 0.0, 6.0], [0.0, 8.0, 0.0]])).tolist() == pytest.approx(
        [2 + 4 / 6 - 1.0, 0.5]
    )


def test_robust_deviation_estimates_the_deviation_of_a_normal_sample() -> None:
    assert pytest.approx(norm.ppf(0.75) - norm.ppf(0.25), rel=1e-15) == cut_points.NORMAL_IQR
    normal = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
    contaminated = np.where(np.arange(20_000)[:, None] < 100, 1e3 * normal, normal)
    for column in (normal, contaminated):
        assert cut_points.robust_deviation(column, np.ones(20_000)) == pytest.approx(1.0, abs=0.02)
