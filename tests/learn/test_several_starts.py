"""Random parameters as a start, and the best of several starts."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import calibayes
from calibayes import CategoricalNB, GaussianNB, MixtureDiscriminantAnalysis, TrainingOptions
from calibayes.core.protocols import Block
from calibayes.learn import Bootstrap, Data, LastState, RandomLabels, RandomParameters, SeveralStarts
from calibayes.rules import EM, RC


def table(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + 0.6 * rng.normal(size=(3, 3))[y]
    return X + 0.3 * X[:, ::-1] ** 2, y


def block_of(n):
    return Block({}, np.zeros(n, dtype=int), np.ones(n), np.zeros(n))


def fit(start, rule=None, **options):
    X, y = table()
    training = TrainingOptions(start=start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianNB(rule=rule or RC.paper(), training=training, max_iter=40, **options).fit(X, y)


@pytest.mark.parametrize("n", [1_000, 50_000])
def test_random_parameters_vary_as_those_of_four_rows(n):
    """The expected sum of the squared shares is 1 - a: that of the Poisson-Dirichlet distribution PD(a, 0)."""
    squares = []
    for seed in range(60):
        weights = RandomParameters(seed).weights(block_of(n), 4)
        squares.extend(((weights / weights.sum(axis=0)) ** 2).sum(axis=0))
    assert_allclose(np.mean(squares), 1 / 4, rtol=0.15)


def test_random_parameters_are_weighted_averages_of_all_rows():
    X, y = table()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    training = TrainingOptions(start=RandomParameters(3))
    model = GaussianNB(
        rule=RC.paper(), training=training, stop=LastState(), max_iter=0 + 1, var_smoothing=0.0
    )
    model.set_params(max_iter=1).fit(X, y, sample_weight=weight)
    start = GaussianNB(
        rule=RC(step=1e-300), training=training, stop=LastState(), max_iter=1, var_smoothing=0.0
    )
    start.fit(X, y, sample_weight=weight)
    shares = RandomParameters(3).weights(block_of(len(y)), 3) * weight[:, None]
    for j in range(3):
        mean = np.average(X, axis=0, weights=shares[:, j])
        assert_allclose(start.theta_[j], mean, rtol=1e-10)
        assert_allclose(start.var_[j], np.average((X - mean) ** 2, axis=0, weights=shares[:, j]), rtol=1e-9)
    assert_allclose(start.class_prior_, 1 / 3, rtol=1e-12)
    assert_allclose(start.statistics_["class_prior"]["count"].sum(), weight.sum(), rtol=1e-12)


def test_random_parameters_differ_between_classes_as_random_labels_do_not():
    spread = [
        np.ptp(fit(start, stop=None).history_["error"]) for start in (RandomLabels(0), RandomParameters(0))
    ]
    assert min(spread) > 0.1  # calibration goes a long way from either
    starts = [RandomLabels(1).weights(block_of(5_000), 2), RandomParameters(1).weights(block_of(5_000), 2)]
    x = np.random.default_rng(0).normal(size=5_000)
    labels, parameters = (abs(np.diff(x @ weights / weights.sum(axis=0)))[0] for weights in starts)
    assert labels < 0.1 < parameters


@pytest.mark.parametrize("kind", [Bootstrap, RandomLabels, RandomParameters])
def test_the_training_of_least_soft_error_is_used(kind):
    several = SeveralStarts.of(kind, 6)
    assert several.starts[0] == Data()
    best = fit(several)
    alone = [fit(start) for start in several.starts]
    errors = [model.history_["soft_error"].min() for model in alone]
    assert len({round(error, 9) for error in errors}) > 1
    assert best.history_["soft_error"].min() == min(errors)
    X, _ = table()
    assert_array_equal(best.predict_proba(X), alone[int(np.argmin(errors))].predict_proba(X))


def test_the_criterion_of_the_stop_compares_the_trainings():
    """With the adaptive step: the highest conditional log likelihood."""
    several = SeveralStarts.of(RandomParameters, 5)
    objectives = [fit(start, RC()).history_["objective"].max() for start in several.starts]
    assert fit(several, RC()).history_["objective"].max() == max(objectives)


def test_expectation_maximization_from_several_starts():
    X, y = table()
    options = {"rule": EM(), "n_components": 2, "random_state": 0, "max_iter": 200}
    starts = [Data(), RandomLabels(0), RandomLabels(1)]
    one, *others, best = (
        MixtureDiscriminantAnalysis(training=TrainingOptions(start=start), **options).fit(X, y)
        for start in (*starts, SeveralStarts(starts))
    )
    assert best.history_["objective"].max() == max(
        model.history_["objective"].max() for model in (one, *others)
    )


def test_a_single_start_changes_nothing():
    X, _ = table()
    assert_array_equal(
        fit(SeveralStarts([Bootstrap(4)])).predict_proba(X), fit(Bootstrap(4)).predict_proba(X)
    )


def test_the_number_of_threads_changes_nothing():
    X, _ = table()
    several = SeveralStarts.of(RandomParameters, 3)
    assert_array_equal(fit(several, n_jobs=2).predict_proba(X), fit(several).predict_proba(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_validation_refits_from_one_of_the_starts():
    X, y = table()
    training = TrainingOptions(start=SeveralStarts.of(Bootstrap, 3), validation_fraction=0.3)
    model = GaussianNB(rule=RC(step=0.1), training=training, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    assert len(model.history_["validation_log_loss"]) == len(model.history_["error"])


def test_a_saved_model_keeps_its_starts(tmp_path):
    model = fit(SeveralStarts.of(RandomParameters, 2))
    calibayes.save(model, tmp_path / "model.safetensors")
    loaded = calibayes.load(tmp_path / "model.safetensors")
    assert loaded.training.start == model.training.start
    X, _ = table()
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_counts_have_random_parameters_too():
    X, y = table()
    model = CategoricalNB(rule=RC.paper(), training=TrainingOptions(start="random_parameters"), stop=None)
    model.set_params(random_state=5, max_iter=20).fit((X > 0).astype(int), y)
    assert model.history_["soft_error"][0] > model.history_["soft_error"].min()


def test_what_several_starts_cannot_do(tmp_path):
    X, y = table()
    with pytest.raises(ValueError, match="rule 'ml' has the same result from each"):
        fit(SeveralStarts.of(Bootstrap, 2), "ml")
    training = TrainingOptions(start=SeveralStarts.of(Bootstrap, 2), checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="trainings from several starts cannot have a checkpoint"):
        GaussianNB(training=training).fit(X, y)
    for wrong in ((), "data", ("data",), (Bootstrap,), (SeveralStarts([Data()]),)):
        with pytest.raises(ValueError, match=r"starts must be a list|each start must be an object"):
            SeveralStarts(wrong)
