"""Uniform grids over columns of numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.encoders import Grid
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array


def fitted(columns, weight=None, points=128):
    columns = np.asarray(columns, dtype=float)
    columns = columns[:, None] if columns.ndim == 1 else columns
    weight = np.ones(len(columns)) if weight is None else weight
    return Grid(points).fit(summary_of(read_array(columns), weight), list(range(columns.shape[1])))


def test_decoded_positions_are_the_encoded_numbers():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(100, 3)) * [1.0, 1e-6, 1e6]
    columns[4, 1] = np.nan
    grid = fitted(columns)
    positions = grid.encode(read_array(columns))
    assert_allclose(np.stack(grid.decode(positions, None), axis=1), columns, rtol=1e-9, atol=1e-12)
    assert np.nanmin(positions) > 0
    assert np.nanmax(positions) < 127
    assert np.isnan(positions[4, 1])


@pytest.mark.parametrize("far", [1e6, -1e6, 1e99])
def test_an_outlier_does_not_widen_the_grid(far):
    values = np.append(np.random.default_rng(0).normal(size=200), far)
    grid = fitted(values)
    assert grid.step[0] < 0.15
    position = grid.encode(read_array(np.array([[far]])))[0, 0]
    assert position < 0 if far < 0 else position > 127
    assert grid.remarks() == ["128 points, 1 row beyond them"]


@pytest.mark.parametrize(
    "values", [[3.0] * 9 + [3.5], [1e12] * 5, [0.0] * 5, [7.0], [1.0, 2.0], [-1e-300, 1e-300]]
)
def test_columns_with_one_or_two_distinct_values(values):
    grid = fitted(values)
    positions = grid.encode(read_array(np.array(values)[:, None]))
    assert np.isfinite(positions).all()
    assert grid.step[0] > 0
    assert ((positions >= 0) & (positions <= 127)).all()
    assert_allclose(grid.decode(positions, None)[0], values, rtol=1e-9, atol=1e-12)


def test_weighted_rows_are_repeated_rows():
    rng = np.random.default_rng(0)
    values, times = rng.standard_t(2, size=60), rng.integers(0, 4, size=60)
    weighted, repeated = fitted(values, times.astype(float)), fitted(np.repeat(values, times))
    assert_allclose([weighted.origin, weighted.step], [repeated.origin, repeated.step], rtol=1e-12)


def test_different_grids_are_not_united():
    one, other = fitted(np.arange(10.0)), fitted(np.arange(20.0))
    assert one.unite(one)[0] is one
    with pytest.raises(ValueError, match="models with different grids of numbers cannot be merged"):
        one.unite(other)


def test_bad_grids():
    with pytest.raises(ValueError, match="at least four points, got 3"):
        Grid(3)
    with pytest.raises(ValueError, match="column 'x0' is all missing"):
        fitted([np.nan, np.nan])
    assert_array_equal(fitted([1.0, 2.0]).layout()["levels"], [130])
