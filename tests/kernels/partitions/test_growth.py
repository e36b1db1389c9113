"""Trees round by round: one round against Newton's step, held-out losses, monotone columns, same bits everywhere."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibayes.kernels import dispatch, tree_growth
from calibayes.kernels import forests as tree
from calibayes.kernels.dispatch import native_kernels, thread_limit
from calibayes.kernels.forests import forest_of, leaf_codes
from calibayes.kernels.growth_rows import GrowthRows
from calibayes.kernels.tree_growth import (
    LARGEST_STEP,
    GrowthSettings,
    forest_scores,
    held_out_scores,
)
from calibayes.kernels.tree_nodes import LabeledScores, byte_columns, whole_loss
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.kernels.partitions.growth_tables import (
    assert_same_forest,
    assert_same_growth,
    example,
    grow,
    grow_folds,
    halves,
    only,
    with_folds,
)
from tests.seeds import generator


def prefix(grown, trees):
    """The first trees, and their log factors."""
    chosen = [*grown.forest.trees()][:trees]
    return forest_of(chosen), grown.log_factor[:, : sum(grown.forest.leaves[:trees])]


def scores_of(sample, grown, trees=None):
    """The log scores of the rows of a sample with the first trees."""
    forest, factors = prefix(grown, grown.forest.count if trees is None else trees)
    return forest_scores(sample.columns, forest, factors, sample.log_start)


def loss_of(sample, scores):
    own = log_softmax(scores, axis=1)[np.arange(len(sample.labels)), sample.labels]
    return -np.average(own, weights=sample.weight)


@pytest.mark.parametrize("k", [2, 3, 12])
@pytest.mark.parametrize("prior", [1e-6, 5.0])
def test_one_round_is_a_step_of_newton(k, prior):
    sample = example(k=k)
    settings = GrowthSettings(trees=1, leaves=6, rate=0.3, prior=prior)
    grown = grow(sample, settings)
    leaves = leaf_codes(sample.columns, grown.forest)[:, 0]
    residual, p = np.eye(k)[sample.labels] - 1 / k, np.full((len(leaves), k), 1 / k)
    for leaf in range(grown.forest.leaves[0]):
        own = leaves == leaf
        w = sample.weight[own, None]
        curvature = np.sum(w * p[own] * (1 - p[own]) * k / (k - 1), axis=0)
        step = np.clip(np.sum(w * residual[own], axis=0) / (curvature + prior), -LARGEST_STEP, LARGEST_STEP)
        np.testing.assert_allclose(grown.log_factor[:, leaf], 0.3 * step, rtol=1e-10, atol=1e-12)


def test_two_classes_move_by_the_exact_derivatives_of_their_log_odds():
    """With two classes the change of the log odds is Newton's step on one logit, by numerical derivatives."""
    sample = example(k=2, sizes=(5,))
    grown = grow(sample, GrowthSettings(trees=1, leaves=2, rate=1.0, prior=1e-6))
    leaves = leaf_codes(sample.columns, grown.forest)[:, 0]
    for leaf in (0, 1):
        own, h = leaves == leaf, 1e-3

        def loss(shift, own=own):
            margin = np.where(sample.labels[own] == 1, shift, -shift)
            return np.sum(sample.weight[own] * np.log1p(np.exp(-margin)))

        slope = (loss(h) - loss(-h)) / (2 * h)
        curvature = (loss(h) - 2 * loss(0.0) + loss(-h)) / h**2
        change = grown.log_factor[1, leaf] - grown.log_factor[0, leaf]
        assert change == pytest.approx(-slope / curvature, rel=1e-4)


def test_rounds_are_added_up_and_lower_the_training_loss():
    sample = example()
    grown = grow(sample, GrowthSettings(trees=12, leaves=5))
    assert grown.forest.count == 12
    losses = [loss_of(sample, scores_of(sample, grown, trees)) for trees in range(13)]
    assert all(after < before for before, after in pairwise(losses))
    # The second tree's factors are a step from the posterior after the first.
    p = softmax(scores_of(sample, grown, 1), axis=1)
    leaves = leaf_codes(sample.columns, grown.forest)[:, 1]
    own, w = leaves == 0, sample.weight[leaves == 0, None]
    step = np.sum(w * (np.eye(3)[sample.labels[own]] - p[own]), axis=0)
    step /= np.sum(w * p[own] * (1 - p[own]) * 1.5, axis=0) + 5.0
    np.testing.assert_allclose(grown.log_factor[:, grown.forest.leaves[0]], 0.1 * step, rtol=1e-10)


def test_scores_are_those_of_the_leaves_of_all_trees():
    sample = example(k=2, sizes=(9, 30, 4, 256, 2, 3, 3, 3, 5))
    grown = grow(sample, GrowthSettings(trees=6, leaves=7))
    first = np.concatenate([[0], np.cumsum(grown.forest.leaves)])
    codes, start = leaf_codes(sample.columns, grown.forest), generator(1).normal(size=(400, 2))
    expected, own = start.copy(), start.copy()
    for number in range(6):
        expected += grown.log_factor[:, first[number] + codes[:, number]].T
    assert (
        forest_scores(sample.columns, grown.forest, grown.log_factor, start).tobytes() == expected.tobytes()
    )
    assert np.array_equal(start, own)  # what was given stays as it is
    some = sample.columns.rows(slice(5, 9))
    assert np.array_equal(forest_scores(some, grown.forest, grown.log_factor, start[5:9]), expected[5:9])
    none = forest_scores(sample.columns, forest_of([]), np.zeros((2, 0)), np.array([0.3, -1.0]))
    assert np.array_equal(none, np.tile([0.3, -1.0], (400, 1)))


def test_held_out_rows_choose_the_number_of_trees():
    sample = halves(example(n=600))
    settings = GrowthSettings(rate=0.5, prior=0.1, patience=8)
    (grown,), losses = grow_folds(sample, settings)
    held_out = only(sample.rows, sample.rows.held_out[0])
    best = grown.forest.count
    assert 0 < best < len(losses) - 1 < 1000
    assert np.argmin(losses) == best
    for trees in (0, 1, best):
        scores = scores_of(held_out, grown, trees)
        assert losses[trees] == pytest.approx(loss_of(held_out, scores), rel=1e-12)
    assert held_out_scores(grown, 0, sample.rows).tobytes() == scores.tobytes()
    assert losses[-8:].min() > losses[:-8].min() * (1 - 5e-4)


def is_over(losses, patience):
    """Whether the latest rounds, a sixth of all or as many as the patience, have gained less than 0.05 %."""
    latest = max(patience, (len(losses) - 1) // 6)
    return len(losses) > latest and losses[-latest:].min() > 0.9995 * losses[:-latest].min()


@pytest.mark.parametrize(("rate", "patience"), [(0.5, 8), (0.02, 3)])
def test_growth_ends_in_the_first_round_after_which_the_latest_rounds_have_not_gained(rate, patience):
    _, losses = grow_folds(halves(products()), GrowthSettings(rate=rate, prior=20.0, patience=patience))
    ends = [number for number in range(1, len(losses) + 1) if is_over(losses[:number], patience)]
    assert ends == [len(losses)]
    assert rate == 0.5 or len(losses) > 6 * patience  # more than the patience counts


def products(n=2000, seed=0):
    """Rows of two classes, decided by the sign of a product of two columns and by a third, and two useless columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 16, size=(n, 5)).astype(np.uint8)
    signs = np.sign(codes[:, :3] - 7.5)
    labels = (signs[:, 0] * signs[:, 1] + 0.5 * signs[:, 2] + rng.normal(size=n) > 0).astype(np.int32)
    columns = byte_columns(codes, np.full(5, 16))
    return GrowthRows(columns.words, columns.first, labels, np.ones(1), np.log([0.5, 0.5]))


def test_growth_on_noise_ends_after_its_patience():
    """The best number of trees is small, and no more are grown than that and the patience."""
    for seed in range(5):
        sample = products(seed=seed)
        noise = np.random.default_rng(seed).permutation(sample.labels)
        (grown,), losses = grow_folds(halves(replace(sample, labels=noise)), GrowthSettings())
        assert grown.forest.count <= 10
        assert len(losses) - 1 <= grown.forest.count + 20


def test_losses_are_those_of_the_scores_of_the_trees_to_the_bit():
    sample = halves(example(n=600, weight=np.full(600, 2.0)))
    (grown,), losses = grow_folds(sample, GrowthSettings(trees=9))
    held_out = only(sample.rows, sample.rows.held_out[0])
    for trees in range(grown.forest.count + 1):
        scored = LabeledScores(scores_of(held_out, grown, trees), held_out.labels, held_out.weight)
        units = 2.0**16 * 2.0**19  # of losses; 600 rows of weight 2 are fewer than 2^30 / 2^19
        assert losses[trees] == whole_loss(scored, np.ones(300, bool), units) / (300 * 2 * units)


def test_mass_is_the_weight_of_all_rows_by_class():
    """Of training rows and of those that are held out."""
    sample = with_folds(example(n=500), np.arange(500) % 3 == np.arange(2)[:, None])
    for grown in grow_folds(sample, GrowthSettings(trees=5, leaves=6)).forests:
        codes, rows = leaf_codes(sample.rows.columns, grown.forest), sample.rows
        columns = [
            np.bincount(rows.labels * leaves + own, rows.weight, minlength=3 * leaves).reshape(3, leaves)
            for own, leaves in zip(codes.T, grown.forest.leaves, strict=True)
        ]
        np.testing.assert_allclose(grown.mass, np.concatenate(columns, axis=1), rtol=1e-9)


def test_rows_begin_with_scores_of_their_own():
    """Log scores (n, k) at the start; a constant of each row does not matter."""
    shared, rng = example(n=600), generator(4)
    own = only(shared, np.arange(600))
    own.log_start = rng.normal(size=(600, 3)) + 30 * rng.normal(size=(600, 1))
    grown, p = grow(own, GrowthSettings(trees=1, leaves=8, rate=1.0)), softmax(own.log_start, axis=1)
    leaves = leaf_codes(own.columns, grown.forest)[:, 0]
    for leaf in range(8):
        inside, w = leaves == leaf, own.weight[leaves == leaf, None]
        step = np.sum(w * (np.eye(3)[own.labels[inside]] - p[inside]), axis=0)
        step /= np.sum(w * p[inside] * (1 - p[inside]) * 1.5, axis=0) + 5.0
        np.testing.assert_allclose(grown.log_factor[:, leaf], step, rtol=1e-8)
    sample = with_folds(own, np.arange(600) % 2 == np.arange(2)[:, None])
    (_, grown), losses = grow_folds(sample, GrowthSettings(trees=3, rate=0.01))
    rows = only(sample.rows, sample.rows.held_out[1])
    assert grown.forest.count == 3
    assert held_out_scores(grown, 1, sample.rows).tobytes() == scores_of(rows, grown).tobytes()
    assert losses[0] == pytest.approx(loss_of(own, own.log_start), rel=1e-12)


def test_folds_grow_together_as_many_rounds_as_are_best_for_all():
    rows, settings = example(n=600), GrowthSettings(rate=0.3, patience=8)
    sample = with_folds(rows, np.arange(600) % 3 == np.arange(3)[:, None])
    forests, losses = grow_folds(sample, settings)
    best = int(np.argmin(losses))
    assert [grown.forest.count for grown in forests] == [best] * 3
    (alone,), _ = grow_folds(with_folds(rows, np.arange(600)[None] % 3 == 1), settings)
    shared = min(best, alone.forest.count)
    assert prefix(alone, shared)[1].tobytes() == prefix(forests[1], shared)[1].tobytes()
    scores = np.empty((600, 3))
    for number, grown in enumerate(forests):
        scores[number::3] = held_out_scores(grown, number, sample.rows)
    assert losses[best] == pytest.approx(loss_of(rows, scores), rel=1e-12)


def test_the_trees_that_are_kept_are_those_of_the_least_loss():
    """A held-out row without weight moves while the loss stays the same: no tree is kept."""
    codes = np.repeat([[0], [1], [2], [3]], 200, axis=0).astype(np.uint8)
    labels = np.concatenate([np.arange(400) % 2, np.zeros(200, int), np.ones(200, int)]).astype(np.int32)
    columns, held_out = byte_columns(codes, np.array([4])), np.isin(np.arange(800), [0, 1, 500])[None]
    weight = np.where(np.arange(800) == 500, 0.0, 1.0)
    rows = replace(
        example(n=800, k=2), words=columns.words, first=columns.first, labels=labels, weight=weight
    )
    sample = with_folds(rows, held_out)
    (grown,), losses = grow_folds(sample, GrowthSettings(trees=5, leaves=4))
    assert len(losses) > 2
    assert np.ptp(losses) == 0.0
    assert grown.forest.count == 0
    assert grown.mass.shape == (2, 0)
    assert np.array_equal(held_out_scores(grown, 0, sample.rows), np.tile(rows.log_start, (3, 1)))


@pytest.mark.parametrize("k", [2, 3])
def test_all_versions_grow_the_same_forest_to_the_bit(monkeypatch, k):
    """Structure, log factors, mass and losses: NumPy, every instruction set, any number of threads."""
    rows = example(k=k, n=700, sizes=(9, 30, 4, 256, 2, 3, 3, 3, 5))
    direction = np.array([0, 1, 0, -1, 0, 0, 0, 0, 0], np.int8) * (k == 2)
    sample = with_folds(rows, np.arange(700) % 3 == np.arange(2)[:, None])
    args = sample, GrowthSettings(trees=15, leaves=7)
    expected = grow_folds(*args, direction=direction)
    assert expected.forests[0].forest.count > 5

    def assert_same():
        again = with_folds(rows, sample.rows.held_out)
        assert again.keys.columns.tobytes() == sample.keys.columns.tobytes()
        assert again.keys.classes.tobytes() == sample.keys.classes.tobytes()
        assert again.rows.fractions.tobytes() == sample.rows.fractions.tobytes()
        assert_same_growth(grow_folds(again, args[1], direction=direction), expected)

    with numpy_only():
        assert_same()
    for name in native_kernels.module.levels():
        with use_instruction_set(name):
            assert_same()
    monkeypatch.setattr(tree_growth, "MANY_CELLS", 0)
    monkeypatch.setattr(tree, "MANY_CELLS", 0)
    monkeypatch.setattr(dispatch, "RANGE_BYTES", 2**12)
    for threads in (1, 2, 5):
        with thread_limit(threads):
            assert_same()


@pytest.mark.parametrize("k", [2, 3])
def test_the_order_of_rows_and_of_columns_changes_no_bit(k):
    rows, settings = example(n=700, k=k), GrowthSettings(trees=15, leaves=7)
    expected, order = grow(rows, settings), generator(5).permutation(700)
    assert_same_forest(grow(only(rows, order), settings), expected)
    codes = np.stack([rows.columns.column(j) for j in range(3)], axis=1)
    columns = byte_columns(codes[:, [2, 0, 1]], np.diff(rows.first)[[2, 0, 1]])
    moved = grow(replace(rows, words=columns.words, first=columns.first, folds={}), settings)
    splits = expected.forest.column >= 0
    assert np.array_equal(np.array([2, 0, 1])[moved.forest.column[splits]], expected.forest.column[splits])
    assert moved.log_factor.tobytes() == expected.log_factor.tobytes()
    assert moved.mass.tobytes() == expected.mass.tobytes()


def scores_along(grown, codes, sizes, column):
    """Log odds of rows with every code of a column in turn, (codes - 1, n)."""
    moved = np.repeat(codes[None], sizes[column] - 1, axis=0)
    moved[:, :, column] = np.arange(1, sizes[column])[:, None]
    columns = byte_columns(moved.reshape(-1, len(sizes)), np.array(sizes))
    scores = forest_scores(columns, grown.forest, grown.log_factor, np.zeros(2))
    return (scores[:, 1] - scores[:, 0]).reshape(sizes[column] - 1, -1)


@pytest.mark.parametrize("sizes", [(12,), (12, 7, 20), (12, 7, 20, 3, 3, 3, 3, 3, 12)], ids=len)
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("seed", range(3))
def test_monotone_columns_never_turn(sizes, sign, seed):
    sample = example(n=500, sizes=sizes, k=2, seed=seed)
    direction = np.zeros(len(sizes), np.int8)
    direction[0], direction[-1] = sign, sign
    grown = grow(sample, GrowthSettings(trees=25, leaves=9, prior=0.1), direction)
    codes = np.stack([sample.columns.column(j) for j in range(len(sizes))], axis=1)[:60]
    for column in {0, len(sizes) - 1}:
        rises = np.diff(scores_along(grown, codes, sizes, column), axis=0)
        assert (sign * rises >= -1e-12).all()
        free = grow(sample, GrowthSettings(trees=25, leaves=9, prior=0.1))
        turns = np.diff(scores_along(free, codes, sizes, column), axis=0)
        assert (sign * turns < -1e-3).any()  # without a direction it does turn


def test_nothing_to_gain_grows_no_tree():
    rows = example(weight=1e-9)
    for given in (rows, replace(rows, weight=0 * rows.weight, folds={})):
        (grown,), losses = grow_folds(halves(given), GrowthSettings())
        assert grown.forest.count == 0
        assert grown.log_factor.shape == grown.mass.shape == (3, 0)
        assert len(losses) == 1
    constant = replace(example(weight=1.0), words=0 * rows.words, first=np.array([0, 1, 2, 3]))
    assert grow(constant, GrowthSettings()).forest.count == 0


def test_without_held_out_rows_losses_are_no_numbers():
    sample = with_folds(example(), np.zeros((1, 400), dtype=bool))
    (grown,), losses = grow_folds(sample, GrowthSettings(trees=4))
    assert grown.forest.count == 4
    assert len(losses) == 5
    assert np.isnan(losses).all()


def test_growth_ends_when_the_report_says_so():
    seen = []

    def report(trees, loss):
        seen.append((trees, loss))
        return trees == 3

    _, losses = grow_folds(halves(example()), GrowthSettings(), report=report)
    assert [trees for trees, _ in seen] == [1, 2, 3]
    assert [loss for _, loss in seen] == losses[1:].tolist()


@pytest.mark.parametrize("name", ["trees", "leaves", "rate", "prior", "least_variance", "patience"])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be from .* got {value!r}".replace("(", r"\(")):
        GrowthSettings(**{name: value})
