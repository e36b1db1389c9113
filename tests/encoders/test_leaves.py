"""Leaves of trees as levels: the codes of rows, the probabilities they begin with, and damaged trees."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from calibayes import GenerativeClassifier, encoders, every
from calibayes.encoders import leaves
from calibayes.encoders.leaves import Leaves, ordered_rows
from calibayes.engines import Serial
from calibayes.families import Categorical
from calibayes.kernels.forests import ONE_LEAF, TreeNodes, forest_of
from calibayes.kernels.growth_rows import ManyBlocks, RowCounts
from calibayes.kernels.row_keys import keys_of
from calibayes.kernels.tree_growth import GrowthSettings, forest_scores
from calibayes.streams.growth_blocks import BlockList
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.seeds import generator

N = 300
RNG = generator(0)
FRAME = pd.DataFrame(
    {
        "x": RNG.normal(size=N),
        "gaps": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
        "text": RNG.choice(["a", "b", "c"], N),
        "empty": np.nan,
        "one": 1.0,
    }
)
CODES = (FRAME["x"] > 0).to_numpy(int) + (FRAME["text"] == "a").to_numpy(int)
TABLE, WEIGHT = read_frame(FRAME), RNG.uniform(0.5, 2.0, N)
LEAVES = Leaves(GrowthSettings(trees=8)).fit(summary_of(TABLE, WEIGHT, CODES), range(5))


def test_codes_are_those_of_the_layout():
    found, layout = LEAVES.encode(TABLE), LEAVES.layout()
    LEAVES.verify()
    assert found.shape == (N, LEAVES.forest.count)
    assert layout["levels"] == LEAVES.forest.leaves
    assert (found.max(axis=0) < layout["levels"]).all()
    assert found.min() == 0
    assert len(set(layout["columns"])) == len(layout["levels"])
    assert layout["columns"][0] == "tree 1"


def test_empty_and_constant_columns_are_not_split():
    assert {3, 4}.isdisjoint(LEAVES.forest.column.tolist())
    assert {0, 2} <= set(LEAVES.forest.column.tolist())


def test_probabilities_give_the_posterior_of_the_grown_trees():
    codes = LEAVES.encode(TABLE)
    first = np.concatenate([[0], np.cumsum(LEAVES.forest.leaves)])
    mass = np.concatenate([np.bincount(column, WEIGHT) for column in codes.T])
    log_leaf, log_class = LEAVES.start_probabilities(mass)
    assert np.logaddexp.reduce(log_class) == pytest.approx(0.0, abs=1e-12)
    for low, high in pairwise(first):
        assert np.logaddexp.reduce(log_leaf[:, low:high], axis=1) == pytest.approx(np.zeros(3), abs=1e-12)
    joint = log_class + sum(log_leaf[:, first[t] + codes[:, t]].T for t in range(codes.shape[1]))
    columns = LEAVES.bytes.encode(TABLE)
    grown = forest_scores(columns, LEAVES.forest, LEAVES.log_factor, LEAVES.log_start)
    np.testing.assert_allclose(log_softmax(joint, axis=1), log_softmax(grown, axis=1), atol=1e-10)


def held_out_rows(table, weight, encoder, seed=0):
    """The rows of a table that growth holds out: one in ten of each class, in an order by content."""
    blocks = summary_of(table, weight, CODES).blocks(encoder, RowCounts())
    held_out = ordered_rows(blocks, keys_of(blocks, 3, seed)).place % 10 == 4
    for code in range(3):
        tenth = (np.sum(code == CODES) + 5) // 10
        assert held_out[code == CODES].sum() == tenth
    return held_out


def test_a_tenth_of_each_class_is_held_out(monkeypatch):
    monkeypatch.setattr(leaves, "FEW_ROWS", 0)
    shares, first = np.log(np.bincount(CODES, WEIGHT) / WEIGHT.sum()), {}
    for seed in (0, 1):
        found, _ = Leaves(GrowthSettings(trees=1)).grown(
            summary_of(TABLE, WEIGHT, CODES), range(5), seed=seed
        )
        held_out, first[seed] = held_out_rows(TABLE, WEIGHT, LEAVES.bytes, seed), found.losses[0]
        expected = np.average(-shares[CODES[held_out]], weights=WEIGHT[held_out])
        assert first[seed] == pytest.approx(expected, rel=1e-9)
    assert first[0] != first[1]
    assert (
        Leaves(GrowthSettings(trees=1)).fit(summary_of(TABLE, WEIGHT, CODES), range(5)).losses[0] == first[0]
    )


def test_of_few_rows_folds_are_held_out_and_all_rows_used():
    found = Leaves(GrowthSettings(trees=8)).fit(summary_of(TABLE, WEIGHT, CODES), range(5))
    shares = np.bincount(CODES, WEIGHT) / WEIGHT.sum()
    assert found.losses[0] == pytest.approx(-np.sum(shares * np.log(shares)))  # of all rows
    assert found.forest.count == np.argmin(found.losses)
    root = found.encode(TABLE)[:, 0]
    residual = np.eye(3)[CODES] - shares
    spread = shares * (1 - shares) * 1.5
    for leaf in range(found.forest.leaves[0]):
        weight = WEIGHT[root == leaf]
        step = weight @ residual[root == leaf] / (weight.sum() * spread + 5.0)
        np.testing.assert_allclose(found.log_factor[:, leaf], 0.1 * step, atol=1e-9)


def assert_same_trees(found, expected):
    """Trees, factors, losses and start are the same to the bit."""
    for name, array in vars(expected.forest).items():
        assert np.array_equal(getattr(found.forest, name), array), name
    for name in ("log_factor", "log_start", "losses"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize("weight", [WEIGHT, np.ones(N)], ids=["weighted", "ones"])
def test_names_of_classes_do_not_matter(monkeypatch, few, weight):
    monkeypatch.setattr(leaves, "FEW_ROWS", few)
    names = np.array([2, 0, 1])
    one, other = (
        Leaves(GrowthSettings(trees=8)).grown(summary_of(TABLE, weight, codes), range(5))
        for codes in (CODES, names[CODES])
    )
    back = replace(other[0], log_factor=other[0].log_factor[names], log_start=other[0].log_start[names])
    assert_same_trees(back, one[0])
    assert np.array_equal(other[1][names], one[1])


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize("weight", [WEIGHT, np.ones(N)], ids=["weighted", "ones"])
def test_the_order_of_rows_does_not_matter(monkeypatch, few, weight):
    """The frequencies of classes, sums of weights that are no whole numbers, may differ by rounding; nothing else does."""
    monkeypatch.setattr(leaves, "FEW_ROWS", few)
    order = generator(3).permutation(N)

    def grown(rows):
        table = read_frame(FRAME.iloc[rows].reset_index(drop=True))
        return Leaves(GrowthSettings(trees=8)).grown(summary_of(table, weight[rows], CODES[rows]), range(5))

    (one, mass), (other, other_mass) = grown(np.arange(N)), grown(order)
    assert one.forest.count > 2
    assert np.array_equal(other_mass, mass)
    if weight is WEIGHT:
        for name in ("log_factor", "log_start", "losses"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=1e-14)
        other = replace(other, log_factor=one.log_factor, log_start=one.log_start, losses=one.losses)
    assert_same_trees(other, one)


@pytest.mark.parametrize("few", [0, 500])
@pytest.mark.parametrize("copies", [10, 60])
def test_the_order_of_rows_of_a_table_with_a_symmetry_does_not_matter(monkeypatch, few, copies):
    """Three flags in all combinations, of which any two may be exchanged: rows held out are chosen by content alone."""
    monkeypatch.setattr(leaves, "FEW_ROWS", few)
    flags = np.repeat(np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)]), copies, axis=0)
    codes = flags.sum(axis=1) % 2 ^ (np.arange(len(flags)) % copies % 7 == 0)

    def grown(rows):
        table = read_frame(pd.DataFrame(flags[rows], columns=list("abc")).astype(float))
        return Leaves(GrowthSettings(trees=9)).fit(
            summary_of(table, np.ones(len(rows)), codes[rows]), range(3)
        )

    expected = grown(np.arange(len(flags)))
    for seed in range(3):
        assert_same_trees(grown(generator([4, seed]).permutation(len(flags))), expected)


@pytest.mark.parametrize("few", [0, 500])
def test_a_row_of_weight_three_is_three_rows(monkeypatch, few):
    """If weights are counts: copies are held out one by one. The unit of weights does not matter either."""
    monkeypatch.setattr(leaves, "FEW_ROWS", few)
    times = generator(5).integers(1, 4, N)
    source = np.repeat(np.arange(N), times)
    repeated = read_frame(FRAME.iloc[source].reset_index(drop=True))
    settings = GrowthSettings(trees=8)
    expected, mass = Leaves(settings).grown(
        summary_of(repeated, np.ones(len(source)), CODES[source]), range(5)
    )
    encoder = expected.bytes
    for unit in (1.0, 0.25):
        summary = summary_of(TABLE, unit * times, CODES)
        blocks = summary.blocks(encoder, RowCounts(unit, unit))
        assert blocks.rows.n == len(source)
        assert blocks.rows.weight.tolist() == [1.0]
        found, found_mass = Leaves(settings).grown(summary, range(5), RowCounts(unit, unit))
        assert_same_trees(found, expected)
        assert np.array_equal(found_mass, mass)


def test_weights_of_classes_are_no_copies():
    """Weights are divided among the copies of a row, which are those before class weights."""
    times, factor = generator(6).integers(1, 4, N), np.array([0.5, 1.0, 3.0])
    counts = RowCounts(2.0, 1.0, factor)
    rows = summary_of(TABLE, factor[CODES] * times, CODES).blocks(LEAVES.bytes, counts).rows
    source = np.repeat(np.arange(N), times)
    assert np.array_equal(rows.labels, CODES[source])
    np.testing.assert_allclose(rows.weight, factor[CODES[source]] / 2.0, rtol=1e-15)
    assert np.array_equal(rows.words, LEAVES.bytes.encode(TABLE).rows(source).words)
    assert counts.copies(np.array([0, 2]), np.array([0.5, 3.0])) is None


def test_blocks_that_hold_no_row_have_no_part_in_the_order():
    """The first block may have no labeled row, and weights may be one number in some blocks only."""
    blocks = summary_of(TABLE, np.ones(N), CODES).blocks(LEAVES.bytes, RowCounts())
    expected = ordered_rows(blocks, keys_of(blocks, 3))
    for cuts in ([0, 7], [0, 0, 150, 300], [1]):
        parts = []
        for own in np.split(np.arange(N), cuts):
            part = summary_of(TABLE.rows(own), np.ones(len(own)), CODES[own])
            parts.append(part.blocks(LEAVES.bytes, RowCounts()).rows)
        many = ManyBlocks(Serial(), BlockList(parts))
        found = ordered_rows(many, keys_of(many, 3))
        assert np.array_equal(found.place, expected.place)
        assert np.array_equal(found.fractions, expected.fractions)


def test_units_of_numbers_do_not_matter():
    table = read_frame(FRAME.assign(x=np.exp(FRAME["x"]), gaps=1e4 * FRAME["gaps"] - 7))
    other = Leaves(GrowthSettings(trees=8)).fit(summary_of(table, WEIGHT, CODES), range(5))
    assert np.array_equal(other.forest.column, LEAVES.forest.column)
    assert np.array_equal(other.encode(table), LEAVES.encode(TABLE))
    np.testing.assert_allclose(other.log_factor, LEAVES.log_factor, atol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 1e-40])
def test_without_weight_of_held_out_rows_growth_ends_after_its_patience(monkeypatch, weight):
    """Bins of few values do not depend on weights: the same rows are held out whatever these are."""
    monkeypatch.setattr(leaves, "FEW_ROWS", 0)
    table = read_frame(pd.DataFrame(generator(7).integers(0, 40, (N, 3)).astype(float)))
    encoder = Leaves(GrowthSettings(trees=1)).fit(summary_of(table, np.ones(N), CODES), range(3)).bytes
    weights = np.where(held_out_rows(table, np.ones(N), encoder), weight, 1.0)
    assert held_out_rows(table, weights, encoder).tolist() == (weights < 1).tolist()
    found = Leaves(GrowthSettings(patience=3)).fit(summary_of(table, weights, CODES), range(3))
    assert found.forest.count == 3
    assert np.isnan(found.losses).all()


def test_few_rows_hold_out_none():
    few = Leaves(GrowthSettings(patience=4, least_variance=0.1)).fit(
        summary_of(read_frame(FRAME[:8]), np.ones(8), np.arange(8) % 2), range(5)
    )
    assert few.forest.count <= 4
    assert np.isnan(few.losses).all()


def test_nothing_to_split_is_one_leaf():
    found = Leaves().fit(summary_of(read_frame(FRAME[["empty", "one"]]), WEIGHT, CODES), range(2))
    found.verify()
    assert found.forest.leaves == (1,)
    assert not found.encode(read_frame(FRAME[["empty", "one"]])).any()


def test_labels_are_needed():
    with pytest.raises(ValueError, match="needs the class codes"):
        Leaves().fit(summary_of(TABLE, WEIGHT), range(5))
    with pytest.raises(ValueError, match="two classes"):
        Leaves().fit(summary_of(TABLE, WEIGHT, np.zeros(N, dtype=int)), range(5))
    with pytest.raises(ValueError, match="cannot be decoded"):
        LEAVES.decode(np.zeros((1, 8)), None)


def test_rows_without_a_label_take_no_part():
    some = np.where(np.arange(N) < 200, CODES, -1)
    found = Leaves(GrowthSettings(trees=4)).fit(summary_of(TABLE, WEIGHT, some), range(5))
    alone = Leaves(GrowthSettings(trees=4)).fit(
        summary_of(read_frame(FRAME[:200]), WEIGHT[:200], CODES[:200]), range(5)
    )
    assert found.log_start.tolist() == alone.log_start.tolist()
    assert found.encode(TABLE).shape == (N, found.forest.count)


def test_leaves_can_be_the_encoder_of_any_model():
    model = GenerativeClassifier(
        families=[("t", Categorical(), every, Leaves(GrowthSettings(trees=2)))], rule="ml"
    ).fit(FRAME[["x", "gaps", "text"]], CODES)
    assert model.score(FRAME[["x", "gaps", "text"]], CODES) > 0.9


def test_only_the_same_trees_unite():
    assert LEAVES.unite(LEAVES) == (LEAVES, None, None)
    other = Leaves(GrowthSettings(trees=8)).fit(summary_of(TABLE, WEIGHT, 2 - CODES[::-1]), range(5))
    with pytest.raises(ValueError, match="different trees"):
        LEAVES.unite(other)
    shifted = FRAME.assign(x=FRAME["x"] * 2)
    with pytest.raises(ValueError, match="different trees"):
        LEAVES.unite(
            Leaves(GrowthSettings(trees=8)).fit(summary_of(read_frame(shifted), WEIGHT, CODES), range(5))
        )


def beyond():
    """Trees that split a column that there is not."""
    trees = [*LEAVES.forest.trees()]
    column = np.where(trees[0].column >= 0, 5, -1).astype(np.int32)
    return forest_of([TreeNodes(column, *trees[0][1:]), *trees[1:]])


DAMAGED = {
    "other columns of bytes": {"indices": (0, 1, 2, 4, 3)},
    "a column twice": {"indices": (0, 0, 2, 3, 4)},
    "a column that there is not": {"forest": beyond()},
    "other trees": {"forest": forest_of([ONE_LEAF])},
    "no trees": {"forest": forest_of([]), "log_factor": LEAVES.log_factor[:, :0]},
    "factors of too few leaves": {"log_factor": LEAVES.log_factor[:, :-1]},
    "factors of too few classes": {"log_factor": LEAVES.log_factor[:-1]},
    "factors that are no numbers": {"log_factor": LEAVES.log_factor * np.nan},
    "infinite factors": {"log_factor": LEAVES.log_factor + np.inf},
    "factors as objects": {"log_factor": LEAVES.log_factor.astype(object)},
    "one class": {"log_start": np.zeros(1), "log_factor": LEAVES.log_factor[:1]},
    "a start that is no number": {"log_start": LEAVES.log_start * np.nan},
    "no losses": {"losses": np.zeros(0)},
    "losses as texts": {"losses": np.array(["a"])},
    "losses as objects": {"losses": np.array([None])},
    "losses as a matrix": {"losses": np.zeros((2, 2))},
    "a monotone column of no sign": {"monotone": ((0, 2),)},
    "a monotone column that is none": {"monotone": ((-1, 1),)},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_encoders_are_refused(name):
    with pytest.raises(ValueError, match=r"\w"):
        replace(LEAVES, **DAMAGED[name]).verify()


def test_the_encoder_is_public():
    assert encoders.Leaves is Leaves
