"""Leaves of trees as levels: the codes of rows, the probabilities they begin with, and damaged trees."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax

from calibayes import GenerativeClassifier, encoders, every
from calibayes.encoders import leaves
from calibayes.encoders.leaves import Leaves
from calibayes.families import Categorical
from calibayes.kernels.forests import ONE_LEAF, TreeNodes, forest_of
from calibayes.kernels.tree_growth import GrowthSettings, forest_scores
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
    grown = LEAVES.log_start + forest_scores(LEAVES.bytes.encode(TABLE), LEAVES.forest, LEAVES.log_factor)
    np.testing.assert_allclose(log_softmax(joint, axis=1), log_softmax(grown, axis=1), atol=1e-10)


def test_a_tenth_of_each_class_is_held_out(monkeypatch):
    monkeypatch.setattr(leaves, "FEW_ROWS", 0)
    first = Leaves(GrowthSettings(trees=1)).fit(summary_of(TABLE, WEIGHT, CODES), range(5)).losses[0]
    held_out = np.zeros(N, dtype=bool)
    for code in range(3):
        held_out[np.flatnonzero(code == CODES)[4::10]] = True
    shares = np.log(np.bincount(CODES, WEIGHT) / WEIGHT.sum())
    assert first == pytest.approx(np.average(-shares[CODES[held_out]], weights=WEIGHT[held_out]))


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


def test_names_of_classes_do_not_matter():
    other = Leaves(GrowthSettings(trees=8)).fit(
        summary_of(TABLE, WEIGHT, np.array([2, 0, 1])[CODES]), range(5)
    )
    assert np.array_equal(other.forest.column, LEAVES.forest.column)
    np.testing.assert_allclose(other.log_factor[[2, 0, 1]], LEAVES.log_factor, atol=1e-12)


def test_units_of_numbers_do_not_matter():
    table = read_frame(FRAME.assign(x=np.exp(FRAME["x"]), gaps=1e4 * FRAME["gaps"] - 7))
    other = Leaves(GrowthSettings(trees=8)).fit(summary_of(table, WEIGHT, CODES), range(5))
    assert np.array_equal(other.forest.column, LEAVES.forest.column)
    assert np.array_equal(other.encode(table), LEAVES.encode(TABLE))
    np.testing.assert_allclose(other.log_factor, LEAVES.log_factor, atol=1e-12)


def test_without_weight_of_held_out_rows_growth_ends_after_its_patience(monkeypatch):
    monkeypatch.setattr(leaves, "FEW_ROWS", 0)
    weight = np.ones(N)
    for code in range(3):
        weight[np.flatnonzero(code == CODES)[4::10]] = 0.0
    found = Leaves(GrowthSettings(patience=3)).fit(summary_of(TABLE, weight, CODES), range(5))
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
