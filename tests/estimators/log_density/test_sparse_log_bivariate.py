"""Linear classifiers on log densities, and unusual tables."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from calibayes import (
    LogDensityFeatures,
    LogUnivariateClassifier,
    SparseLogBivariateClassifier,
    measure_dependence,
)
from calibayes.dependence import BestFraction, SignificantPairs, TopFraction
from calibayes.estimators.linear_model import LOSSES, reduce_features
from calibayes.plots import boxes, plot_dependence

QUICK = {"C": 0.1, "selection": TopFraction(0.5)}


def crossed(n=300, seed=0):
    """Classes that differ in the sign of a correlation only; no single column is informative."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 3))
    X[:, 1] = X[:, 0] * (2 * y - 1) + 0.2 * X[:, 1]  # the Bayes error is 6.3 %
    return X, y


def test_pairs_separate_classes_that_single_columns_cannot():
    X, y = crossed()
    Z, z = crossed(seed=1)
    assert SparseLogBivariateClassifier().fit(X, y).score(Z, z) > 0.85
    assert LogUnivariateClassifier().fit(X, y).score(Z, z) < 0.65


def test_the_choice_has_the_lowest_held_out_loss():
    X, y = crossed(100)
    model = SparseLogBivariateClassifier(selection=BestFraction((0.0, 0.5, 1.0)), C=(0.01, 1.0)).fit(X, y)
    losses = model.cv_results_["loss"]
    assert losses.shape == (3, 2)
    place = np.unravel_index(losses.argmin(), losses.shape)
    assert (0.01, 1.0)[place[1]] == model.C_
    assert model.coef_.shape[1] == model.cv_results_["features"][place[0]] == len(model.feature_names_)


def test_nested_choice_is_honest_where_columns_tell_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (800, 6)).astype(float), rng.integers(0, 2, 800)
    losses = {}
    for nested in (False, True):
        model = SparseLogBivariateClassifier(nested=nested, random_state=0).fit(X[:400], y[:400])
        posterior = model.predict_proba(X[400:])
        new = -np.log(posterior[np.arange(400), y[400:]]).mean()
        losses[nested] = model.cv_results_["loss"].min(), new
    assert abs(losses[True][0] - losses[True][1]) < 0.02
    assert losses[True][1] < min(0.7, losses[False][1])


def test_features_are_the_selected_pairs():
    X, y = crossed()
    model = SparseLogBivariateClassifier(selection=SignificantPairs(1e-6), C=0.1).fit(X, y)
    assert sorted(model.feature_names_[9:]) == ["log p(x0, x1 | 0)", "log p(x0, x1 | 1)"]
    every = SparseLogBivariateClassifier(selection=None, C=0.1, original_columns=False).fit(X, y)
    assert every.coef_.shape == (1, 2 * 3 + 2 * 3)


@pytest.mark.parametrize("loss", [("log", "l2"), ("hinge", "l2")])
def test_reduced_features_give_the_same_hyperplane(loss):
    rng = np.random.default_rng(0)
    features, codes = rng.normal(size=(30, 80)), np.arange(30) % 2
    reduced, restore = reduce_features(features, LOSSES[loss])
    assert reduced.shape == (30, 30)
    problem = (codes, 2, np.ones(30))
    wide = LOSSES[loss].solve((features, *problem), 0.01)
    found = restore(LOSSES[loss].solve((reduced, *problem), 0.01))
    assert_allclose(found.coefficients, wide.coefficients, atol=1e-4)
    assert_allclose(found.intercepts, wide.intercepts, atol=1e-3)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_l1_makes_coefficients_sparse(loss):
    X, y = crossed()
    model = SparseLogBivariateClassifier(penalty="l1", loss=loss, C=0.05, selection=None).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size / 2
    assert model.score(X, y) > 0.8


def test_probabilities_are_those_of_the_logistic_model():
    X, y = load_iris(return_X_y=True)
    for penalty in ("l1", "l2"):
        model = SparseLogBivariateClassifier(penalty=penalty, **QUICK).fit(X, y)
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1)
        assert_array_equal(p.argmax(axis=1), model.predict(X))
    assert not hasattr(SparseLogBivariateClassifier(loss="hinge"), "predict_proba")


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_several_classes(load):
    X, y = load(return_X_y=True)
    for model in (SparseLogBivariateClassifier(**QUICK), SparseLogBivariateClassifier(loss="hinge", **QUICK)):
        assert cross_val_score(model, X, y, cv=3).mean() > 0.93
        assert model.fit(X, y).decision_function(X).shape == (len(y), 3)


def test_paper_sets_the_parameters_of_the_publication():
    model = SparseLogBivariateClassifier.paper(class_weight="balanced")
    options = model.get_params()
    assert (options["loss"], options["C"], options["leave_one_out"], options["class_weight"]) == (
        "hinge",
        1.0,
        False,
        "balanced",
    )
    X, y = crossed(120)
    assert model.fit(X, y).cv_results_["loss"].shape[1] == 1
    assert model.score(X, y) > 0.85


def test_the_model_does_not_grow_with_the_rows():
    sizes = []
    for n in (600, 2400):
        X, y = make_moons(n, noise=0.2, random_state=0)
        model = SparseLogBivariateClassifier(kept_rows=100, **QUICK).fit(X, y)
        assert model.score(X, y) > 0.9
        sizes.append(len(pickle.dumps(model)))
    assert sizes[1] < 1.05 * sizes[0]


def test_the_same_seed_gives_the_same_model():
    X, y = make_moons(500, noise=0.2, random_state=0)
    one, two = (
        SparseLogBivariateClassifier(kept_rows=50, choice_rows=100, random_state=3).fit(X, y)
        for _ in range(2)
    )
    assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_class_weights_do_not_change_densities():
    X, y = crossed()
    plain, heavy = (
        SparseLogBivariateClassifier(class_weight=w, **QUICK).fit(X, y) for w in (None, {0: 1, 1: 9})
    )
    assert_array_equal(plain.densities_.kernels[1].double, heavy.densities_.kernels[1].double)
    assert heavy.predict(X).mean() > plain.predict(X).mean() + 0.05


class TestUnusualTables:
    def test_one_column_has_no_pairs(self):
        X, y = np.r_[np.arange(20.0), np.arange(30.0, 50)][:, None], np.repeat([0, 1], 20)
        model = SparseLogBivariateClassifier().fit(X, y)
        assert model.score(X, y) == 1
        assert model.feature_names_ == ["x0", "log p(x0 | 0)", "log p(x0 | 1)"]

    def test_constant_columns_are_ignored(self):
        X, y = crossed()
        model = SparseLogBivariateClassifier(**QUICK).fit(X, y)
        beside = SparseLogBivariateClassifier(**QUICK).fit(np.insert(X, 1, 7.0, axis=1), y)
        Z = np.insert(X, 1, -1e6, axis=1)
        assert_allclose(beside.decision_function(Z), model.decision_function(X))

    def test_nothing_but_constant_columns_is_an_error(self):
        with pytest.raises(ValueError, match="all columns are constant"):
            SparseLogBivariateClassifier().fit(np.ones((10, 3)), np.arange(10) % 2)

    def test_a_column_that_is_constant_in_one_class_alone(self):
        rng = np.random.default_rng(0)
        y = np.arange(80) % 2
        X = np.c_[np.where(y, rng.normal(size=80), 0.0), rng.normal(size=80)]
        assert SparseLogBivariateClassifier().fit(X, y).score(X, y) > 0.9

    def test_ties(self):
        rng = np.random.default_rng(0)
        y = np.arange(200) % 2
        X = rng.integers(0, 3, size=(200, 4)) + y[:, None] * rng.integers(0, 2, size=(200, 4))
        model = SparseLogBivariateClassifier().fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
        assert model.score(X, y) > 0.75

    def test_a_class_of_three_rows(self):
        X, y = crossed(100)
        y = np.where(np.arange(100) < 97, y, 2)
        X[97:] += 8
        model = SparseLogBivariateClassifier().fit(X, y)
        assert_array_equal(model.predict(X[97:]), [2, 2, 2])

    def test_a_class_of_one_row_is_refused_by_cross_validation(self):
        X, y = crossed(50)
        y[0] = 2
        with pytest.raises(ValueError, match="one row only"):
            SparseLogBivariateClassifier().fit(X, y)
        assert SparseLogBivariateClassifier(**QUICK).fit(X, y).predict(X).shape == (50,)

    def test_five_hundred_columns_are_cut_to_the_most_dependent_pairs(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 500)), np.arange(40) % 2
        X[:, 1] = X[:, 0] * (2 * y - 1)
        with pytest.warns(UserWarning, match="max_pairs"):
            model = SparseLogBivariateClassifier(selection=None, C=0.01, max_pairs=50).fit(X, y)
        assert model.coef_.shape[1] == 500 + 1000 + 50
        assert "log p(x0, x1 | 1)" in model.feature_names_

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"loss": "square"}, "loss must be"),
            ({"C": -1.0}, "C must be"),
            ({"C": ()}, "C must be"),
            ({"measure": "nothing"}, "measure must be"),
            ({"selection": "best"}, "selection must be"),
            ({"scoring": "auc"}, "scoring must be"),
            ({"floor": 0.0}, "floor must be"),
            ({"kept_rows": 1}, "kept_rows must be"),
            ({"cv": 1}, "cv must be"),
        ],
    )
    def test_invalid_parameters_are_refused(self, options, message):
        X, y = crossed(40)
        with pytest.raises(ValueError, match=message):
            SparseLogBivariateClassifier(**options).fit(X, y)


class TestFeatures:
    def test_feature_names(self):
        iris = load_iris(as_frame=True)
        model = LogDensityFeatures(selection=TopFraction(0.1), original_columns=True).fit(
            iris.data, iris.target
        )
        names = model.get_feature_names_out()
        assert list(names[:5]) == [*iris.data.columns, "log p(sepal length (cm) | 0)"]
        assert len(names) == model.transform(iris.data).shape[1] == 4 + 12 + 2
        assert isinstance(model.set_output(transform="pandas").transform(iris.data), pd.DataFrame)

    def test_before_any_classifier(self):
        X, y = crossed()
        features = LogDensityFeatures(leave_one_out=True)
        model = make_pipeline(features, LogisticRegression(C=0.01, max_iter=1000))
        assert cross_val_score(model, X, y).mean() > 0.85

    def test_rows_without_weight_are_new_rows(self):
        X, y = crossed(60)
        weight = np.r_[np.zeros(10), np.ones(50)]
        features = LogDensityFeatures(selection=None, leave_one_out=True)
        found = features.fit_transform(X, y, sample_weight=weight)
        assert_allclose(found[:10], features.transform(X[:10]))
        assert not np.allclose(found[10:], features.transform(X[10:]))

    def test_several_candidates_need_a_classifier(self):
        X, y = crossed(60)
        with pytest.raises(ValueError, match="several candidates, which only a classifier can choose from"):
            LogDensityFeatures(selection="cv").fit(X, y)


class TestMeasureDependence:
    def test_data_frame_of_all_pairs(self):
        iris = load_iris(as_frame=True)
        found = measure_dependence(iris.data, iris.target_names[iris.target])
        frame = found.frame()
        assert list(frame.columns) == ["class", "first", "second", "statistic", "p_value"]
        assert len(frame) == 3 * 6
        assert frame["statistic"].is_monotonic_decreasing
        assert "HSIC of 6 pairs in 3 classes" in repr(found)

    def test_without_classes_and_with_permutations(self):
        X, _ = crossed(80)
        found = measure_dependence(X, measure="spearman", permutations=50)
        assert found.classes == ("all",)
        assert found.p_value.min() >= 1 / 51

    def test_plots(self):
        X, y = crossed(60)
        found = measure_dependence(X, y, measure="pearson")
        assert "within 1" in plot_dependence(found, 1).get_title(loc="left")
        assert len(boxes({"a": {"u": [1, 2], "v": [2, 3]}, "b": {"u": [1]}}, y="error").axes) == 2
        with pytest.raises(ValueError, match="no class 5"):
            plot_dependence(found, 5)


def test_progress_is_reported_after_a_second(capsys, monkeypatch):
    ticks = iter(range(0, 10_000, 2))
    monkeypatch.setattr("time.monotonic", lambda: next(ticks))
    X, y = crossed(40)
    SparseLogBivariateClassifier(verbose=True, **QUICK).fit(X, y)
    assert "densities of rows" in capsys.readouterr().err
    SparseLogBivariateClassifier(verbose=False, **QUICK).fit(X, y)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("weight", [1e-310, 1e-200])
def test_tiny_weights_are_refused(weight):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"largest sample weight is .* Multiply all weights"):
        LogUnivariateClassifier().fit(X, y, sample_weight=np.full(len(y), weight))


def test_error_on_vehicle(data_file):
    table = pd.read_csv(data_file("vehicle"))
    X, y = table.drop(columns="target"), table["target"]
    assert 1 - cross_val_score(SparseLogBivariateClassifier(), X, y, cv=3).mean() <= 0.2
