"""Levels and pooled levels."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.encoders import Levels
from calibayes.encoders.levels import Pooling
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array


def column(*values):
    return read_array(np.array(values, dtype=object)[:, None])


def fitted(levels, table, weight=None):
    return levels.fit(summary_of(table, np.ones(table.n) if weight is None else np.asarray(weight)), [0])


@pytest.mark.parametrize("at_least", [None, 5, 30])
@pytest.mark.parametrize(
    "values",
    [
        (0, 1, 2, 4),
        (0, 7),
        (3,),
        (0, 1005, 1001),
        (0, 1, 1002),
        (-1, 0, 1),
        (0.5, 1.0, 2.0),
        (0.0, 2.0, 3.0),
        (0, 5000),
        ("a", "b", "c"),
        (False, True),
    ],
)
def test_levels_that_are_kept_without_their_rows(values, at_least):
    """The same as an encoder that is fitted without the rows."""
    table = read_array(np.array(values)[:, None])
    levels = Levels(at_least=at_least)
    whole = fitted(levels, table)
    kept = whole.is_kept_unseen(0)
    assert kept.shape == whole.levels[0].shape
    for row, value in enumerate(values):
        others = table.rows(np.arange(table.n) != row)
        without = fitted(levels, others).levels[0].tolist() if others.n else []
        assert kept[whole.levels[0].tolist().index(value)] == (value in without)


COLORS = column("red", "red", "red", "blue", "blue", "green", "grey", None)


def test_rare_levels_are_pooled():
    levels = fitted(Levels(rare=2), COLORS)
    assert levels.layout() == {"levels": (3,)}
    assert_array_equal(levels.encode(COLORS)[:, 0], [1, 1, 1, 0, 0, 2, 2, -1])
    assert levels.encode(column("pink", None))[:, 0].tolist() == [2, -1]
    assert levels.remarks() == ["4 levels, 2 pooled as other"]


def test_most_frequent_levels_are_not_pooled():
    levels = fitted(Levels(most=1), COLORS)
    assert levels.unpooled[0].tolist() == ["red"]
    assert fitted(Levels(most=3), COLORS).unpooled[0].tolist() == ["blue", "green", "red"]
    assert fitted(Levels(most=4), COLORS).layout() == {"levels": (4,)}


def test_weights_count_as_rows():
    levels = fitted(Levels(rare=2), COLORS, [1, 1, 1, 0.5, 0.5, 9, 1, 1])
    assert levels.unpooled[0].tolist() == ["green", "red"]


def test_without_pooled_levels_unseen_values_have_no_code():
    levels = fitted(Levels(rare=1), COLORS)
    assert levels.encode(column("pink"))[0, 0] == -1
    assert levels.remarks() == ["4 levels"]


def test_integers_beside_pooled_ones_are_those_that_occur():
    numbers = read_array(np.array([0, 0, 1, 5, 5])[:, None])
    assert fitted(Levels(), numbers).layout() == {"levels": (6,)}
    levels = fitted(Levels(rare=2), numbers)
    assert levels.encode(read_array(np.array([0, 1, 3, 5])[:, None]))[:, 0].tolist() == [0, 2, 2, 1]


def test_other_is_decoded_as_any_pooled_value():
    levels = fitted(Levels(rare=2), COLORS)
    drawn = levels.decode(np.array([[0], [1], *[[2]] * 30]), np.random.default_rng(0))[0]
    assert drawn[:2].tolist() == ["blue", "red"]
    assert set(drawn[2:]) == {"green", "grey"}


def test_extend_adds_new_values_to_the_pooled_ones():
    levels = fitted(Levels(rare=2), COLORS)
    grown, moved = levels.extend(column("pink", "red"))
    assert moved is None
    assert grown.encode(column("pink", "blue"))[:, 0].tolist() == [2, 0]
    grown, moved = fitted(Levels(most=9), COLORS).extend(column("pink"))
    assert grown.layout() == {"levels": (5,)}
    assert moved[0].tolist() == [0, 1, 2, 3]
    again, moved = grown.extend(column("violet", "pink"))
    assert moved is None
    assert again.pooled[0].tolist() == ["pink", "violet"]


@pytest.mark.parametrize("options", [{"rare": -1.0}, {"rare": float("nan")}, {"most": 0}])
def test_bad_pooling(options):
    with pytest.raises(ValueError, match="rare must be at least 0 and most at least 1"):
        Pooling(**options)


class TestNaiveBayes:
    def table(self):
        rng = np.random.default_rng(0)
        town = rng.choice(list("abcdefgh"), p=[0.4, 0.3, 0.2, 0.02, 0.02, 0.02, 0.02, 0.02], size=400)
        return pd.DataFrame({"town": town}), np.where(
            rng.random(400) < np.isin(town, ["a", "d"]) * 0.8, "x", "y"
        )

    def test_other_is_a_level_like_any(self):
        X, y = self.table()
        by_hand = X.assign(town=np.where(X["town"].isin(list("abc")), X["town"], "other"))
        for options in ({"rare_levels": 30}, {"max_levels": 3}):
            model = cb.NaiveBayes(**options).fit(X, y)
            expected = cb.NaiveBayes().fit(by_hand, y).predict_proba(by_hand)
            assert_allclose(model.predict_proba(X), expected)
            assert model.schema_["town"].reason == "text: 8 levels, 5 pooled as other"
            unseen = model.predict_proba(pd.DataFrame({"town": ["nowhere"]}))
            assert_allclose(unseen[0], expected[X["town"] == "e"][0])

    def test_the_first_partial_fit_decides_which_levels_are_pooled(self):
        X, y = self.table()
        model = cb.NaiveBayes(rare_levels=10, rule="ml").partial_fit(X[:200], y[:200], classes=["x", "y"])
        model.partial_fit(X[200:], y[200:])
        by_hand = X.assign(town=np.where(X["town"].isin(list("abc")), X["town"], "other"))
        expected = cb.NaiveBayes(rule="ml").fit(by_hand, y).predict_proba(by_hand)
        assert_allclose(model.predict_proba(X), expected)

    def test_partial_fit_pools_new_levels(self):
        X, y = self.table()
        common = X["town"].isin(list("abc")).to_numpy()
        model = cb.NaiveBayes(max_levels=3, rule="ml").partial_fit(X[common], y[common], classes=["x", "y"])
        model.partial_fit(X[~common], y[~common])
        assert_allclose(
            model.predict_proba(X), cb.NaiveBayes(max_levels=3, rule="ml").fit(X, y).predict_proba(X)
        )

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({"rare_levels": -1}, "rare_levels"),
            ({"max_levels": 0}, "max_levels"),
            ({"max_levels": 2.5}, "max_levels"),
        ],
    )
    def test_bad_parameters(self, options, name):
        with pytest.raises(ValueError, match=name):
            cb.NaiveBayes(**options).fit(*self.table())


@pytest.mark.parametrize("trained_with_missing", [True, False])
def test_large_integers_are_the_same_levels_beside_missing_values(trained_with_missing):
    """A missing value makes the integers of its column floats."""
    large = (2**53 + 1, -(2**53) - 1, 2**62)
    levels = fitted(Levels(), column(*large, None) if trained_with_missing else column(*large))
    alone = [levels.encode(column(value))[0, 0] for value in large]
    assert alone == levels.encode(column(*large, None))[:-1, 0].tolist()
    assert sorted(alone) == [0, 1, 2]
