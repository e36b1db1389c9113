"""Trees round by round: one round against Newton's step, held-out losses, monotone columns, same bits everywhere."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibayes.kernels import dispatch
from calibayes.kernels import forests as tree
from calibayes.kernels.dispatch import native_kernels, thread_limit
from calibayes.kernels.forests import forest_of, leaf_codes
from calibayes.kernels.tree_growth import (
    LARGEST_STEP,
    GrowthFold,
    GrowthRows,
    GrowthSettings,
    fold_of,
    forest_scores,
    grow_forests,
)
from calibayes.kernels.tree_nodes import ByteColumns, byte_columns
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.seeds import generator


def example(n=400, sizes=(9, 30, 4), k=3, seed=0, weight=None):
    """Rows whose classes depend on two columns together."""
    rng = generator([n, k, seed])
    codes = np.floor(rng.random((n, len(sizes))) * np.array(sizes)).astype(np.uint8)
    score = np.stack([np.sin(codes[:, 0] + c) * np.cos(codes[:, -1] * (c + 1)) for c in range(k)], axis=1)
    labels = np.argmax(2 * score + rng.gumbel(size=(n, k)), axis=1)
    start = np.broadcast_to(np.log(np.full(k, 1 / k)), (n, k))
    weight = rng.uniform(0.5, 2.0, n) if weight is None else np.broadcast_to(weight, n)
    return GrowthRows(byte_columns(codes, np.array(sizes)), labels, weight, start)


def halves(sample):
    return fold_of(sample, np.arange(len(sample.labels)) % 2 == 1)


def grow(sample, settings, direction=None):
    """Trees on all rows of a sample, none held out."""
    fold = fold_of(sample, np.zeros(len(sample.labels), dtype=bool))
    return grow_forests([fold], settings, direction).forests[0]


def prefix(grown, trees):
    """The first trees, and their log factors."""
    chosen = [*grown.forest.trees()][:trees]
    return forest_of(chosen), grown.log_factor[:, : sum(grown.forest.leaves[:trees])]


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
    losses = [
        loss_of(sample, sample.log_scores + forest_scores(sample.columns, *prefix(grown, t)))
        for t in range(13)
    ]
    assert all(after < before for before, after in pairwise(losses))
    # The second tree's factors are a step from the posterior after the first.
    first, factors = prefix(grown, 1)
    p = softmax(sample.log_scores + forest_scores(sample.columns, first, factors), axis=1)
    leaves = leaf_codes(sample.columns, grown.forest)[:, 1]
    own, w = leaves == 0, sample.weight[leaves == 0, None]
    step = np.sum(w * (np.eye(3)[sample.labels[own]] - p[own]), axis=0)
    step /= np.sum(w * p[own] * (1 - p[own]) * 1.5, axis=0) + 5.0
    np.testing.assert_allclose(grown.log_factor[:, grown.forest.leaves[0]], 0.1 * step, rtol=1e-10)


def test_held_out_rows_choose_the_number_of_trees():
    fold = halves(example(n=600))
    held_out = fold.held_out
    settings = GrowthSettings(rate=0.5, prior=0.1, patience=8)
    (grown,), losses = grow_forests([fold], settings)
    best = grown.forest.count
    assert 0 < best < len(losses) - 1 < 1000
    assert np.argmin(losses) == best
    for trees in (0, 1, best):
        scores = held_out.log_scores + forest_scores(held_out.columns, *prefix(grown, trees))
        assert losses[trees] == pytest.approx(loss_of(held_out, scores), rel=1e-12)
    np.testing.assert_allclose(scores, grown.held_out_scores, rtol=1e-12, atol=1e-12)
    assert losses[-8:].min() > losses[:-8].min() * (1 - 1e-3)


def is_over(losses, patience):
    """Whether the latest rounds, a sixth of all or as many as the patience, have gained less than a thousandth."""
    latest = max(patience, (len(losses) - 1) // 6)
    return len(losses) > latest and losses[-latest:].min() > 0.999 * losses[:-latest].min()


@pytest.mark.parametrize(("rate", "patience"), [(0.5, 8), (0.02, 3)])
def test_growth_ends_in_the_first_round_after_which_the_latest_rounds_have_not_gained(rate, patience):
    _, losses = grow_forests([halves(products())], GrowthSettings(rate=rate, prior=20.0, patience=patience))
    ends = [number for number in range(1, len(losses) + 1) if is_over(losses[:number], patience)]
    assert ends == [len(losses)]
    assert rate == 0.5 or len(losses) > 6 * patience  # more than the patience counts


def products(n=2000, seed=0):
    """Rows of two classes, decided by the sign of a product of two columns and by a third, and two useless columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 16, size=(n, 5)).astype(np.uint8)
    signs = np.sign(codes[:, :3] - 7.5)
    labels = (signs[:, 0] * signs[:, 1] + 0.5 * signs[:, 2] + rng.normal(size=n) > 0).astype(int)
    return GrowthRows(byte_columns(codes, np.full(5, 16)), labels, np.ones(n), np.full((n, 2), np.log(0.5)))


def test_growth_on_noise_ends_after_its_patience():
    """The best number of trees is small, and no more are grown than that and the patience."""
    for seed in range(5):
        sample = products(seed=seed)
        noise = np.random.default_rng(seed).permutation(sample.labels)
        (grown,), losses = grow_forests([halves(sample._replace(labels=noise))], GrowthSettings())
        assert grown.forest.count <= 10
        assert len(losses) - 1 <= grown.forest.count + 20


def test_folds_grow_together_as_many_rounds_as_are_best_for_all():
    sample, settings = example(n=600), GrowthSettings(rate=0.3, patience=8)
    rows = np.arange(600)
    folds = [fold_of(sample, rows % 3 == number) for number in range(3)]
    forests, losses = grow_forests(folds, settings)
    best = int(np.argmin(losses))
    assert [grown.forest.count for grown in forests] == [best] * 3
    alone, _ = grow_forests(folds[1:2], settings)
    shared = min(best, alone[0].forest.count)
    assert prefix(alone[0], shared)[1].tobytes() == prefix(forests[1], shared)[1].tobytes()
    scores = np.empty((600, 3))
    for number, grown in enumerate(forests):
        scores[rows % 3 == number] = grown.held_out_scores
    assert losses[best] == pytest.approx(loss_of(sample, scores), rel=1e-12)


def test_held_out_scores_are_those_of_the_trees_that_are_kept():
    """A held-out row without weight moves while the loss stays the same: no tree is kept, and so are the scores."""
    codes = np.repeat([[0], [1], [2], [3]], 200, axis=0).astype(np.uint8)
    labels = np.concatenate([np.arange(400) % 2, np.zeros(200, int), np.ones(200, int)])
    sample = GrowthRows(
        byte_columns(codes, np.array([4])), labels, np.ones(800), np.full((800, 2), np.log(0.5))
    )
    two = sample.only(np.isin(np.arange(800), [0, 500]))._replace(weight=np.array([1.0, 0.0]))
    (grown,), losses = grow_forests([GrowthFold(sample, two)], GrowthSettings(trees=5, leaves=4))
    assert len(losses) > 2
    assert np.ptp(losses) == 0.0
    assert grown.forest.count == 0
    np.testing.assert_array_equal(grown.held_out_scores, two.log_scores)


@pytest.mark.parametrize("k", [2, 3])
def test_all_versions_grow_the_same_forest_to_the_bit(monkeypatch, k):
    """Structure, log factors, held-out scores and losses: NumPy, every instruction set, any number of threads."""
    sample = example(k=k, n=700, sizes=(9, 30, 4, 256, 2, 3, 3, 3, 5))
    direction = np.array([0, 1, 0, -1, 0, 0, 0, 0, 0], np.int8) * (k == 2)
    args = [halves(sample)], GrowthSettings(trees=15, leaves=7), direction
    (expected,), losses = grow_forests(*args)
    assert expected.forest.count > 5

    def assert_same(found):
        (grown,), found_losses = found
        assert found_losses.tobytes() == losses.tobytes()
        for name, array in vars(expected.forest).items():
            assert np.array_equal(array, getattr(grown.forest, name)), name
        for name in ("log_factor", "mass", "held_out_scores"):
            assert getattr(grown, name).tobytes() == getattr(expected, name).tobytes(), name

    with numpy_only():
        assert_same(grow_forests(*args))
    for name in native_kernels.module.levels():
        with use_instruction_set(name):
            assert_same(grow_forests(*args))
    monkeypatch.setattr(tree, "MANY_CELLS", 0)
    monkeypatch.setattr(dispatch, "RANGE_BYTES", 2**12)
    for threads in (1, 2, 5):
        with thread_limit(threads):
            assert_same(grow_forests(*args))


def test_the_order_of_rows_changes_no_bit():
    sample, settings = example(n=700), GrowthSettings(trees=15, leaves=7)
    order = generator(5).permutation(700)
    expected, grown = grow(sample, settings), grow(sample.only(order), settings)
    assert grown.log_factor.tobytes() == expected.log_factor.tobytes()
    assert grown.mass.tobytes() == expected.mass.tobytes()


def scores_along(grown, codes, sizes, column):
    """Log odds of rows with every code of a column in turn, (codes - 1, n)."""
    moved = np.repeat(codes[None], sizes[column] - 1, axis=0)
    moved[:, :, column] = np.arange(1, sizes[column])[:, None]
    columns = byte_columns(moved.reshape(-1, len(sizes)), np.array(sizes))
    scores = forest_scores(columns, grown.forest, grown.log_factor)
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
    sample = example(weight=1e-9)
    for given in (sample, sample._replace(weight=0 * sample.weight)):
        (grown,), losses = grow_forests([GrowthFold(given, sample)], GrowthSettings())
        assert grown.forest.count == 0
        assert grown.log_factor.shape == (3, 0)
        assert len(losses) == 1
    constant = sample._replace(
        columns=ByteColumns(0 * sample.columns.words, np.array([0, 1, 2, 3])), weight=np.ones(400)
    )
    assert grow(constant, GrowthSettings()).forest.count == 0


def test_growth_ends_when_the_report_says_so():
    seen = []

    def report(trees, loss):
        seen.append((trees, loss))
        return trees == 3

    _, losses = grow_forests([halves(example())], GrowthSettings(), None, report)
    assert [trees for trees, _ in seen] == [1, 2, 3]
    assert [loss for _, loss in seen] == losses[1:].tolist()


@pytest.mark.parametrize("name", ["trees", "leaves", "rate", "prior", "least_variance", "patience"])
@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be from .* got {value!r}".replace("(", r"\(")):
        GrowthSettings(**{name: value})
