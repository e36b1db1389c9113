"""Mixed columns as standardized numbers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.encoders import Dense
from calibayes.kernels.cut_points import inverse_cdf_quantiles
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.encoders.tables import TABLE, fitted


def test_rare_levels_share_an_indicator_column():
    frame = pd.DataFrame({"a": ["x", "y", "z"] * 150 + ["p", "q"]})
    assert fitted(Dense(), frame).names == ("a = x", "a = y", "a = z", "a = other")


def test_columns_have_mean_0_and_variance_1():
    table = pd.concat([TABLE.assign(more=["x", "y", "z", "x"])] * 10)
    encoder = fitted(Dense(), table)
    x = encoder.encode(read_frame(table))
    assert encoder.names == (
        "complete",
        "gappy",
        "text = b",
        "more = x",
        "more = y",
        "more = z",
        "gappy missing",
        "text missing",
    )
    assert encoder.sources == (0, 1, 3, 4, 4, 4, 1, 3)
    assert_allclose(x.mean(axis=0), 0.0, atol=1e-12)
    assert_allclose(x.std(axis=0), 1.0)


def test_numbers_are_centered_on_the_median_and_asinh_scaled():
    values = np.array([-3.0, -1.0, 0.0, 2.0, 1e6])
    x = fitted(Dense(), pd.DataFrame({"v": values})).encode(read_frame(pd.DataFrame({"v": values})))[:, 0]
    scaled = np.arcsinh(values / (3.0 / 1.35))
    assert_allclose(x, (scaled - scaled.mean()) / scaled.std())


def test_weights_count_as_rows():
    rng = np.random.default_rng(0)
    table = TABLE.iloc[rng.integers(0, 4, 30)].reset_index(drop=True)
    weight = rng.integers(1, 4, 30)
    one = Dense().fit(summary_of(read_frame(table), weight.astype(float)), range(4))
    two = fitted(Dense(), table.iloc[np.repeat(np.arange(30), weight)])
    assert_allclose(one.encode(read_frame(table)), two.encode(read_frame(table)), atol=1e-12)


def test_missing_values_and_new_levels_are_encoded_as_finite_numbers():
    encoder = fitted(Dense())
    new = TABLE.assign(complete=np.nan, gappy=np.nan, text="c")
    assert np.isfinite(encoder.encode(read_frame(new))).all()


def correlated(n=300, share=0.02):
    """Columns a and b of correlation 0.995 and a text column that follows a, with a share of missing values."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    frame = pd.DataFrame({"a": a, "b": a + 0.1 * rng.normal(size=n), "t": np.where(a > 0, "high", "low")})
    return frame, frame.mask(rng.random(frame.shape) < share)


def test_rare_missing_values_have_no_indicator_and_are_imputed_by_regression_in_training():
    complete, table = correlated()
    encoder = fitted(Dense(), table)
    assert encoder.names == ("a", "b", "t = low")
    encoded, true = (encoder.encode(read_frame(rows)) for rows in (table, complete))
    errors = (encoded - true)[:, :2][table[["a", "b"]].isna().to_numpy()]
    assert np.sqrt(np.mean(errors**2)) < 0.25  # the mean would have an error of about 1


def test_frequent_missing_values_have_an_indicator():
    assert fitted(Dense(), correlated(share=0.2)[1]).names[3:] == ("a missing", "b missing", "t missing")
    assert fitted(Dense(), correlated(n=40, share=0.1)[1]).names == ("a", "b", "t = low")  # four rows


def test_in_new_rows_missing_values_stay_missing_where_there_is_no_indicator():
    _, table = correlated()
    new = pd.DataFrame({"a": [np.nan, 0.5], "b": [1.0, np.nan], "t": ["low", None]})
    known = fitted(Dense(), table).for_new_rows().encode(read_frame(new))
    assert_array_equal(np.isnan(known), [[True, False, False], [False, True, True]])
    frequent = fitted(Dense(), correlated(share=0.2)[1]).for_new_rows()
    assert np.isfinite(frequent.encode(read_frame(new))).all()


def test_an_unknown_level_is_not_a_missing_one():
    encoder = fitted(Dense(), correlated()[1]).for_new_rows()
    new = pd.DataFrame({"a": [0.0], "b": [0.0], "t": ["never seen"]})
    assert np.isfinite(encoder.encode(read_frame(new))).all()


def test_constant_columns_are_left_out_except_one():
    table = pd.DataFrame({"a": [1.0, 1.0], "b": ["x", "x"]})
    assert_array_equal(fitted(Dense(), table).encode(read_frame(table)), np.zeros((2, 1)))


def test_it_cannot_be_decoded():
    with pytest.raises(ValueError, match="indicator columns cannot be decoded"):
        fitted(Dense()).decode(np.zeros((1, 4)), None)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.75, 1.0])
def test_weighted_quantiles_equal_the_averaged_inverted_cdf_of_numpy(share):
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=20), rng.integers(1, 5, 20)
    expected = np.quantile(np.repeat(values, weight), share, method="averaged_inverted_cdf")
    assert inverse_cdf_quantiles(values, weight.astype(float), (share,)) == pytest.approx([expected])


def test_the_first_level_can_be_without_an_indicator():
    frame = pd.DataFrame({"t": ["a", "b", "c"] * 10, "u": ["x", "y"] * 15, "v": ["k"] * 30})
    assert fitted(Dense(drop_first=True), frame).names == ("t = b", "t = c", "u = y")
    assert fitted(Dense(), frame).names == ("t = a", "t = b", "t = c", "u = y")
