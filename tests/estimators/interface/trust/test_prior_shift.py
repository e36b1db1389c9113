"""Class frequencies of unlabeled rows: against brute force, on planted shifts, and what else moved."""

import copy
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

import calibayes as cb
from calibayes.analysis import prior_shift
from calibayes.analysis.prior_shift_tests import (
    Comparison,
    LabeledSample,
    bootstrap_frequencies,
    classes_alone_p_value,
    estimated_frequencies,
    fitted_calibration,
    likelihood_ratios,
    no_shift_p_value,
    resampled_changes,
)
from calibayes.model.training_rows import HeldOut
from calibayes.trust import ClassConditionalShiftWarning, PriorShift

MODELS = {
    "calibrated": cb.NaiveBayes(),
    "closed form": cb.GaussianNB(rule="ml"),
    "weighted classes": cb.GaussianNB(class_weight="balanced"),
    "mixture": cb.MixtureDiscriminantAnalysis(n_components=2),
    "trees": cb.CalibratedTrees(),
    "ensemble": cb.PosteriorMixture(
        models=[("lda", cb.LinearDiscriminantAnalysis()), ("nb", cb.GaussianNB())]
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)
CENTERS = np.array([[0.0, 0.0], [2.0, 0.5], [0.5, 2.0]])
CLASSES = np.array(["a", "b", "c"])
EVEN, MOVED = np.array([0.4, 0.3, 0.3]), np.array([0.18, 0.64, 0.18])


def table(n, frequencies, seed, centers=CENTERS):
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(centers), n, p=frequencies)
    return centers[codes] + rng.normal(size=(n, centers.shape[1])), CLASSES[codes]


@cache
def fitted(name="closed form"):
    return copy.deepcopy(MODELS[name]).fit(*table(300, EVEN, 0))


@cache
def adapted_to_shift(name="closed form"):
    return fitted(name).adapt_priors(table(400, MOVED, 5)[0], bootstrap=60)


def exact_log_posterior(X, frequencies):
    joint = np.log(frequencies) - ((X[:, None] - CENTERS) ** 2).sum(axis=2) / 2
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None]


def sample(n, seed):
    """Held-out rows with exact posteriors."""
    X, y = table(n, EVEN, seed)
    codes = np.searchsorted(CLASSES, y)
    record = HeldOut(exact_log_posterior(X, EVEN), codes, np.ones(n), np.arange(n), "")
    return LabeledSample.of(record), X


# -- estimation ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pseudo_rows", [0.0, 7.0])
@pytest.mark.parametrize("k", [2, 3, 8])
def test_frequencies_are_those_of_brute_force(k, pseudo_rows):
    rng = np.random.default_rng(k)
    prior = rng.dirichlet(np.full(k, 5.0))
    log_posterior = np.log(rng.dirichlet(np.full(k, 0.5), size=60) + 1e-6)
    ratios = likelihood_ratios(log_posterior, prior)

    def loss(scores):
        log_frequency = scores - np.logaddexp.reduce(scores)
        return -(np.log(ratios @ np.exp(log_frequency)).sum() + pseudo_rows * prior @ log_frequency)

    scores = minimize(loss, np.log(prior), tol=1e-12).x
    expected = np.exp(scores - np.logaddexp.reduce(scores))
    assert_allclose(estimated_frequencies(ratios, prior, pseudo_rows), expected, atol=2e-5)


def test_a_class_without_rows_may_have_frequency_zero():
    ratios = np.tile([1.0, 0.5, 1e-300], (50, 1))
    assert_allclose(estimated_frequencies(ratios, EVEN), [1, 0, 0], atol=1e-6)


def test_held_out_rows_have_their_own_frequencies():
    """Bias correction makes the mean posterior that of the classes, so that EM stays where it is."""
    held_out, X = sample(400, 1)
    wrong = 3.0 * exact_log_posterior(X, MOVED)  # too sure, and of other frequencies
    skewed = LabeledSample.of(HeldOut(wrong, held_out.codes, held_out.weight, np.arange(400), ""))
    assert skewed.calibration.coefficients[0] == pytest.approx(1 / 3, abs=0.1)
    assert_allclose(
        estimated_frequencies(skewed.ratios(wrong), skewed.frequencies), skewed.frequencies, atol=1e-4
    )


def test_resampled_calibrations_are_those_of_a_refit():
    held_out, _ = sample(400, 2)
    weights = np.random.default_rng(0).exponential(size=(3, 400)) * 0.1 + 0.9
    changes = resampled_changes(held_out.calibration, held_out.log_posterior, held_out.codes, weights)
    for weight, change in zip(weights, changes, strict=True):
        again = fitted_calibration(held_out.log_posterior, held_out.codes, weight)
        expected = held_out.calibration.log_posterior(held_out.log_posterior)
        moved = held_out.calibration.moved(change).log_posterior(held_out.log_posterior)
        refit = again.log_posterior(held_out.log_posterior)
        assert np.abs(moved - refit).max() < 0.1 * np.abs(expected - refit).max()


def test_intervals_cover_the_true_frequencies():
    """Percentile intervals of so few rows cover about 93 %, of nominal 95 %."""
    covered = []
    for seed in range(40):
        held_out, _ = sample(200, seed)
        new = exact_log_posterior(table(150, MOVED, 1000 + seed)[0], EVEN)
        estimate = estimated_frequencies(held_out.ratios(new), held_out.frequencies)
        found = bootstrap_frequencies(held_out, new, estimate, 80, np.random.default_rng(seed))
        low, high = np.quantile(found, [0.025, 0.975], axis=0)
        covered.append((low <= MOVED) & (high >= MOVED))
    assert np.mean(covered) >= 0.88
    assert np.mean(high - low) < 0.3


# -- tests of shifts -------------------------------------------------------------------------------------------------


def test_false_alarms_have_the_stated_rate():
    """A share of 5 %, of 200 draws: at most 10 % but for one case in a thousand."""
    p_values = []
    for seed in range(200):
        held_out, _ = sample(200, seed)
        new = exact_log_posterior(table(150, EVEN, 1000 + seed)[0], EVEN)
        estimate = estimated_frequencies(held_out.ratios(new), held_out.frequencies)
        p_values.append(no_shift_p_value(held_out, new, estimate))
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.10
    assert 0.35 <= np.mean(p_values) <= 0.65


def alone(seed, frequencies, centers=CENTERS, n=150):
    held_out, X = sample(200, seed)
    X_new, _ = table(n, frequencies, 1000 + seed, centers)
    new = exact_log_posterior(X_new, EVEN)
    estimate = estimated_frequencies(held_out.ratios(new), held_out.frequencies)
    compared = [
        *(Comparison(*pair) for pair in zip(held_out.log_posterior.T, new.T, strict=True)),
        Comparison(X.sum(axis=1), X_new.sum(axis=1)),
    ]
    return classes_alone_p_value(held_out, compared, n, estimate, 40, np.random.default_rng(seed))


def test_a_shift_of_the_classes_is_no_shift_within_classes():
    assert np.mean([alone(seed, MOVED) < 0.05 for seed in range(40)]) <= 0.15


def test_a_shift_within_a_class_is_found():
    centers = CENTERS + np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    assert np.mean([alone(seed, EVEN, centers) < 0.05 for seed in range(10)]) >= 0.8


# -- models ----------------------------------------------------------------------------------------------------------


@every_model
def test_a_planted_shift_is_recovered(name):
    X_new, y_new = table(400, MOVED, 5)
    report = adapted_to_shift(name).prior_shift_
    report.verify()
    assert report.has_shift
    assert report.is_of_classes_alone
    true = np.array([np.mean(y_new == label) for label in CLASSES])
    assert_allclose(report.estimate, true, atol=0.1)
    low, high = report.interval.T
    assert ((low - 0.03 <= true) & (true <= high + 0.03)).all()
    assert (high - low < 0.25).all()
    errors = [np.mean(m.predict(X_new) != y_new) for m in (adapted_to_shift(name), fitted(name))]
    assert errors[0] < errors[1]


@every_model
def test_the_result_is_that_of_with_priors(name):
    model, adapted, X_new = fitted(name), adapted_to_shift(name), table(200, MOVED, 6)[0]
    known = model.with_priors(adapted.adapted_priors_)
    assert np.array_equal(adapted.predict_proba(X_new), known.predict_proba(X_new))
    assert adapted.adapted_priors_.sum() == pytest.approx(1)
    assert adapted.adapted_priors_interval_.shape == (3, 2)
    assert not hasattr(model, "adapted_priors_")
    assert not hasattr(known, "adapted_priors_")


def test_draws_have_a_seed():
    X_new = table(400, MOVED, 5)[0]
    first, again, other = (
        fitted().adapt_priors(X_new, bootstrap=60, random_state=seed) for seed in (None, None, 1)
    )
    assert str(first.prior_shift_) == str(again.prior_shift_)
    assert not np.array_equal(first.adapted_priors_interval_, other.adapted_priors_interval_)
    assert np.array_equal(first.adapted_priors_, other.adapted_priors_)


@pytest.mark.filterwarnings("ignore::calibayes.trust.ClassConditionalShiftWarning")
@pytest.mark.parametrize("name", ["calibrated", "closed form", "ensemble"])
def test_rows_without_a_shift_change_little(name):
    model = fitted(name)
    training = np.bincount(np.searchsorted(CLASSES, table(300, EVEN, 0)[1])) / 300
    moved = [
        np.abs(
            model.adapt_priors(table(200, training, seed)[0], bootstrap=20).adapted_priors_ - training
        ).max()
        for seed in range(20, 26)
    ]
    assert np.mean(moved) < 0.05


def test_a_shift_within_a_class_warns():
    centers = CENTERS + np.array([[3.0, -3.0], [0.0, 0.0], [0.0, 0.0]])
    with pytest.warns(ClassConditionalShiftWarning, match="moved"):
        adapted = fitted().adapt_priors(table(400, EVEN, 7, centers)[0], bootstrap=60)
    assert adapted.prior_shift_.is_of_classes_alone is False
    assert "Train on labeled rows" in str(adapted.prior_shift_)


def test_the_test_needs_rows_that_the_model_itself_has_not_seen():
    X_new = table(200, MOVED, 8)[0]
    given = fitted().with_held_out(*table(200, EVEN, 9))
    assert given.adapt_priors(X_new, bootstrap=20).prior_shift_.classes_alone_p_value is not None
    folds = fitted().with_held_out(*table(300, EVEN, 0), cv=3)
    report = folds.adapt_priors(X_new, bootstrap=20).prior_shift_
    assert report.classes_alone_p_value is None
    assert "was not tested" in report.conclusion
    assert "alone" not in str(report)


def test_intervals_of_a_class_without_rows_have_a_width():
    interval = prior_shift.interval_of(np.tile([0.0, 0.3, 0.7], (50, 1)), 100)
    assert_allclose(interval, [[0, 1 - 0.025**0.01], [0.3, 0.3], [0.7, 0.7]])
    assert_allclose(prior_shift.interval_of(np.ones((50, 1)), 100), [[0.025**0.01, 1]])


def test_shrinkage_follows_the_evidence():
    training, estimate = np.array([0.5, 0.5]), np.array([0.8, 0.2])
    assert_allclose(prior_shift.shrunk(estimate, training, 0.5), training)
    assert_allclose(prior_shift.shrunk(estimate, training, 0.0), estimate)
    between = prior_shift.shrunk(estimate, training, 0.01)
    assert 0.5 < between[0] < 0.8


@pytest.mark.filterwarnings("ignore::calibayes.trust.ClassConditionalShiftWarning")
def test_few_rows_missing_cells_files_and_many_rows(tmp_path, monkeypatch):
    X, y = table(300, EVEN, 0)
    X[::5, 0] = np.nan
    model = cb.NaiveBayes().fit(pd.DataFrame(X, columns=["x", "z"]), y)
    one = model.adapt_priors(pd.DataFrame({"x": [np.nan], "z": [1.0]}), bootstrap=20)
    assert_allclose(one.adapted_priors_, one.prior_shift_.training, atol=1e-9)
    X_new = pd.DataFrame(table(200, MOVED, 6)[0], columns=["x", "z"])
    X_new.to_csv(tmp_path / "new.csv", index=False)
    of_file, of_frame = (model.adapt_priors(rows, bootstrap=20) for rows in (tmp_path / "new.csv", X_new))
    assert_allclose(of_file.adapted_priors_, of_frame.adapted_priors_, atol=1e-9)
    monkeypatch.setattr(prior_shift, "MOST_NEW_ROWS", 150)
    assert model.adapt_priors(X_new, bootstrap=20).prior_shift_.rows == 150


# -- what is kept ----------------------------------------------------------------------------------------------------


@every_model
def test_the_record_moves_with_the_frequencies(name):
    model = fitted(name).with_held_out(*table(200, EVEN, 3))
    adjusted = model.with_priors(MOVED)
    record, before = adjusted.held_out_, model.held_out_
    record.verify()
    assert_allclose(record.log_posterior, adjusted.predict_log_proba(table(200, EVEN, 3)[0]), atol=1e-9)
    assert_allclose(np.bincount(record.codes, record.weight) / record.weight.sum(), MOVED)
    assert record.weight.sum() == pytest.approx(before.weight.sum())
    assert record.log_density is None
    assert "other class frequencies" in record.how


@every_model
def test_pickles_and_model_files_hold_the_report(name, tmp_path):
    adapted = adapted_to_shift(name)
    cb.save(adapted, tmp_path / "model.safetensors")
    for again in (pickle.loads(pickle.dumps(adapted)), cb.load(tmp_path / "model.safetensors")):
        assert str(again.prior_shift_) == str(adapted.prior_shift_)
        assert np.array_equal(again.adapted_priors_, adapted.adapted_priors_)
        assert np.array_equal(again.adapted_priors_interval_, adapted.adapted_priors_interval_)
        assert np.array_equal(again.held_out_.weight, adapted.held_out_.weight)


def test_an_ensemble_can_be_adapted_again():
    again = adapted_to_shift("ensemble").adapt_priors(table(400, EVEN, 7)[0], bootstrap=20)
    assert_allclose(again.adapted_priors_, EVEN, atol=0.1)
    assert again.held_out_.how.count("frequencies") == 1


def report(**changes):
    fields = {
        "classes": CLASSES,
        "training": EVEN,
        "estimate": MOVED,
        "adapted": MOVED,
        "interval": np.tile([0.1, 0.9], (3, 1)),
        "rows": 10,
        "no_shift_p_value": 0.01,
        "classes_alone_p_value": 0.5,
    }
    return PriorShift(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"training": EVEN * 2}, "training"),
        ({"interval": np.tile([0.9, 0.1], (3, 1))}, "ends before"),
        ({"interval": np.tile([0.1, 1.9], (3, 1))}, "probabilities"),
        ({"rows": 0}, "rows"),
        ({"no_shift_p_value": 1.5}, "p-value"),
    ],
)
def test_damaged_reports_are_refused(changes, problem):
    report().verify()
    with pytest.raises(ValueError, match=problem):
        report(**changes).verify()


def test_attributes_must_agree():
    adapted = copy.copy(adapted_to_shift())
    adapted.verify()
    adapted.adapted_priors_ = EVEN
    with pytest.raises(ValueError, match="adapted_priors_ is not that of prior_shift_"):
        adapted.verify()
    del adapted.adapted_priors_
    with pytest.raises(ValueError, match="there is only"):
        adapted.verify()


def test_errors_say_what_is_needed():
    X_new = table(50, EVEN, 1)[0]
    with pytest.raises(TypeError, match="has no with_priors"):
        cb.JointKernelClassifier().fit(*table(90, EVEN, 0)).adapt_priors(X_new)
    with pytest.raises(ValueError, match="bootstrap must be a whole number from 20 on"):
        fitted().adapt_priors(X_new, bootstrap=3)
    with pytest.raises(ValueError, match="adapt_priors needs rows that the model was not trained on"):
        pickle.loads(pickle.dumps(cb.GaussianNB().fit(*table(90, EVEN, 0)))).adapt_priors(X_new)
    with pytest.raises(ValueError, match="priors of this model were replaced"):
        adapted_to_shift().adapt_priors(X_new, bootstrap=20)
    X, y = table(90, EVEN, 0)
    with pytest.raises(ValueError, match="class 'a' has no held-out row"):
        fitted().with_held_out(X[y != "a"], y[y != "a"]).adapt_priors(X_new)
