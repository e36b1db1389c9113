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
