"""Further rows, rows to forget and merged models of given trees."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import calibayes as cb
from tests.estimators.trees.data import interaction, rising
from tests.verification import verify_all

X, Y = interaction(1200)
FIRST, NEXT, TEST = slice(0, 300), slice(300, 600), slice(600, 1200)


def fitted(**options):
    return cb.CalibratedTrees(max_trees=30, **options).fit(X[FIRST], Y[FIRST])


def loss(model):
    return log_loss(Y[TEST], model.predict_proba(X[TEST]))


def counts(model):
    return [model.data_statistics_[name]["count"] for name in ("class_prior", "trees")]


def test_further_rows_are_counted_and_the_trees_stay():
    model = fitted()
    forest, before = model.leaves_.forest, counts(model)
    assert model.partial_fit(X[NEXT], Y[NEXT]) is model
    assert model.leaves_.forest is forest
    added = counts(model)[0] - before[0]
    assert added.tolist() == [np.sum(Y[NEXT] == label) for label in model.classes_]
    assert (counts(model)[1] >= before[1]).all()
    assert counts(model)[1].sum() == pytest.approx(600 * forest.count)
    assert model.training_table_.rows == 600
    assert model.n_iter_ == 2
    verify_all(model)


def test_further_rows_improve_the_model_and_few_rows_do_no_harm():
    model = fitted()
    before = loss(model)
    few = copy.deepcopy(model).partial_fit(X[300:310], Y[300:310])
    assert loss(few) < 1.02 * before
    assert loss(model.partial_fit(X[NEXT], Y[NEXT])) < 0.97 * before


def test_many_trees_move_together_and_not_each_by_a_full_step():
    """On digits, one tenth of the rows at a time: a step that every tree took alone would diverge."""
    rows, labels = load_digits(return_X_y=True)
    model = cb.CalibratedTrees(max_trees=60).fit(rows[:600], labels[:600])
    before = log_loss(labels[1200:], model.predict_proba(rows[1200:]))
    for begin in range(600, 1200, 120):
        model.partial_fit(rows[begin : begin + 120], labels[begin : begin + 120])
    assert log_loss(labels[1200:], model.predict_proba(rows[1200:])) < before


def test_the_first_call_is_a_fit_and_needs_every_class():
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        cb.CalibratedTrees().partial_fit(X[FIRST], Y[FIRST])
    with pytest.raises(ValueError, match=r"no rows .* in class 'yes'"):
        cb.CalibratedTrees().partial_fit(X[Y == "no"], Y[Y == "no"], classes=["no", "yes"])
    model = cb.CalibratedTrees(max_trees=30).partial_fit(X[FIRST], Y[FIRST], classes=["no", "yes"])
    assert_allclose(model.predict_proba(X), fitted().predict_proba(X))
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X[NEXT], Y[NEXT], classes=["no", "perhaps"])


def test_forgetting_further_rows_returns_to_the_counts_before():
    model = fitted()
    before = counts(model)
    further = copy.deepcopy(model).partial_fit(X[NEXT], Y[NEXT])
    back = further.forget(X[NEXT], Y[NEXT])
    for found, expected in zip(counts(back), before, strict=True):
        assert_allclose(found, expected, atol=1e-9)
    assert back.training_table_.rows == 300
    moved, left = (
        np.abs(other.predict_log_proba(X) - model.predict_log_proba(X)).mean() for other in (further, back)
    )
    assert left < 0.6 * moved
    verify_all(back)


@pytest.mark.parametrize("rows", [1, 10, 100])
def test_forgetting_rows_of_the_fit_does_not_turn_against_them(rows):
    model = fitted()
    left = model.forget(X[:rows], Y[:rows])
    assert loss(left) < 1.1 * loss(model)
    own = np.searchsorted(model.classes_, Y[:rows])
    before, after = (m.predict_log_proba(X[:rows])[np.arange(rows), own].mean() for m in (model, left))
    assert after <= before + 1e-12


def test_what_cannot_be_forgotten_says_so():
    model = fitted()
    with pytest.raises(ValueError, match="not part of the training"):
        model.forget(X, np.where(Y == "no", "yes", "no"))
    nothing = model.forget(X[FIRST], Y[FIRST])
    with pytest.raises(ValueError, match=r"no rows .* in class 'no', 'yes'"):
        nothing.predict(X)
    verify_all(nothing)
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        fitted(class_weight="balanced").forget(X[:3], Y[:3])


def test_row_weights_are_added_and_subtracted():
    model, weight = fitted(), np.full(300, 2.5)
    before = counts(model)
    further = copy.deepcopy(model).partial_fit(X[NEXT], Y[NEXT], sample_weight=weight)
    assert counts(further)[0].sum() == pytest.approx(300 + 750)
    back = further.forget(X[NEXT], Y[NEXT], weight)
    assert_allclose(counts(back)[1], before[1], atol=1e-9)


def test_models_with_the_same_trees_can_be_merged():
    """Also with text columns, whose levels are pooled."""
    model = fitted()
    one, two = (
        copy.deepcopy(model).partial_fit(X[rows], Y[rows]) for rows in (slice(300, 450), slice(450, 600))
    )
    both = one.merge(two)
    for found, first, second in zip(counts(both), counts(one), counts(two), strict=True):
        assert_allclose(found, first + second)
    assert both.training_table_.rows == 900
    assert loss(both) < max(loss(one), loss(two)) + 1e-9
    same = model.merge(copy.deepcopy(model))
    assert_allclose(same.predict_log_proba(X), model.predict_log_proba(X), atol=1e-9)
    verify_all(both)


def test_models_that_cannot_be_merged_say_so():
    model = fitted()
    others = [
        (cb.CalibratedTrees(max_trees=30).fit(X[NEXT], Y[NEXT]), "different trees"),
        (cb.CalibratedTrees(max_trees=5).fit(X[FIRST], np.char.upper(Y[FIRST])), "different classes"),
        (cb.CalibratedTrees(max_trees=5).fit(X[FIRST][["a", "b"]], Y[FIRST]), "different columns"),
        (model.with_priors([0.5, 0.5]), "priors of this model were replaced"),
        (cb.GaussianNB(), "cannot be merged with a GaussianNB"),
    ]
    for other, message in others:
        with pytest.raises(ValueError, match=message):
            model.merge(other)


def test_monotone_leaves_do_not_move():
    table, labels = rising(300)
    model = cb.CalibratedTrees(max_trees=10, monotone={"up": 1}).fit(table, labels)
    for call in (model.partial_fit, model.forget):
        with pytest.raises(ValueError, match="would no longer be monotone"):
            call(table[:9], labels[:9])
    assert_allclose(model.merge(model).predict_proba(table), model.predict_proba(table), atol=1e-9)


def test_a_rule_without_counts_can_be_updated_too():
    model = fitted(rule="gd", max_iter=2, stop=None)
    assert loss(copy.deepcopy(model).partial_fit(X[NEXT], Y[NEXT])) < loss(model)
    assert_allclose(model.merge(model).predict_proba(X), model.predict_proba(X), atol=1e-9)
    verify_all(model.forget(X[:5], Y[:5]))
