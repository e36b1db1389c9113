"""Principal components of encoded columns."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from calibayes.encoders import Dense, PrincipalComponents
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame


def fitted(table):
    return PrincipalComponents().fit(
        summary_of(read_frame(table), np.ones(len(table))), range(table.shape[1])
    )


def test_components_are_uncorrelated_and_those_of_largest_variance():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(200, 1))
    table = read_frame(pd.DataFrame(common + 0.1 * rng.normal(size=(200, 5))))
    encoder = PrincipalComponents(2).fit(summary_of(table, np.ones(200)), range(5))
    z = encoder.encode(table)
    assert_allclose(z.T @ z / 200, np.eye(2), atol=1e-10)
    assert abs(np.corrcoef(z[:, 0], common[:, 0])[0, 1]) > 0.98
    x = Dense().fit(summary_of(table, np.ones(200)), range(5)).encode(table)
    left = np.linalg.svd(x)[0][:, :2] * np.sqrt(200)
    assert_allclose(np.abs(z), np.abs(left), atol=1e-8)


def test_more_columns_than_rows():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 40)))
    z = fitted(table).encode(read_frame(table))
    assert_allclose(z.T @ z / 12, np.eye(11), atol=1e-10)
    x = Dense().fit(summary_of(read_frame(table), np.ones(12)), range(40)).encode(read_frame(table))
    assert_allclose(np.abs(z), np.abs(np.linalg.svd(x - x.mean(axis=0))[0][:, :11]) * np.sqrt(12), atol=1e-8)


def test_weights_count_as_rows_and_repeated_columns_add_no_component():
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(30, 2)), rng.integers(1, 4, 30)
    frame = pd.DataFrame(np.column_stack([rows, rows]))
    one = PrincipalComponents().fit(summary_of(read_frame(frame), weight.astype(float)), range(4))
    two = fitted(frame.iloc[np.repeat(np.arange(30), weight)])
    assert one.encode(read_frame(frame)).shape == (30, 2)
    products = [z @ z.T for z in (one.encode(read_frame(frame)), two.encode(read_frame(frame)))]
    assert_allclose(*products, atol=1e-8)  # the signs of components are arbitrary


def test_components_of_new_rows_with_missing_values_are_those_of_the_known_ones():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(300, 8))
    )
    encoder = PrincipalComponents(2).fit(summary_of(read_frame(frame), np.ones(300)), range(8))
    new = frame.copy()
    new[3] = np.nan
    expected = encoder.encode(read_frame(frame))
    found = encoder.for_new_rows().encode(read_frame(new))
    assert np.sqrt(np.mean((found - expected) ** 2)) < 0.05
    assert_allclose(encoder.for_new_rows().encode(read_frame(frame)), expected)


def test_columns_that_are_not_known_are_imputed_as_missing_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 6)), columns=list("abcdef"))
    frame["g"] = np.where(rng.random(60) < 0.5, "yes", "no")
    encoder = PrincipalComponents(3).fit(summary_of(read_frame(frame), np.ones(60)), range(7)).for_new_rows()
    sets = rng.random((4, 7)) < 0.5
    sets[0] = True
    found = encoder.encode_known(read_frame(frame), sets).reshape(4, 60, 3)
    for known, components in zip(sets, found, strict=True):
        blank = frame.where(np.broadcast_to(known, frame.shape), None)
        blank[list("abcdef")] = blank[list("abcdef")].astype(float)
        assert_allclose(components, encoder.encode(read_frame(blank)), atol=1e-10)


def test_bad_number_and_decoding():
    with pytest.raises(ValueError, match="must be at least one, got 0"):
        PrincipalComponents(0)
    with pytest.raises(ValueError, match="cannot be decoded"):
        fitted(pd.DataFrame({"a": [1.0, 2.0, 4.0]})).decode(np.zeros((1, 1)), None)
