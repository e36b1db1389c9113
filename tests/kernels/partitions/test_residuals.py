"""Packed residuals and variances, sums of leaves and losses: exact sums in any order, right on average."""

from contextlib import nullcontext
from fractions import Fraction
from math import ceil, frexp

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibayes.kernels.tree_nodes import (
    LARGEST_LOSS,
    LARGEST_SUM,
    PACKED_ROWS,
    LabeledScores,
    add_factors,
    in_parts,
    leaf_sums,
    packed_residuals,
    residual,
    units_of,
    variance,
    variances,
    whole_loss,
)
from tests.kernel_versions import numpy_only
from tests.seeds import generator

HALF_UP = np.uint32(2**31)
"""The fraction of a row whose numbers are rounded to the nearest unit."""


def units_for(weight):
    top = float(np.max(weight))
    return units_of(top, in_parts(weight, top))


def scored(n, k, weight=None):
    """Rows with random posteriors, labels and weights."""
    rng = generator([n, k])
    posterior, labels = rng.dirichlet(np.ones(k), n), rng.integers(0, k, n).astype(np.int32)
    return LabeledScores(np.log(posterior), labels, rng.exponential(size=n) if weight is None else weight)


def example(n, k, weight=None):
    rows = scored(n, k, weight)
    fractions, scale = (
        generator([n, k, 1]).integers(0, 2**32, n, dtype=np.uint32),
        units_for(rows.weight).packed,
    )
    return np.exp(rows.scores), rows, scale, packed_residuals(rows, scale, fractions)


# -- units of whole numbers: powers of two, for weights of any size and any number of rows


@pytest.mark.parametrize("total", [1e-260, 1e-9, 1.0, 3.0, 150.0, 1e9, 1e300])
def test_units_of_few_rows_are_the_largest_power_of_two_that_fits(total):
    units = units_for(np.full(4, total / 4))
    assert units.packed == units.whole
    assert LARGEST_SUM / 2 < total * units.whole <= LARGEST_SUM
    assert frexp(units.whole)[0] == 0.5


@pytest.mark.parametrize("weight", [1e-250, 0.3, 1.0, 7e200])
def test_packed_numbers_of_many_rows_have_finer_units_than_sums_of_all(weight):
    """So many rows as may be added up fit, whichever they are; all of them fit into sums of whole units."""
    rows = 5 * PACKED_ROWS
    units = units_for(np.broadcast_to(weight, rows))
    assert units.packed > units.whole
    assert LARGEST_SUM / 4 < weight * PACKED_ROWS * units.packed <= LARGEST_SUM
    assert LARGEST_SUM / 2 < weight * rows * units.whole <= LARGEST_SUM


@pytest.mark.parametrize("total", [0.0, 5e-324, 1e-300])
def test_units_of_hardly_any_weight_are_finite(total):
    units = units_for(np.array([total, 0.0]))
    assert np.isfinite([*units, units.leaf * 1e12, units.loss * 1e12]).all()


@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e290])
def test_parts_of_weights_are_rounded_up_one_by_one(scale):
    rng = generator(7)
    weight = scale * rng.exponential(size=300) * 10.0 ** rng.integers(-12, 3, 300)
    top = float(weight.max())
    part = Fraction(2) ** (frexp(top)[1] - 28)
    parts = in_parts(weight, top)
    assert parts == sum(ceil(Fraction(number) / part) for number in weight.tolist())
    assert parts == sum(in_parts(block, top) for block in np.array_split(weight[rng.permutation(300)], 7))
    assert sum(map(Fraction, weight.tolist())) <= parts * part
    assert type(parts) is int


# -- packed numbers of rows


@pytest.mark.parametrize("k", [2, 3, 12])
def test_each_number_is_off_by_less_than_one_unit(k):
    posterior, (_, labels, weight), scale, packed = example(500, k)
    expected = weight[:, None] * (np.eye(k)[labels] - posterior) * scale
    spread = weight[:, None] * variances(posterior) * scale
    last = slice(1, 2) if k == 2 else slice(None)
    assert np.abs(residual(packed) - expected[:, last]).max() < 2.0 + 1e-6
    assert np.abs(variance(packed) - spread[:, last]).max() < 1.0 + 1e-6


@pytest.mark.parametrize("k", [2, 3, 12])
def test_sums_are_right_on_average(k):
    _, rows, scale, packed = example(20_000, k, np.ones(20_000))
    rough = 2.0**4
    few_bits = packed_residuals(rows, rough, generator(3).integers(0, 2**32, 20_000, dtype=np.uint32))
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


def test_one_weight_for_all_rows_is_that_of_each():
    rows, fractions = scored(50, 3, np.full(50, 0.7)), np.full(50, HALF_UP)
    one = rows._replace(weight=np.array([0.7]))
    for version in (packed_residuals, packed_residuals.numpy):
        found, expected = (version(given, 1e6, fractions) for given in (one, rows))
        assert np.array_equal(found, expected)


def test_one_heavy_row_does_not_overflow():
    weight = np.array([1e12, 1.0, 1e-3])
    scores = np.array([[0.0, -np.inf], [0.0, 0.0], [0.0, np.log(4.0)]])
    scale = units_for(weight).packed
    rows = LabeledScores(scores, np.array([1, 0, 1], np.int32), weight)
    total = packed_residuals(rows, scale, np.full(3, HALF_UP)).sum(axis=0)
    assert residual(total)[0] == pytest.approx(1e12 * scale, abs=3)
    assert (variance(total) >= 0).all()


def test_as_many_rows_as_may_be_added_up_do_not_overflow():
    """2^20 rows of the largest variance, all on one side, with the largest weight and rounded up."""
    rows = LabeledScores(np.zeros((1, 2)), np.ones(1, np.int32), np.array([3.0]))
    scale = units_for(np.broadcast_to(3.0, 7 * PACKED_ROWS)).packed
    packed = packed_residuals(rows, scale, np.full(1, 2**32 - 1, np.uint32))
    total = packed.astype(object) * PACKED_ROWS
    assert -(2**63) <= total[0, 0] < 2**63
    assert residual(total.astype(np.int64)) == residual(packed) * PACKED_ROWS
    assert variance(total.astype(np.int64)) == variance(packed) * PACKED_ROWS


def test_certain_posteriors_have_no_variance():
    scores = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    rows = LabeledScores(scores, np.array([0, 1], np.int32), np.ones(2))
    assert not packed_residuals(rows, 1024.0, np.array([0, 2**32 - 1], np.uint32)).any()


def test_variances_are_those_of_two_classes_times_two():
    posterior = np.array([[0.3, 0.7]])
    assert variances(posterior) == pytest.approx(np.full((1, 2), 2 * 0.21))
    assert variances(np.full((1, 4), 0.25)) == pytest.approx(np.full((1, 4), 0.25))


# -- what trees make of log scores: the factors of leaves are added, the sums of leaves and the loss are whole numbers


def test_factors_are_added_in_place():
    rng = generator(5)
    for order, kind in (("C", np.float64), ("F", np.float64), ("C", np.float32)):
        scores, factors = rng.normal(size=(40, 3)).astype(kind, order=order), rng.normal(size=(5, 3))
        codes, before = rng.integers(0, 5, 40).astype(np.int8), scores.copy()
        assert add_factors(scores, codes, factors) is scores
        assert np.array_equal(scores, (before + factors[codes]).astype(kind))


@pytest.mark.parametrize("k", [2, 3, 12])
def test_sums_of_leaves_are_those_of_their_rows(k):
    rng, rows = generator([6, k]), scored(600, k)
    codes, held_out = rng.integers(0, 4, 600).astype(np.int8), rng.random(600) < 0.3
    units, p, onehot = units_for(rows.weight).leaf, softmax(rows.scores, axis=1), np.eye(k)[rows.labels]
    sums = leaf_sums(rows, codes, held_out, 5, units)
    for leaf in range(5):
        own = codes == leaf
        training, weight = own & ~held_out, rows.weight[:, None]
        expected = (
            np.sum((weight * (onehot - p))[training], axis=0),
            np.sum((weight * p * (1 - p) * k / (k - 1))[training], axis=0),
            np.sum((weight * onehot)[own], axis=0),
        )
        for found, number in zip(sums, expected, strict=True):
            np.testing.assert_allclose(found[leaf] / units, number, rtol=1e-12, atol=1e-12)
    assert not np.stack(sums)[:, 4].any()
    assert sums.mass.sum() <= LARGEST_SUM * 2.0**31


@pytest.mark.parametrize("k", [2, 5])
def test_whole_numbers_add_up_to_the_same_in_any_order_and_blocks(k):
    rng, rows = generator([8, k]), scored(900, k)
    codes, held_out = rng.integers(0, 3, 900).astype(np.int8), rng.random(900) < 0.3
    units, order = units_for(rows.weight), rng.permutation(900)
    sums, loss = leaf_sums(rows, codes, held_out, 3, units.leaf), whole_loss(rows, held_out, units.loss)
    assert type(loss) is int
    for version in (nullcontext, numpy_only):
        totals, losses = np.zeros((3, 3, k), np.int64), 0
        for own in np.split(order, [1, 40, 40, 700]):
            part = LabeledScores(*(array[own] for array in rows))
            with version():
                totals += np.stack(leaf_sums(part, codes[own], held_out[own], 3, units.leaf))
                losses += whole_loss(part, held_out[own], units.loss)
        assert np.array_equal(totals, np.stack(sums))
        assert losses == loss


def test_the_loss_is_that_of_held_out_rows():
    rows, held_out = scored(400, 3), generator(9).random(400) < 0.4
    units = units_for(rows.weight).loss
    own = -log_softmax(rows.scores, axis=1)[np.arange(400), rows.labels]
    expected = np.sum((rows.weight * own)[held_out])
    assert whole_loss(rows, held_out, units) / units == pytest.approx(expected, rel=1e-12)
    assert whole_loss(rows, ~held_out, units) + whole_loss(rows, held_out, units) == whole_loss(
        rows, held_out | True, units
    )
    assert whole_loss(rows, held_out & False, units) == 0


def test_the_loss_of_an_impossible_label_is_bounded():
    rows = LabeledScores(np.array([[0.0, -np.inf], [0.0, -1e9]]), np.ones(2, np.int32), np.array([2.0, 1.0]))
    for version in (whole_loss, whole_loss.numpy):
        assert version(rows, np.ones(2, bool), 8.0) == 3 * 8 * LARGEST_LOSS
