"""The record of held-out rows: no row is scored by a model that saw it, and rows are remembered by this process alone."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

import calibayes as cb
from calibayes.analysis import held_out
from calibayes.model import training_rows
from calibayes.model.training_rows import HELD_OUT, TRAINING

MODELS = {
    "calibrated": cb.NaiveBayes(),
    "closed form": cb.NaiveBayes(rule="ml"),
    "mixture": cb.MixtureDiscriminantAnalysis(n_components=2),
    "kernel": cb.JointKernelClassifier(),
    "trees": cb.CalibratedTrees(),
    "ensemble": cb.BayesClassifier(),
}
every_model = pytest.mark.parametrize("name", MODELS)


def table(n=90, seed=0):
    rng, y = np.random.default_rng(seed), np.arange(n) % 3
    X = pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.normal(size=n), "c": np.array([*"xyz"])[y]})
    X.loc[::7, "c"] = "x"
    return X, np.array(["one", "two", "three"])[y]


def fitted(name):
    X, y = table()
    return copy.deepcopy(MODELS[name]).fit(X[["a", "b"]] if name == "mixture" else X, y)


@every_model
def test_every_row_is_in_the_record(name):
    y = table()[1]
    model = fitted(name)
    record = model.held_out_
    record.verify()
    assert np.array_equal(np.sort(record.rows), np.arange(len(y)))
    assert np.array_equal(model.classes_[record.codes], y[record.rows])
    assert model.held_out_ is record
    assert (record.log_density is None) == (not hasattr(model, "score_samples")) or name == "ensemble"


def test_no_row_is_scored_by_a_model_that_saw_it():
    """Labels without any relation to the columns: a model that has seen a row with a value of its own knows its label."""
    rng, n = np.random.default_rng(0), 200
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    for model in (
        cb.JointKernelClassifier(),
        cb.CalibratedTrees(),
        cb.QuadraticDiscriminantAnalysis(),
    ):
        record = model.fit(X, y).held_out_
        wrong = np.mean(record.log_posterior.argmax(axis=1) != record.codes)
        assert 0.35 < wrong < 0.65


@every_model
def test_copies_pickles_and_files_hold_no_training_rows(name, tmp_path):
    model = fitted(name)
    assert TRAINING in vars(model)
    calibayes_file = tmp_path / "model.safetensors"
    cb.save(model, calibayes_file)
    for made in (
        pickle.loads(pickle.dumps(model)),
        copy.copy(model),
        copy.deepcopy(model),
        cb.load(calibayes_file),
    ):
        assert TRAINING not in vars(made)
        if HELD_OUT not in vars(made):
            with pytest.raises(ValueError, match="refers to no training rows"):
                _ = made.held_out_


def test_a_saved_record_is_loaded(tmp_path):
    model = fitted("calibrated")
    record = model.held_out_
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors").held_out_
    assert np.array_equal(loaded.log_posterior, record.log_posterior)
    assert loaded.how == record.how == "20 folds"


@pytest.mark.parametrize(("n", "how"), [(999, "20 folds"), (1000, "5 folds")])
def test_few_rows_have_more_folds(n, how):
    X, y = table(n)
    assert cb.GaussianNB(rule="rc").fit(X[["a", "b"]], y).held_out_.how == how


@pytest.mark.parametrize("given", [lambda splits, X: splits, lambda splits, X: splits.split(X)])
def test_folds_are_fits_without_their_rows(given):
    X, y = table()
    splits = KFold(3, shuffle=True, random_state=1)
    record = fitted("calibrated").with_held_out(X, y, cv=given(splits, X)).held_out_
    for train, test in splits.split(X):
        expected = cb.NaiveBayes().fit(X.iloc[train], y[train]).predict_log_proba(X.iloc[test])
        place = np.argsort(record.rows)[test]
        np.testing.assert_allclose(record.log_posterior[place], expected, rtol=0, atol=1e-12)


def test_rows_that_were_not_used_are_predicted_by_the_model_itself():
    X, y = table(seed=5)
    model = fitted("calibrated")
    record = model.with_held_out(X, y, np.arange(len(y))).held_out_
    assert np.array_equal(record.rows, np.arange(1, len(y)))  # the first row has weight 0
    assert np.array_equal(record.log_posterior, model.predict_log_proba(X)[1:])
    assert np.array_equal(record.log_density, model.score_samples(X)[1:])
    assert TRAINING in vars(model)


def test_another_model_has_no_record_of_the_first():
    X, y = table()
    numbers = X[["a", "b"]]
    model = cb.GaussianNB(rule="ml").fit(numbers, y)
    assert model.held_out_ is not None
    changed = [model.forget(numbers[:5], y[:5]), model.merge(cb.GaussianNB(rule="ml").fit(numbers, y))]
    assert all(HELD_OUT not in vars(other) and TRAINING not in vars(other) for other in changed)
    assert not {TRAINING, HELD_OUT} & set(vars(model.partial_fit(numbers, y)))
    assert HELD_OUT not in vars(model.fit(numbers, y))


def test_members_of_an_ensemble_remember_nothing():
    model = fitted("ensemble")
    assert not [name for name, member in model.models_.items() if TRAINING in vars(member)]


def test_many_rows_are_held_out_in_one_part(monkeypatch):
    monkeypatch.setattr(held_out, "MANY_ROWS", 60)
    monkeypatch.setattr(training_rows, "HELD_OUT_ROWS", 12)
    record = fitted("calibrated").held_out_
    assert len(record.rows) == 12
    assert record.how == "12 of 90 rows held out"


def test_rows_from_a_file(tmp_path):
    X, y = table()
    X.assign(target=y).to_csv(tmp_path / "rows.csv", index=False)
    record = cb.NaiveBayes().fit(tmp_path / "rows.csv", y="target").held_out_
    expected = fitted("calibrated").held_out_
    assert np.array_equal(record.rows, expected.rows)
    np.testing.assert_allclose(record.log_posterior, expected.log_posterior, rtol=0, atol=1e-9)


def test_bad_calls():
    X, y = table()
    model = fitted("calibrated")
    with pytest.raises(ValueError, match="cv must be a whole number from 2"):
        model.with_held_out(X, y, cv=1)
    with pytest.raises(ValueError, match="four"):
        model.with_held_out(X, np.where(y == "one", "four", y))
    with pytest.raises(ValueError, match="no held-out row has a label"):
        model.with_held_out(X, np.full(len(y), None))
    with pytest.raises(ValueError, match="feature names"):
        model.with_held_out(X[["a", "b"]], y)
