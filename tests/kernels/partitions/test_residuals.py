"""Packed residuals and variances: exact sums in any order, right on average."""

import numpy as np
import pytest

from calibayes.kernels.tree_nodes import (
    LARGEST_SUM,
    packed_residuals,
    residual,
    scale_of,
    variance,
    variances,
)
from tests.seeds import generator


def example(n, k, weight=None):
    rng = generator([n, k])
    posterior, labels = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n)
    weight = rng.exponential(size=n) if weight is None else weight
    scale = scale_of(weight)
    return (
        posterior,
        labels,
        weight,
        scale,
        packed_residuals(np.log(posterior), labels, weight, scale, rng.random(n)),
    )


@pytest.mark.parametrize("total", [1e-260, 1e-9, 1.0, 3.0, 150.0, 1e9, 1e300])
def test_the_scale_is_the_largest_power_of_two_that_fits(total):
    scale = scale_of(np.full(4, total / 4))
    assert LARGEST_SUM / 2 < total * scale <= LARGEST_SUM
    assert np.log2(scale) % 1 == 0


@pytest.mark.parametrize("total", [0.0, 5e-324, 1e-300])
def test_the_scale_of_hardly_any_weight_is_finite(total):
    assert np.isfinite(scale_of(np.array([total, 0.0])) * 1e12)


@pytest.mark.parametrize("k", [2, 3, 12])
def test_each_number_is_off_by_less_than_one_unit(k):
    posterior, labels, weight, scale, packed = example(500, k)
    expected = weight[:, None] * (np.eye(k)[labels] - posterior) * scale
    spread = weight[:, None] * variances(posterior) * scale
    last = slice(1, 2) if k == 2 else slice(None)
    assert np.abs(residual(packed) - expected[:, last]).max() < 2.0 + 1e-6
    assert np.abs(variance(packed) - spread[:, last]).max() < 1.0 + 1e-6


@pytest.mark.parametrize("k", [2, 3, 12])
def test_sums_are_right_on_average(k):
    posterior, labels, weight, scale, packed = example(20_000, k, np.ones(20_000))
    rough = 2.0**4
    fractions = generator(3).random(20_000)
    few_bits = packed_residuals(np.log(posterior), labels, weight, rough, fractions)
    errors = residual(few_bits).sum(axis=0) / rough - residual(packed).sum(axis=0) / scale
    # The rounding error of a row is below 1 / 16; at random, 20,000 of them add up to about 141 times as much.
    assert np.abs(errors).max() < 5 * np.sqrt(20_000) / 16 / 2
    assert np.abs(variance(few_bits).sum(axis=0) / rough - variance(packed).sum(axis=0) / scale).max() < 5 * (
        np.sqrt(20_000) / 16 / 2
    )


def test_sums_have_the_same_bits_in_any_order():
    packed = example(3000, 3)[-1]
    total = packed.sum(axis=0)
    order = generator(4).permutation(3000)
    blocks = [block.sum(axis=0) for block in np.array_split(packed[order], 7)]
    assert np.array_equal(np.sum(blocks, axis=0), total)
    exact = [sum(int(part) for part in column) for column in packed.T]
    assert total.tolist() == exact
    assert np.array_equal(residual(total), residual(packed).sum(axis=0))
    assert np.array_equal(variance(total), variance(packed).sum(axis=0))
    left = packed[:1000].sum(axis=0)
    assert np.array_equal(total - left, packed[1000:].sum(axis=0))


def test_one_heavy_row_does_not_overflow():
    weight = np.array([1e12, 1.0, 1e-3])
    scores = np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, np.log(4.0)]])
    packed = packed_residuals(scores, np.array([1, 0, 1]), weight, scale_of(weight), np.full(3, 0.5))
    total = packed.sum(axis=0)
    assert residual(total)[0] == pytest.approx(1e12 * scale_of(weight), abs=3)
    assert (variance(total) >= 0).all()


def test_certain_posteriors_have_no_variance():
    scores = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    packed = packed_residuals(scores, np.array([0, 1]), np.ones(2), 1024.0, np.array([0.0, 0.999]))
    assert not packed.any()


def test_variances_are_those_of_two_classes_times_two():
    posterior = np.array([[0.3, 0.7]])
    assert variances(posterior) == pytest.approx(np.full((1, 2), 2 * 0.21))
    assert variances(np.full((1, 4), 0.25)) == pytest.approx(np.full((1, 4), 0.25))
