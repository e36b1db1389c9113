"""Bytes in words of eight columns."""

import numpy as np
import pytest

from calibayes.kernels.tree_nodes import byte_columns
from tests.seeds import generator


@pytest.mark.parametrize("d", [1, 7, 8, 9, 17])
def test_columns_come_back(d):
    codes = generator(d).integers(0, 256, size=(50, d)).astype(np.uint8)
    columns = byte_columns(codes, np.full(d, 256))
    assert columns.words.shape == (-(-d // 8), 50)
    assert (columns.n, columns.d) == (50, d)
    assert np.array_equal(np.stack([columns.column(j) for j in range(d)], axis=1), codes)
    chosen = np.array([3, 3, 49])
    assert np.array_equal(columns.rows(chosen).column(d - 1), codes[chosen, d - 1])
    assert columns.first.tolist() == [256 * j for j in range(d + 1)]


def test_column_s_of_a_word_is_worth_256_to_the_power_of_s():
    columns = byte_columns(np.array([[1, 2, 0, 0, 0, 0, 0, 255, 7]], np.uint8), np.full(9, 256))
    assert columns.words.tolist() == [[1 + 2 * 256 + 255 * 256**7], [7]]


def test_the_order_of_columns_moves_with_them():
    codes = generator(3).integers(0, 9, size=(40, 12)).astype(np.uint8)
    expected = codes[:, byte_columns(codes, np.full(12, 9)).order()]
    for seed in range(3):
        moved = codes[:, generator(seed).permutation(12)]
        assert np.array_equal(moved[:, byte_columns(moved, np.full(12, 9)).order()], expected)


def test_fractions_depend_on_the_codes_alone_and_look_random():
    codes = generator(1).integers(0, 200, size=(20_000, 9)).astype(np.uint8)
    fractions = byte_columns(codes, np.full(9, 200)).fractions()
    assert fractions.min() >= 0.0
    assert fractions.max() < 1.0
    counts = np.histogram(fractions, 50, (0.0, 1.0))[0]
    assert np.sum((counts - 400.0) ** 2 / 400.0) < 98  # chi-square, 49 degrees of freedom, 99.996 %
    assert abs(np.corrcoef(fractions, codes[:, 3])[0, 1]) < 0.04
    order = generator(2).permutation(20_000)
    assert np.array_equal(byte_columns(codes[order], np.full(9, 200)).fractions(), fractions[order])
    assert np.array_equal(byte_columns(codes[:, ::-1], np.full(9, 200)).fractions(), fractions)
