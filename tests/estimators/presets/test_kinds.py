"""Kinds of columns: defaults, given kinds and the schema."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.encoders import KMeansBins, QuantileBins
from calibayes.estimators import tabular
from calibayes.families import Bernoulli, Categorical, Diagonal, Gaussian

KINDS = tuple(tabular.KINDS)
"""Those of the library: other tests, such as that of the examples of documents, may add more."""


def table(n=200):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    X = pd.DataFrame(
        {
            "age": np.round(rng.normal(40 + 8 * y, 9), 1),
            "zip": rng.integers(100, 106, size=n) + y,
            "smokes": (rng.random(n) < 0.3 + 0.4 * y),
            "flag": (rng.random(n) < 0.5 + 0.2 * y).astype(int),
            "town": pd.Categorical(np.array(["a", "b", "c"])[rng.integers(3, size=n)]),
        }
    )
    X.loc[:9, "age"] = np.nan
    return X, np.array(["ill", "well"])[y]


def test_default_kinds():
    X, y = table()
    binned, gaussian = (
        cb.NaiveBayes(discretize="kmeans").fit(X, y).schema_,
        cb.GenerativeClassifier().fit(X, y).schema_,
    )
    kernel = [column.kind for column in cb.NaiveBayes().fit(X, y).schema_.columns]
    assert kernel == ["kernel", "kernel", "categorical", "kernel", "categorical"]
    assert [column.kind for column in binned.columns] == [
        "binned",
        "binned",
        "categorical",
        "binned",
        "categorical",
    ]
    assert [column.kind for column in gaussian.columns] == [
        "gaussian",
        "gaussian",
        "categorical",
        "gaussian",
        "categorical",
    ]
    assert binned["age"].missing == 10
    assert binned["flag"].reason == "numbers: 2 distinct values, 2 bins"
    assert binned["smokes"].reason == "booleans: 2 levels"
    assert binned["town"].reason == "text: 3 levels"


def test_a_schema_prints_as_a_table():
    X, y = table()
    schema = (
        cb.NaiveBayes(kinds={"zip": "categorical"}, discretize="mdl").fit(X[["zip", "smokes"]], y).schema_
    )
    assert repr(schema) == schema.text()
    assert schema.text().splitlines() == [
        "name    kind         reason              missing",
        "zip     categorical  given: 7 levels     0",
        "smokes  categorical  booleans: 2 levels  0",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"age": "gaussian", "zip": "categorical", "smokes": "bernoulli", "flag": "bernoulli"},
        {0: "gaussian", 1: "categorical", 2: "bernoulli", -2: "bernoulli"},
    ],
)
def test_kinds_are_families_over_their_columns(given):
    X, y = table()
    families = [
        ("gaussian", Gaussian(Diagonal(), prior="auto"), ["age"]),
        ("categorical", Categorical(alpha=1.0), ["zip", "town"]),
        ("bernoulli", Bernoulli(alpha=1.0), ["smokes", "flag"]),
    ]
    expected = cb.GenerativeClassifier(families=families).fit(X, y)
    assert not hasattr(expected, "schema_")
    for estimator in (cb.NaiveBayes, cb.GenerativeClassifier):
        model = estimator(kinds=given).fit(X, y)
        assert model.fitted_.binding.chosen == {"gaussian": (0,), "categorical": (1, 4), "bernoulli": (2, 3)}
        assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-10)
        assert model.schema_["smokes"] == ("smokes", "bernoulli", "given", 0)


def test_numbers_in_bins_beside_gaussians():
    X, y = table()
    model = cb.GenerativeClassifier(kinds={"age": "binned"}).fit(X, y)
    assert isinstance(model.fitted_.binding.encoders["binned"], KMeansBins)
    assert model.sample(5, random_state=0)[0].shape == (5, 5)


@pytest.mark.parametrize("place", ["NaiveBayes", "GenerativeClassifier", "docs/reference.md"])
def test_the_documents_list_all_kinds(place):
    page = Path(__file__).parents[3] / place
    text = page.read_text(encoding="utf-8") if page.exists() else getattr(cb, place).__doc__
    assert [kind for kind in KINDS if f'"{kind}"' not in text] == []


def test_a_new_kind_is_one_entry(monkeypatch):
    wide = tabular.Kind(lambda choices: Gaussian(), lambda choices: tabular.Numbers())
    monkeypatch.setitem(tabular.KINDS, "full", wide)
    X, y = table()
    model = cb.NaiveBayes(kinds={"age": "full", "zip": "full"}).fit(X.dropna(), y[10:])
    assert model.fitted_.binding.chosen["full"] == (0, 1)


@pytest.mark.parametrize("estimator", [cb.NaiveBayes, cb.GenerativeClassifier])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": "normal"}, "unknown kind 'normal' of column 'age'; the kinds are gaussian, kernel, binned"),
        ({"height": "gaussian"}, "there is no column 'height'"),
        ({9: "gaussian"}, "there is no column 9"),
        ({"town": "gaussian"}, "column 'town' cannot be 'gaussian': it holds text, not numbers"),
        ({"smokes": "binned"}, "column 'smokes' cannot be 'binned': it holds booleans"),
        ({"age": "bernoulli"}, "column 'age' has values other than 0 and 1"),
        ({"age": "gaussian", 0: "binned"}, "column 'age' is given as 'gaussian' and as 'binned'"),
        (["gaussian"], "kinds must be a mapping"),
    ],
)
def test_bad_kinds(estimator, given, message):
    with pytest.raises(ValueError, match=message):
        estimator(kinds=given).fit(*table())


def test_families_or_kinds():
    with pytest.raises(ValueError, match="families or kinds, not both"):
        cb.GenerativeClassifier(kinds={}, families=[("a", Gaussian(), [0])]).fit(*table())


class TestDiscretise:
    @pytest.mark.parametrize("discretize", [None, "kmeans", "quantile", "uniform", "mdl", QuantileBins(8)])
    def test_weighted_rows_are_repeated_rows(self, discretize):
        X, y = table()
        times = np.random.default_rng(1).integers(0, 4, size=len(y))
        again = X.loc[np.repeat(X.index, times)]
        model = cb.NaiveBayes(discretize=discretize, rare_levels=3)
        expected = model.fit(again, np.repeat(y, times)).predict_proba(X)
        assert_allclose(model.fit(X, y, sample_weight=times).predict_proba(X), expected, rtol=1e-8)

    def test_the_number_of_bins(self):
        X, y = table()
        for name in ("kmeans", "quantile", "uniform"):
            model = cb.NaiveBayes(discretize=name, n_bins=3).fit(X[["age"]], y)
            assert model.fitted_.binding.encoders["binned"].layout()["levels"] == (3,)

    def test_unlabeled_rows(self):
        X, y = table()
        known = np.arange(len(y)) % 3 > 0
        some = np.where(known, y, None)
        model = cb.NaiveBayes(discretize="mdl", rule="em").fit(X, some)
        labeled = cb.NaiveBayes(discretize="mdl").fit(X[known], y[known])
        left, right = (m.fitted_.binding.encoders["binned"].edges[0] for m in (model, labeled))
        assert_array_equal(left[1:-1], right[1:-1])

    @pytest.mark.parametrize("discretize", ["log", 5, QuantileBins])
    def test_bad_names(self, discretize):
        with pytest.raises(ValueError, match="discretize must be one of 'kmeans', 'quantile'"):
            cb.NaiveBayes(discretize=discretize).fit(*table())
