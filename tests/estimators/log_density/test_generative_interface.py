"""Explanations, class densities and prediction sets of the classifiers on log densities."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris

import calibayes as cb
from calibayes.analysis.marginals import ModelNeedsAllColumns
from calibayes.dependence import TopFraction
from tests.estimators.log_density.test_incomplete_columns import incomplete
from tests.estimators.log_density.test_sparse_log_bivariate import crossed

SLB = cb.SparseLogBivariateClassifier(C=0.1, selection=TopFraction(0.5))
LU = cb.LogUnivariateClassifier(C=0.1)


def with_three_classes():
    table, y = incomplete(150)
    return table, np.where(table["size"].fillna(0.0) > 0.8, 2, y)


def blanked(table, present):
    return table.where(np.broadcast_to(present, table.shape))


def log_odds(model, table, chosen, other):
    rows, log_posterior = np.arange(len(table)), model.predict_log_proba(table)
    codes = np.searchsorted(model.classes_, chosen), np.searchsorted(model.classes_, other)
    return log_posterior[rows, codes[0]] - log_posterior[rows, codes[1]]


@pytest.mark.parametrize("estimator", [SLB, LU, clone(SLB).set_params(original_columns=False)])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("rows", [incomplete, with_three_classes])
def test_contributions_are_shapley_values(estimator, penalty, rows):
    """By definition: mean changes of the log odds over all orders in which the columns become known."""
    table, y = rows()
    model = clone(estimator).set_params(penalty=penalty).fit(table, y)
    explained = model.explain(table)
    values = {}
    for code in range(2**4):
        present = (code >> np.arange(4)) % 2 == 1
        values[tuple(present)] = log_odds(model, blanked(table, present), explained.chosen, explained.other)
    total, orders = np.zeros((len(table), 4)), list(permutations(range(4)))
    for order in orders:
        present = [False] * 4
        for j in order:
            before = values[tuple(present)]
            present[j] = True
            total[:, j] += values[tuple(present)] - before
    expected = np.column_stack([values[(False,) * 4], total / len(orders)])
    assert_allclose(explained.contributions, expected, atol=1e-9)


def test_many_columns_are_explained_exactly():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 12)), np.arange(400) % 2
    X[:, 1] += X[:, 0] * (2 * y - 1)
    model = clone(SLB).fit(X, y)
    explained = model.explain(X)
    assert explained.permutations == 0
    assert_allclose(explained.log_odds, np.abs(model.decision_function(X)), atol=1e-9)
    assert list(explained.overall())[:2] in (["x0", "x1"], ["x1", "x0"])


def test_marginals_are_predictions_without_the_other_columns():
    table, y = incomplete()
    model = clone(SLB).fit(table, y)
    marginals = model.marginals(table)
    order = np.array([2, 0, 3, 1])
    for count, scores in enumerate(marginals.along(order), 1):
        present = np.isin(np.arange(4), order[:count])
        assert_allclose(
            scores[:, 1] - scores[:, 0], model.decision_function(blanked(table, present)), atol=1e-9
        )


def test_without_probabilities_there_are_no_explanations_and_sets():
    X, y = crossed(60)
    model = clone(SLB).set_params(loss="hinge").fit(X, y)
    with pytest.raises(ModelNeedsAllColumns, match="hinge"):
        model.explain(X)
    assert not hasattr(model, "predict_joint_log_proba")
    with pytest.raises(AttributeError, match="predict_log_proba"):
        model.predict_set(X)


def test_decisions_abstain_and_follow_costs():
    table, y = with_three_classes()
    model = clone(SLB).fit(table, y)
    posterior = model.predict_proba(table)
    found = model.decide(table, least_posterior=0.8)
    assert (found.data == model.predict(table)).all()
    assert_allclose(found.mask, posterior.max(axis=1) < 0.8)
    costs = np.array([[0, 1, 9], [1, 0, 1], [1, 1, 0]])
    assert (model.decide(table, costs=costs).data == np.argmin(posterior @ costs, axis=1)).all()
    threshold = np.median(model.score_samples(table))
    assert_allclose(model.decide(table, least_density=threshold).mask, model.score_samples(table) < threshold)


def test_densities_of_two_columns_integrate_to_one():
    X, y = crossed(200)
    model = (
        clone(SLB).set_params(selection=TopFraction(1.0), normal_scores=False, floor=1e-300).fit(X[:, :2], y)
    )
    assert model.densities_.forests().pairs.T.tolist() == [[0, 1], [0, 1]]
    side = np.linspace(-8, 8, 161)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    cell = np.prod((side[1] - side[0]) / model.densities_.scale)
    assert_allclose(np.exp(model.score_samples(grid)).sum() * cell, 1.0, atol=1e-6)


def test_densities_of_classes_are_those_of_spanning_forests():
    X, y = load_iris(return_X_y=True)
    model = clone(SLB).set_params(selection=TopFraction(1.0)).fit(X, y)
    densities = model.densities_
    features = pd.DataFrame(
        model.densities_.evaluate(X, None, lambda *_: None), columns=model.feature_names_[4:]
    )
    forests = densities.forests()
    expected = np.stack([features.iloc[:, 4 * c : 4 * c + 4].sum(axis=1) for c in range(3)], axis=1)
    for c, i, j in zip(forests.pair_codes, *forests.pairs, strict=True):
        expected[:, c] += (
            features[f"log p(x{i}, x{j} | {c})"]
            - features[f"log p(x{i} | {c})"]
            - features[f"log p(x{j} | {c})"]
        )
    assert_allclose(model.score_samples(X), logsumexp(expected + np.log(1 / 3), axis=1))
    for c in range(3):
        edges, tree_of = set(), list(range(4))  # Kruskal's algorithm
        for q in np.argsort(-densities.information):
            i, j = densities.pairs[:, q]
            if densities.pair_codes[q] == c and densities.information[q] > 0 and tree_of[i] != tree_of[j]:
                edges.add((i, j))
                tree_of = [tree_of[i] if tree == tree_of[j] else tree for tree in tree_of]
        assert edges == set(map(tuple, forests.pairs[:, forests.pair_codes == c].T))


@pytest.mark.parametrize("estimator", [SLB, LU])
def test_joint_probabilities_are_those_of_the_class_and_of_the_row(estimator):
    table, y = with_three_classes()
    model = clone(estimator).fit(table, y)
    joint = model.predict_joint_log_proba(table)
    assert_allclose(logsumexp(joint, axis=1), model.score_samples(table))
    assert_allclose(softmax(joint, axis=1), model.predict_proba(table))
    inside = model.score_samples(table[table.notna().all(axis=1)]).mean()
    far = pd.DataFrame(
        {"size": [9.0, -9.0], "other": [0.0, 0.0], "color": ["red", "red"], "shape": ["flat", "flat"]}
    )
    assert (model.score_samples(far) < inside - 1).all()


@pytest.mark.parametrize("estimator", [SLB, LU])
def test_prediction_sets_cover_new_rows(estimator):
    table, y = incomplete(900)
    model = clone(estimator).fit(table[:300], y[:300]).with_held_out(table[300:600], y[300:600])
    sets = model.predict_set(table[600:], coverage=0.9)
    assert 0.85 < sets[np.arange(300), y[600:]].mean() < 0.96


def test_saved_models_have_the_same_densities_and_explanations(tmp_path):
    table, y = incomplete()
    model = clone(SLB).fit(table, y)
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    assert_allclose(loaded.score_samples(table), model.score_samples(table), rtol=0)
    assert_allclose(loaded.explain(table).contributions, model.explain(table).contributions, rtol=0)
