"""Structures that are searched for by predictions: what they choose, weights as copies, what refuses them, saved models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import calibayes as cb
from calibayes.datasets import load_penguins
from calibayes.estimators import tree_augmented
from calibayes.families import AllEdges, ConditionalLikelihood, Information, SoftError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SCORES = pytest.mark.parametrize("score", ["conditional_likelihood", "soft_error"])
MODELS = pytest.mark.parametrize(
    "estimator",
    [cb.TreeAugmentedNB(), cb.KDependenceBayes(max_parents=1), cb.KDependenceBayes()],
    ids=str,
)


def parity(n=600, seed=0):
    """The class is nearly the parity of two columns, which share more with a third one that is independent of the class."""
    rng = np.random.default_rng(seed)
    y, odd = rng.integers(0, 2, n), rng.integers(0, 2, n)
    left, right = rng.integers(0, 4, n), rng.integers(0, 4, n)
    other = np.where(rng.random(n) < 0.95, odd ^ y, rng.integers(0, 2, n))
    columns = {"left": 2 * left + odd, "right": 2 * right + other, "both": 4 * left + right}
    return pd.DataFrame(columns).astype(str), y


def joined(model):
    return {frozenset(edge[:2]) for edge in model.edges_}


@SCORES
@pytest.mark.parametrize("estimator", [cb.TreeAugmentedNB(), cb.KDependenceBayes(max_parents=1)], ids=str)
def test_columns_are_joined_that_tell_the_class_together(estimator, score):
    X, y = parity(2000)
    informed = clone(estimator).set_params(rule="ml").fit(X, y)
    searched = clone(estimator).set_params(rule="ml", structure=score).fit(X, y)
    assert joined(informed) == {frozenset(("left", "both")), frozenset(("right", "both"))}
    assert frozenset(("left", "right")) in joined(searched)
    X, y = parity(2000, seed=1)
    assert informed.score(X, y) < 0.6
    assert searched.score(X, y) > 0.9


@SCORES
@MODELS
def test_weights_are_copies(estimator, score):
    X, y = parity(200)
    times = np.random.default_rng(5).integers(0, 3, len(y))
    model = clone(estimator).set_params(structure=score)
    weighted = clone(model).fit(X, y, sample_weight=times)
    copied = clone(model).fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
    assert joined(weighted) == joined(copied)
    assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), rtol=1e-7, atol=1e-9)


@MODELS
def test_information_is_the_default(estimator):
    X, y = parity(200)
    found = [clone(estimator).set_params(structure=s).fit(X, y) for s in ("information", Information())]
    expected = clone(estimator).fit(X, y)
    assert found[0].edges_ == found[1].edges_ == expected.edges_


@SCORES
@MODELS
def test_mixed_tables(tmp_path, estimator, score):
    """Missing values, numbers and levels, columns of other kinds, class probabilities; the model is explained and saved."""
    penguins = load_penguins()
    kinds = {"body_mass_g": "gaussian"}
    model = clone(estimator).set_params(structure=score, kinds=kinds, priors=[0.5, 0.2, 0.3])
    model.fit(penguins.data, penguins.target)
    assert 1 <= len(model.edges_) <= 2 * 6
    assert "body_mass_g" not in {name for edge in model.edges_ for name in edge[:2]}
    assert model.score(penguins.data, penguins.target) > 0.97
    assert set(model.explain(penguins.data).overall()) == set(penguins.data.columns)
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    assert loaded.edges_ == model.edges_
    assert (loaded.predict_proba(penguins.data) == model.predict_proba(penguins.data)).all()


@MODELS
def test_rows_without_a_label_take_no_part_in_the_search(estimator):
    X, y = parity(300)
    labels = y.astype(object)
    labels[:60] = None
    model = clone(estimator).set_params(structure=SoftError(), rule="em")
    some = clone(model).fit(X[60:], y[60:])
    assert joined(model.fit(X, labels)) == joined(some)


def test_edges_that_are_not_allowed_are_not_tried():
    X, y = parity()
    allowed = cb.TreeAugmentedNB(structure="soft_error", edges=AllEdges(), max_cells=3)
    assert not allowed.fit(X, y).edges_


def test_many_columns(monkeypatch):
    monkeypatch.setattr(tree_augmented, "MOST_IN_TREE", (3, 2))
    X, y = parity(300)
    model = cb.TreeAugmentedNB(structure="conditional_likelihood", max_cells=3, rule="ml").fit(X, y)
    assert model.score(X, y) > 0.4
    monkeypatch.setattr(tree_augmented, "LARGEST_TABLES", 30)
    model = cb.TreeAugmentedNB(structure="conditional_likelihood", rule="ml").fit(X, y)
    assert len(model.fitted_.binding.chosen["tree"]) < 4
    assert len(model.predict_proba(X)) == 300


@MODELS
def test_what_needs_sums_over_rows_is_refused(estimator):
    X, y = parity(200)
    model = clone(estimator).set_params(structure=ConditionalLikelihood(2), rule="ml")
    message = "searched for with all rows at once: use structure='information'"
    with pytest.raises(ValueError, match=message):
        clone(model).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=message):
        cb.cross_validate_closed_form(model, X, y)
    fitted = clone(model).fit(X, y)
    for call in (lambda: fitted.merge(clone(model).fit(X, y)), lambda: fitted.forget(X[:5], y[:5])):
        with pytest.raises(ValueError, match=message):
            call()
    assert fitted.held_out_.how != "each row left out exactly"  # it would have taken part in the search


@pytest.mark.parametrize("given", ["tree", SoftError, None, 3])
def test_unknown_scores_are_refused(given):
    X, y = parity(60)
    with pytest.raises(ValueError, match="structure must be one of 'information', 'conditional_likelihood'"):
        cb.TreeAugmentedNB(structure=given).fit(X, y)


@SCORES
def test_a_tree_for_each_class_is_not_searched_for(score):
    X, y = parity(60)
    with pytest.raises(ValueError, match="per_class=True needs structure='information'"):
        cb.TreeAugmentedNB(structure=score, per_class=True).fit(X, y)


@pytest.mark.parametrize("seed", range(8))
def test_flags_in_all_combinations_are_told_apart_by_how_often_they_occur(seed):
    """Their distinct rows are the same in any order of the columns: only weights deal them to folds in the same way."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 200)
    flags = rng.random((200, 3)) < (0.3 + 0.15 * y)[:, None]
    X, order = np.column_stack([flags, flags[:, 2]]).astype(float), rng.permutation(4)
    for structure in ("conditional_likelihood", "soft_error"):
        model = cb.TreeAugmentedNB(structure=structure, rule="ml")
        expected = model.fit(X, y).predict_proba(X)
        np.testing.assert_allclose(model.fit(X[:, order], y).predict_proba(X[:, order]), expected, atol=1e-9)
