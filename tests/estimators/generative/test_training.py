"""Training of an estimator: rules, starts, stops, validation, callbacks, failures."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import calibayes as cb
from calibayes.families import Categorical, Full, Gaussian, Spherical
from calibayes.learn import MaxPasses, NoGain, Patience, TimeLimit
from calibayes.rules import RC
from tests.contract.tables import table


def test_a_product_of_families_is_their_sum_in_log_space():
    X, y = table()
    families = [
        ("full", Gaussian(Full()), [0, 1]),
        ("round", Gaussian(Spherical()), [3]),
        ("codes", Categorical(alpha=1.0), [4]),
    ]
    whole = cb.GenerativeClassifier(families=families, rule="ml").fit(X, y)
    parts = [cb.GenerativeClassifier(families=[family], rule="ml").fit(X, y) for family in families]
    prior = whole.parameters_["class_prior"]["log_probability"]
    joint = sum(part.predict_joint_log_proba(X) for part in parts) - 2 * prior
    assert_allclose(whole.predict_joint_log_proba(X), joint, rtol=1e-10)


def test_unlabeled_rows_help():
    """Labels of four rows and many rows without: EM finds the two clouds."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) + 3.5 * y[:, None]
    known = np.full(400, np.nan)
    known[[0, 1, 2, 200, 201, 202]] = y[[0, 1, 2, 200, 201, 202]]
    options = {"prior": cb.families.NormalInverseWishart(1.0, 1.0)}
    model = cb.QuadraticDiscriminantAnalysis(rule="em", **options).fit(X, known)
    few = cb.QuadraticDiscriminantAnalysis(rule="ml", **options).fit(
        X[~np.isnan(known)], known[~np.isnan(known)]
    )
    assert model.score(X, y) >= max(few.score(X, y), 0.98)
    truth = np.array([[0.0, 0.0], [3.5, 3.5]])
    assert np.abs(model.means_ - truth).max() < 0.3 < np.abs(few.means_ - truth).max()
    assert_array_equal(model.classes_, [0.0, 1.0])
    labels = np.where(np.isnan(known), None, np.where(known == 1, "one", "nil"))
    assert cb.QuadraticDiscriminantAnalysis(rule="em", **options).fit(X, labels).classes_.tolist() == [
        "nil",
        "one",
    ]


def test_validation_rows_choose_the_state():
    X, y = table(300)
    model = cb.QuadraticDiscriminantAnalysis(
        training=cb.TrainingOptions(validation_fraction=0.3, refit=False), random_state=0
    ).fit(X, y)
    assert model.best_iter_ == np.argmin(model.history_["validation_log_loss"])
    again = cb.QuadraticDiscriminantAnalysis(
        training=cb.TrainingOptions(validation_fraction=0.3), random_state=0
    ).fit(X, y)
    assert again.best_iter_ == model.best_iter_
    assert again.data_statistics_["class_prior"]["count"].sum() == 300
    assert model.data_statistics_["class_prior"]["count"].sum() < 300


@pytest.mark.parametrize(
    ("stop", "check"),
    [
        ("soft_error", lambda h: np.all(np.diff(h["soft_error"])[:-1] <= 0)),
        (Patience("error", 3), lambda h: len(h["error"]) - 1 - np.argmin(h["error"]) == 3),
        (MaxPasses(4), lambda h: h["passes"][-1] == 4),
        (TimeLimit(0.0), lambda h: len(h["error"]) == 1),
        ([NoGain(1e-3), MaxPasses(30)], lambda h: h["passes"][-1] <= 30),
    ],
)
@pytest.mark.filterwarnings(
    "ignore:the objective of rule 'rc' was still rising:sklearn.exceptions.ConvergenceWarning"
)
def test_stops(stop, check):
    X, y = table()
    model = cb.CategoricalNB(rule=RC(step=0.3), stop=stop, max_iter=50).fit(X, y)
    assert check(model.history_)


def test_callbacks_see_progress_and_can_stop(capsys):
    X, y = table()
    seen = []

    def enough(progress):
        seen.append(progress.entry.log_loss)
        return progress.update == 4

    model = cb.GaussianNB(training=cb.TrainingOptions(callbacks=[enough]), stop=None, verbose=1).fit(X, y)
    assert model.n_iter_ == 4
    assert_array_equal(model.history_["log_loss"], seen)
    assert "[GaussianNB] update 4/64" in capsys.readouterr().err


def test_an_interrupted_fit_leaves_an_estimator_that_can_be_fitted():
    X, y = table()

    def interrupt(progress):
        raise KeyboardInterrupt

    model = cb.GaussianNB(training=cb.TrainingOptions(callbacks=[interrupt]))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert (
        model.set_params(training=cb.TrainingOptions(callbacks=None), rule="ml").fit(X, y).score(X, y) > 0.4
    )


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = table()
    for estimator in (cb.GaussianNB(prior=None, var_smoothing=0.0), cb.CategoricalNB()):
        model = estimator.set_params(rule="ml").fit(X, y)
        expected = model.predict_log_proba(X)
        with pytest.raises(ValueError, match=r".+"):
            model.fit(X[:3, :2], ["p", "q", None])

        def interrupt(progress):
            raise KeyboardInterrupt

        model.set_params(training=cb.TrainingOptions(callbacks=[interrupt]))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :2] + 1, np.where(y == "x", "p", "q"))
        assert_array_equal(model.predict_log_proba(X), expected)
        counts = model.data_statistics_["class_prior"]["count"].copy()
        with pytest.raises(ValueError, match="do not exist in the initial classes"):
            model.partial_fit(X[:3], ["x", "y", "other"])
        assert_array_equal(model.data_statistics_["class_prior"]["count"], counts)


@pytest.mark.parametrize("stop", [None, TimeLimit(60.0), MaxPasses(40)])
def test_expectation_maximization_returns_its_end(stop):
    X, y = table()
    labels = np.where(np.arange(400) % 5 == 0, y, None)
    model = cb.GaussianNB(rule="em", stop=stop, max_iter=10).fit(X, labels)
    assert model.best_iter_ == 10
    plain = cb.GaussianNB(
        rule="ml", training=cb.TrainingOptions(start="bootstrap"), stop=stop, random_state=2
    ).fit(X, y)
    assert_allclose(plain.theta_, cb.GaussianNB(rule="ml").fit(X, y).theta_, rtol=1e-10)


def test_a_random_start_does_not_hide_singular_data():
    X, y = table()
    X[y == "x", 0] = 3.0
    options = {"rule": "ml", "training": cb.TrainingOptions(start="random"), "random_state": 0}
    with pytest.raises(ValueError, match="class 'x'"):
        cb.QuadraticDiscriminantAnalysis(prior=None, **options).fit(X, y)
    with pytest.warns(cb.SingularCovarianceWarning, match="class 'x'"):
        model = cb.QuadraticDiscriminantAnalysis(**options).fit(X, y)
    with pytest.warns(cb.SingularCovarianceWarning, match="class 'x'"):
        assert_allclose(
            model.means_, cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).means_, rtol=1e-10
        )


def test_refit_trains_as_the_validation_run_did():
    X, y = table()
    options = {"random_state": 0, "max_iter": 5, "stop": None, "rule": RC(step=0.2)}
    full, batches = (
        cb.GaussianNB(training=cb.TrainingOptions(validation_fraction=0.3, batch_size=size), **options).fit(
            X, y
        )
        for size in (None, 16)
    )
    assert not np.array_equal(full.predict_proba(X), batches.predict_proba(X))


def test_validation_rows_shape_no_bins():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1)), np.arange(200) % 2
    kept = cb.NaiveBayes(
        training=cb.TrainingOptions(validation_fraction=0.5, refit=False), random_state=0
    ).fit(X, y)
    whole = cb.NaiveBayes(training=cb.TrainingOptions(validation_fraction=0.5), random_state=0).fit(X, y)
    assert not np.array_equal(
        kept.fitted_.binding.encoders["kernel"].edges[0], whole.fitted_.binding.encoders["kernel"].edges[0]
    )
