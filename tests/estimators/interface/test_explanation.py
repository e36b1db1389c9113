"""Explanations of every model, against the definition of Shapley values."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.datasets import load_penguins
from calibayes.encoders import Dense
from calibayes.estimators.joint_kernel import Smoothing
from calibayes.kernels.posterior import log_normalize
from calibayes.tables.read import read_frame
from tests.contract.tables import table
from tests.contract.test_scikit_learn import ADDITIVE

EVERY = pytest.mark.parametrize("estimator", ADDITIVE, ids=lambda estimator: type(estimator).__name__)
D = 5
NAMES = [f"x{j}" for j in range(D)]


def rows():
    X, y = table(200)
    return pd.DataFrame(X, columns=NAMES), y


def blanked(X, present, model):
    """The rows with the other columns missing; zero for models of counts, where a word that never occurs has no term."""
    missing = np.nan if get_tags(model).input_tags.allow_nan else 0.0
    return X.where(np.broadcast_to(present, X.shape), missing)


def gaussian_scores(model, X, present):
    """log p(known columns, class) of a Gaussian of encoded columns, by scipy."""
    ((name, parameters),) = [pair for pair in model.parameters_.items() if pair[0] != "class_prior"]
    encoder = model.fitted_.binding.encoders[name]
    known = np.flatnonzero(present[list(encoder.sources)])
    x, prior = encoder.encode(read_frame(X))[:, known], model.parameters_["class_prior"]["log_probability"]
    covariances = np.broadcast_to(parameters["covariance"], (len(prior), *parameters["covariance"].shape[1:]))
    scores = np.tile(prior, (len(X), 1))
    for c, covariance in enumerate(covariances if len(known) else ()):
        density = multivariate_normal(parameters["mean"][c, known], covariance[np.ix_(known, known)])
        scores[:, c] += density.logpdf(x)
    return scores


def scores(model, X, present):
    """log p(class | known columns), up to a term of the row, by another way than that of `explain`."""
    if isinstance(model, cb.JointKernelClassifier):
        density = model.density_
        shown = present[list(density.encoder.sources)].astype(float)
        centers = replace(density.centers, rows=density.centers.rows * shown)
        density = replace(density, scale=density.scale * shown, centers=centers)
        return density.log_posterior(read_frame(X), Smoothing(model.bandwidth_step_, model.prior_rows_))
    if isinstance(model, cb.BayesClassifier):
        members = [np.exp(log_normalize(scores(m, X, present))[0]) for m in model.models_.values()]
        weights = [model.weights_[name] for name in model.models_]
        average = sum(weight * member for weight, member in zip(weights, members, strict=True))
        return np.log(average + model.weights_["class frequencies"] * model.class_prior_)
    if any(isinstance(encoder, Dense) for encoder in model.fitted_.binding.encoders.values()):
        return gaussian_scores(model, X, present)
    return model.predict_joint_log_proba(read_frame(blanked(X, present, model)))


def definition(model, X, explained):
    """Contributions by the definition: class prior, and mean changes over all orders of the columns."""
    chosen, other = (np.searchsorted(model.classes_, c) for c in (explained.chosen, explained.other))
    values = {}
    for code in range(2**D):
        present = (code >> np.arange(D)) % 2 == 1
        found, i = scores(model, X, present), np.arange(len(X))
        values[tuple(present)] = found[i, chosen] - found[i, other]
    total, orders = np.zeros((len(X), D)), list(permutations(range(D)))
    for order in orders:
        present = [False] * D
        for j in order:
            before = values[tuple(present)]
            present[j] = True
            total[:, j] += values[tuple(present)] - before
    return np.column_stack([values[(False,) * D], total / len(orders)])


@EVERY
def test_contributions_of_generative_models_are_shapley_values(estimator):
    X, y = rows()
    model = clone(estimator).set_params(stop=None).fit(X, y)
    explained = model.explain(X[:40])
    assert explained.names == ("class prior", *NAMES)
    assert explained.permutations == 0
    assert_allclose(explained.contributions, definition(model, X[:40], explained), atol=1e-8)


def test_contributions_of_a_kernel_classifier_are_shapley_values():
    X, y = rows()
    model = cb.JointKernelClassifier().fit(X, y)
    explained = model.explain(X[:40])
    assert_allclose(explained.contributions, definition(model, X[:40], explained), atol=1e-8)


@pytest.mark.parametrize("families", [["near", "tied", "full", "kernel", "tree"], ["tree"], ["near"]])
def test_contributions_of_the_default_are_shapley_values_of_the_average(families):
    X, y = rows()
    model = cb.BayesClassifier(families=families).fit(X, y)
    explained = model.explain(X[:40])
    assert_allclose(explained.contributions, definition(model, X[:40], explained), atol=1e-8)


def wide(n=150, d=12):
    """Dependent columns, more than are explained exactly."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d) * y[:, None]
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(d)]), np.array(["no", "yes"])[y]


MANY = pytest.mark.parametrize(
    "estimator",
    [
        cb.BayesClassifier(),
        cb.JointKernelClassifier(),
        cb.QuadraticDiscriminantAnalysis(stop=None),
        cb.TreeAugmentedNB(),
        cb.KDependenceBayes(),
        cb.AODE(stop=None),
    ],
    ids=lambda estimator: type(estimator).__name__,
)


@MANY
def test_contributions_from_sampled_orders(estimator):
    X, y = wide()
    model = clone(estimator).fit(X, y)
    explained, again = model.explain(X[:9]), model.explain(X[:9])
    assert explained.permutations == 32
    assert_array_equal(explained.contributions, again.contributions)
    log_posterior = np.sort(model.predict_log_proba(X[:9]), axis=1)
    assert_allclose(explained.log_odds, log_posterior[:, -1] - log_posterior[:, -2], atol=1e-9)
    assert_array_equal(explained.standard_error[:, 0], 0.0)
    more = model.explain(X[:9], permutations=200, random_state=1)
    allowed = 6 * np.hypot(explained.standard_error, more.standard_error)
    assert (np.abs(more.contributions - explained.contributions) <= allowed).all()
    assert more.standard_error.mean() < 0.6 * explained.standard_error.mean()
    assert "c3 (standard error)" in explained.frame().columns
    assert "32 permutations" in repr(explained)


@MANY
def test_contributions_do_not_depend_on_the_order_of_the_columns(estimator):
    X, y = wide()
    order = np.random.default_rng(1).permutation(X.shape[1])
    here = clone(estimator).fit(X, y).explain(X[:20])
    there = clone(estimator).fit(X.iloc[:, order], y).explain(X.iloc[:20, order])
    assert there.names[1:] == tuple(X.columns[order])
    assert_allclose(there.contributions[:, 1:], here.contributions[:, 1:][:, order], atol=1e-6)
    assert_allclose(there.standard_error[:, 1:], here.standard_error[:, 1:][:, order], atol=1e-6)


def test_a_short_flipper_is_evidence_against_gentoo():
    X, y = load_penguins().data, load_penguins().target
    model = cb.BayesClassifier().fit(X, y)
    short = X[X["flipper_length_mm"] < 190]
    assert len(short) > 50
    contributions = model.explain(short, against="Gentoo").frame()["flipper_length_mm"]
    assert (contributions > 0).all()


def agreement(model, X, least=0.5):
    """Share of the cells whose contribution has the sign of the change of log odds when the cell becomes known last."""
    explained, marginals, i = model.explain(X), model.marginals(X), np.arange(len(X))
    chosen, other = (np.searchsorted(model.classes_, c) for c in (explained.chosen, explained.other))
    signs = []
    for j in range(X.shape[1]):
        found = marginals.scores(np.arange(X.shape[1]) != j)
        change = explained.log_odds - (found[i, chosen] - found[i, other])
        signs.append((change * explained.contributions[:, 1 + j] > 0)[np.abs(change) > least])
    return np.mean(np.concatenate(signs))


@pytest.mark.parametrize("name", ["diabetes", "australian", "vote"])
def test_signs_agree_with_leaving_out_a_cell(name, data_file):
    data = pd.read_csv(data_file(name))
    X, y = data.drop(columns="target"), data["target"].to_numpy()
    assert agreement(cb.BayesClassifier().fit(X, y), X[:150]) > 0.95


def test_signs_agree_with_leaving_out_a_cell_of_penguins():
    X, y = load_penguins().data, load_penguins().target
    assert agreement(cb.BayesClassifier().fit(X, y), X[:200]) > 0.9


def test_progress_is_reported(capsys, monkeypatch):
    X, y = rows()
    monkeypatch.setattr("calibayes.analysis.explanation.REPORT_SECONDS", 0.0)
    cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).set_params(verbose=1).explain(X)
    assert "sets of columns 32/32" in capsys.readouterr().err
