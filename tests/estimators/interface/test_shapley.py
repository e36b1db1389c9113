"""Shapley values, exact and sampled."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.analysis.explanation import OrderSampling, sampling, shapley_values
from calibayes.analysis.marginals import JointColumns
from calibayes.core.notices import ProgressReporter

ROWS = 6


def game(d, seed=0):
    """Values of all sets of d columns in some rows, and the values as a function of the columns that are present."""
    values = np.random.default_rng(seed).normal(size=(2**d, ROWS))
    return lambda present: values[int(present @ 2 ** np.arange(d))]


def along(value, d):
    """The values along an order."""

    def values(sets):
        return np.stack([value(present) for present in sets])

    return JointColumns(range(d), ROWS, values).along


def mean_over_all_orders(value, d):
    """The definition: the change by each column, averaged over all orders of the columns."""
    total, orders = np.zeros((ROWS, d)), list(permutations(range(d)))
    for order in orders:
        present = np.zeros(d, dtype=bool)
        for j in order:
            before = value(present)
            present[j] = True
            total[:, j] += value(present) - before
    return total / len(orders)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_exact_values_are_the_mean_over_all_orders(d):
    value = game(d)
    result = shapley_values(value, along(value, d), d, OrderSampling())
    assert_allclose(result.values, mean_over_all_orders(value, d), atol=1e-12)
    assert_array_equal(result.standard_error, 0.0)
    assert result.permutations == 0


@pytest.mark.parametrize("count", [4, 10])
def test_sampled_values_sum_to_the_value_of_all_columns(count):
    d = 9
    value = game(d)
    result = shapley_values(value, along(value, d), d, OrderSampling(count))
    everything = np.ones(d, dtype=bool)
    assert_allclose(result.values.sum(axis=1), value(everything) - value(~everything), atol=1e-12)
    assert result.permutations == count
    assert result.standard_error.min(axis=0).max() > 0


def test_errors_of_sampled_values_are_as_large_as_stated():
    d = 10
    value = game(d)
    exact = shapley_values(value, along(value, d), d, OrderSampling(104))
    assert exact.permutations == 0
    squares = []
    for seed in range(40):
        sampled = shapley_values(value, along(value, d), d, OrderSampling(64, seed))
        assert sampled.permutations == 64
        squares.append(((sampled.values - exact.values) / sampled.standard_error) ** 2)
    # 32 pairs: the square of Student's t with 31 degrees of freedom has the mean 31 / 29.
    assert np.mean(squares) == pytest.approx(31 / 29, rel=0.2)


def test_sampled_values_of_a_sum_over_columns_are_exact():
    d = 12
    terms = np.random.default_rng(0).normal(size=(ROWS, d))

    def value(present):
        return terms @ present

    result = shapley_values(value, along(value, d), d, OrderSampling(4))
    assert_allclose(result.values, terms, atol=1e-12)
    assert_allclose(result.standard_error, 0.0, atol=1e-12)


def test_each_order_is_followed_by_its_reverse():
    orders = []

    def values_along(order):
        orders.append(order.tolist())
        return iter(np.zeros((len(order), ROWS)))

    shapley_values(lambda present: np.zeros(ROWS), values_along, 10, OrderSampling(8))
    assert len(orders) == 8
    assert orders[1::2] == [order[::-1] for order in orders[::2]]


def test_few_columns_are_exact_and_seeds_matter_for_many():
    assert [d for d in range(1, 12) if OrderSampling().is_exact(d)] == list(range(1, 9))
    value = game(9)
    first, same, other = (
        shapley_values(value, along(value, 9), 9, OrderSampling(8, seed)).values for seed in (0, 0, 1)
    )
    assert_array_equal(first, same)
    assert np.abs(first - other).max() > 1e-3


@pytest.mark.parametrize("count", [5, 2, 0, 6.0, "many"])
def test_invalid_numbers_of_permutations_are_refused(count):
    with pytest.raises(ValueError, match=r"permutations must be .*got"):
        sampling(count, None, ProgressReporter("", verbose=False))
