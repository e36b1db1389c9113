"""Training on further rows: the closed form of all rows so far, or one step of the rule."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.rules import GDT
from tests.contract.tables import table


def assert_same_trees(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


@pytest.mark.parametrize("rule", ["em", GDT(lam=1.0)])
@pytest.mark.parametrize("estimator", [cb.GaussianNB, cb.CategoricalNB, cb.LinearDiscriminantAnalysis])
def test_partial_fit_of_rules_that_contain_maximum_likelihood(estimator, rule):
    X, y = table()
    model = estimator(rule=rule)
    for low, high in pairwise([0, 150, 170, 400]):
        model.partial_fit(X[low:high], y[low:high], classes=["x", "y", "z"])
    assert_same_trees(model.parameters_, estimator(rule="ml").fit(X, y).parameters_, 1e-9)
    assert model.statistics_["class_prior"]["count"].sum() == pytest.approx(400)


def test_partial_fit_with_rows_without_labels():
    X, y = table()
    labels = y.astype(object)
    labels[100:] = None
    model = cb.GaussianNB(rule="em").partial_fit(X[:100], labels[:100], classes=["x", "y", "z"])
    for low in (100, 200, 300):
        model.partial_fit(X[low : low + 100], labels[low : low + 100])
    assert model.statistics_["class_prior"]["count"].sum() == pytest.approx(400)
    assert model.data_statistics_["class_prior"]["count"].sum() == 100


def test_partial_fit_waits_for_enough_rows():
    X, y = table()
    model = cb.QuadraticDiscriminantAnalysis(rule="ml", prior=None)
    model.partial_fit(X[:6], y[:6], classes=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"not enough rows have been seen yet: .*singular"):
        model.predict(X)
    with pytest.raises(ValueError, match="not enough rows"):
        model.sample(2)
    model.partial_fit(X[6:], y[6:])
    assert_allclose(model.means_, cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).means_, rtol=1e-10)


def test_partial_fit_after_the_rule_was_changed_starts_from_the_data():
    X, y = table()
    for before, after in (("rc", "gd"), ("gd", "rc"), ("ml", "tm")):
        model = cb.GaussianNB(rule=before).partial_fit(X[:200], y[:200], classes=["x", "y", "z"])
        model.set_params(rule=after).partial_fit(X[200:], y[200:])
        assert np.isfinite(model.predict_log_proba(X)).all()


def test_levels_of_earlier_rows_keep_their_counts():
    model = cb.CategoricalNB(rule="ml").partial_fit([[0], [2]], [0, 1], classes=[0, 1])
    model.partial_fit([[-1], [2]], [0, 1])
    whole = cb.CategoricalNB(rule="ml").fit([[0], [2], [-1], [2]], [0, 1, 0, 1])
    assert_array_equal(model.category_count_[0], whole.category_count_[0])
    with pytest.raises(ValueError, match="column 'x0' had numbers as levels"):
        model.partial_fit([["a"], ["b"]], [0, 1])


def test_partial_fit_takes_one_step_of_an_iterative_rule():
    X, y = table()
    for rule in ("rc", "tm", "gdt", "gd"):
        model = cb.GaussianNB(rule=rule)
        for low in range(0, 400, 100):
            model.partial_fit(X[low : low + 100], y[low : low + 100], classes=["x", "y", "z"])
        assert model.data_statistics_["class_prior"]["count"].sum() == 400
        assert model.n_iter_ == 4
        plain = cb.GaussianNB(rule="ml").fit(X, y)
        assert model.score(X, y) > plain.score(X, y) - 0.05


def test_partial_fit_makes_room_for_new_levels():
    X = np.array([["a"], ["b"], ["a"], ["c"], ["0"]], dtype=object)
    y = [0, 1, 0, 1, 1]
    model = cb.CategoricalNB(rule="ml").partial_fit(X[:3], y[:3], classes=[0, 1]).partial_fit(X[3:], y[3:])
    assert model.categories_[0].tolist() == ["0", "a", "b", "c"]
    assert_allclose(model.category_count_[0], [[0, 2, 0, 0], [1, 0, 1, 1]])


@pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")  # of the first few rows alone
@pytest.mark.parametrize("rule", ["rc", "gdt", "em"])
def test_a_state_that_is_singular_without_its_prior_is_not_continued(rule):
    """The first 13 rows need a prior; with one more row no class does, and the state of 13 rows has no parameters."""
    X, y = table()
    model = cb.QuadraticDiscriminantAnalysis(rule=rule)
    model.partial_fit(X[:13], y[:13], classes=["x", "y", "z"]).partial_fit(X[13:14], y[13:14])
    model.partial_fit(X[14:], y[14:])
    assert model.data_statistics_["class_prior"]["count"].sum() == 400
    assert np.isfinite(model.predict_log_proba(X)).all()


@pytest.mark.parametrize("estimator", [cb.GaussianNB, cb.QuadraticDiscriminantAnalysis])
def test_single_rows_give_no_warning_while_classes_are_still_to_come(estimator):
    X, y = table()
    model = estimator(rule="ml")
    for row in range(int(np.argmax(y != y[0]))):
        model.partial_fit(X[row : row + 1], y[row : row + 1], classes=["x", "y", "z"])
    assert_array_equal(model.predict(X[:5]), y[0])
