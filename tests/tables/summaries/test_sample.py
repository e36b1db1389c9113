"""The sample of a table: a function of the number of a row and of the number of all rows."""

import numpy as np

from calibayes.tables.summary import SAMPLE_ROWS, in_sample


def test_a_small_table_is_its_own_sample():
    assert in_sample(0, SAMPLE_ROWS, SAMPLE_ROWS).all()


def test_about_as_many_rows_as_wanted_are_spread_over_the_table():
    n = 20 * SAMPLE_ROWS
    chosen = in_sample(0, n, n)
    assert abs(chosen.sum() - SAMPLE_ROWS) < 5 * np.sqrt(SAMPLE_ROWS)
    by_tenth = chosen.reshape(10, -1).sum(axis=1)
    assert np.ptp(by_tenth) < 10 * np.sqrt(SAMPLE_ROWS / 10)
    assert abs(np.corrcoef(chosen[1:], chosen[:-1])[0, 1]) < 0.01


def test_blocks_of_rows_have_the_sample_of_the_table():
    n = 5000
    whole = in_sample(0, n, n, 300)
    blocks = [in_sample(first, min(700, n - first), n, 300) for first in range(0, n, 700)]
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
