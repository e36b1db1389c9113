"""The posteriors of held-out rows that the training of an ensemble makes are the record `held_out_`: no fold is fitted again."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.model_selection import KFold

import calibayes as cb
from calibayes.analysis import held_out
from calibayes.ensemble.training import out_of_fold_record
from calibayes.kernels.posterior import held_out_scores
from calibayes.model.checked_rows import Rows
from tests.estimators.ensemble.tables import frame

MODELS = [("lda", cb.LinearDiscriminantAnalysis(rule="ml")), ("nb", cb.GaussianNB(rule="ml"))]


def numbers(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5]])[y], y


def with_trees():
    X, y = make_classification(500, 5, n_informative=4, n_redundant=0, class_sep=0.8, random_state=0)
    return cb.BayesClassifier(families=["tied", "trees"]).fit(X, y)


@pytest.fixture(scope="module")
def trees():
    return with_trees()


def scores(model):
    record = model.held_out_
    return held_out_scores(record.log_posterior, record.codes, record.weight)


def test_the_scores_of_the_record_are_those_of_the_training(fitted):
    model = copy.copy(fitted)
    vars(model).update(vars(fitted))  # with what copies leave out
    assert_allclose(scores(model), [model.out_of_fold_log_loss_, model.out_of_fold_error_], rtol=1e-12)
    assert_allclose(np.exp(model.held_out_.log_posterior).sum(axis=1), 1.0)


def test_with_trees_too(trees):
    assert hasattr(trees, "trees_")
    assert_allclose(scores(trees), [trees.out_of_fold_log_loss_, trees.out_of_fold_error_], rtol=1e-12)
    assert_array_equal(np.sort(trees.held_out_.rows), np.arange(500))


def test_rows_and_classes_are_those_that_were_given():
    X, y = frame()
    record = cb.BayesClassifier().fit(X, y).held_out_
    assert_array_equal(np.sort(record.rows), np.arange(len(y)))
    assert_array_equal(np.array(["x", "y", "z"])[record.codes], y[record.rows])


def test_posteriors_are_those_of_folds_without_the_row():
    """A member that learns the training rows by heart knows nothing about rows that were held out."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = cb.PosteriorMixture(models=[("trees", cb.CalibratedTrees())]).fit(X, y)
    assert scores(model)[1] > 0.35


def test_nothing_is_fitted_again(monkeypatch):
    X, y = numbers()
    model = cb.PosteriorMixture(models=MODELS).fit(X, y)
    monkeypatch.setattr(held_out, "cross_fitted", None)
    assert model.predict_set(X).shape == (150, 3)
    assert model.held_out_.how == "the inner folds of the training, 150 of 150 rows"


def test_densities_need_models_without_the_rows():
    X, y = numbers()
    model = cb.BayesClassifier(families=["tied", "full"]).fit(X, y)
    assert held_out.held_out_of(model).log_density is None
    assert held_out.held_out_of(model, density=True).log_density.shape == (150,)
    assert model.held_out_.log_density is not None


def test_files_and_copies_hold_the_record_only_once_it_was_used():
    X, y = numbers()
    model = cb.PosteriorMixture(models=MODELS).fit(X, y)
    before = len(pickle.dumps(model))
    with pytest.raises(ValueError, match="predict_set needs rows"):
        pickle.loads(pickle.dumps(model)).predict_set(X)
    sets = model.predict_set(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_set(X), sets)
    assert len(pickle.dumps(model)) > before + 150 * 3 * 8


def test_a_new_fit_replaces_the_record():
    model = cb.PosteriorMixture(models=MODELS).fit(*numbers())
    assert len(model.held_out_.codes) == 150
    assert len(model.fit(*numbers(120)).held_out_.codes) == 120


def test_other_class_frequencies_have_no_record():
    model = cb.PosteriorMixture(models=MODELS).fit(*numbers()).with_priors([0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match="refers to no training rows"):
        model.predict_set(numbers()[0])


def test_inner_ensembles_keep_no_record():
    X, y = numbers()
    inner = cb.PosteriorMixture(models=MODELS[:1])
    model = cb.PosteriorMixture(models=[("inner", inner), *MODELS[1:]]).fit(X, y)
    assert all("_out_of_fold" not in vars(member) for member in model.models_.values())


def test_weights_are_sample_weights_without_class_weights():
    X, y = numbers()
    weight = np.where(np.arange(150) % 2, 1.0, 2.0)
    model = cb.PosteriorMixture(models=MODELS, class_weight={0: 3.0, 1: 1.0, 2: 5.0}).fit(X, y, weight)
    record = model.held_out_
    found = np.bincount(record.rows, record.weight, minlength=150)
    assert_allclose(found, weight)


def test_rows_that_a_splitter_leaves_out():
    X, y = numbers()
    splits = list(KFold(5).split(X))[:3]
    record = cb.PosteriorMixture(models=MODELS, cv=splits).fit(X, y).held_out_
    assert_array_equal(record.rows, np.arange(90))
    assert_allclose(np.bincount(record.codes, record.weight), np.bincount(y))


def test_many_rows_are_drawn_in_proportion_with_some_of_each_class():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [4000, 900, 60])
    log_posterior = np.log(rng.dirichlet(np.ones(3), len(codes)))
    log_posterior[::7] = np.nan
    rows = Rows(None, codes, np.full(len(codes), 2.0), np.arange(len(codes)))
    record = out_of_fold_record(log_posterior, rows, rows, most=1000)
    assert_array_equal(np.bincount(record.codes), [807, 182, 50])
    assert_allclose(np.bincount(record.codes, record.weight), 2.0 * np.bincount(codes))
    assert not np.isnan(record.log_posterior).any()
    assert_array_equal(record.codes, codes[record.rows])
    record.verify()
