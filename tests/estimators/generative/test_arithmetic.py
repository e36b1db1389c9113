"""Exact arithmetic on closed-form models: merge, forget, cross-validation in one pass."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.families import Gaussian, TreeCovariance
from calibayes.trust import verify_receipt
from tests.contract.tables import gappy, table
from tests.contract.test_scikit_learn import ADDITIVE, nothing_hidden
from tests.seeds import generator


def test_models_of_families_that_were_built_apart_can_be_merged():
    X, y = table()
    halves = [
        cb.GenerativeClassifier(families=[("x", Gaussian(TreeCovariance()), cb.every)], rule="ml").fit(
            X[rows], y[rows]
        )
        for rows in (slice(0, len(X) // 2), slice(len(X) // 2, None))
    ]
    whole = clone(halves[0]).fit(X, y)
    assert_allclose(halves[0].merge(halves[1]).predict_proba(X), whole.predict_proba(X), atol=1e-8)


SHAPED = cb.NaiveBayes | cb.KernelNB | cb.TreeAugmentedNB | cb.KDependenceBayes | cb.AODE


CLOSED = [nothing_hidden(clone(estimator)) for estimator in ADDITIVE if not isinstance(estimator, SHAPED)]


EVERY_CLOSED = pytest.mark.parametrize("estimator", CLOSED, ids=lambda estimator: type(estimator).__name__)


def close(left, right):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=1e-10, atol=1e-10), left, right)


@pytest.mark.parametrize("rule", ["ml", "map"])
class TestArithmetic:
    @EVERY_CLOSED
    def test_models_trained_apart_add_up(self, estimator, rule):
        X, y = table()
        whole = clone(estimator).set_params(rule=rule).fit(X, y)
        first, second = (clone(whole).fit(X[part], y[part]) for part in (slice(0, 150), slice(150, None)))
        merged = first.merge(second)
        assert_allclose(merged.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9, atol=1e-9)
        close(merged.parameters_, whole.parameters_)

    @EVERY_CLOSED
    def test_rows_can_be_forgotten(self, estimator, rule):
        X, y = table()
        weight = generator(0).uniform(0.5, 2.0, 400)
        X[:20] = X[20:40]  # so that no level is lost with them
        whole = clone(estimator).set_params(rule=rule).fit(X, y, weight)
        left = clone(whole).fit(X[20:], y[20:], weight[20:])
        forgetful = whole.forget(X[:20], y[:20], weight[:20])
        close(forgetful.parameters_, left.parameters_)
        again = forgetful.partial_fit(X[:20], y[:20], sample_weight=weight[:20])
        close(again.parameters_, whole.parameters_)

    @EVERY_CLOSED
    @pytest.mark.parametrize("weighted", [False, True])
    def test_folds_in_one_pass_are_folds_the_long_way(self, estimator, rule, weighted):
        X, y = table()
        weight = generator(1).integers(0, 3, 400).astype(float) if weighted else np.ones(400)
        model, splitter = (
            clone(estimator).set_params(rule=rule),
            StratifiedKFold(10, shuffle=True, random_state=3),
        )
        quick = cb.cross_validate_closed_form(model, X, y, cv=splitter, sample_weight=weight)
        for number, (train, test) in enumerate(splitter.split(X, y)):
            slow = clone(model).fit(X[train], y[train], weight[train])
            counted = test[weight[test] > 0]
            found = slow.predict_log_proba(X[counted])
            assert_allclose(quick.log_probability[counted], found, rtol=1e-9, atol=1e-9)
            wrong = slow.predict(X[counted]) != y[counted]
            assert quick.error[number] == pytest.approx(np.average(wrong, weights=weight[counted]), abs=1e-12)

    def test_groups_are_left_out_one_by_one(self, rule):
        X, y = table()
        groups = np.arange(400) % 7
        quick = cb.cross_validate_closed_form(cb.GaussianNB(rule=rule), X, y, groups=groups)
        assert_array_equal(quick.fold, groups)
        slow = cb.GaussianNB(rule=rule).fit(X[groups != 2], y[groups != 2])
        assert_allclose(quick.log_probability[groups == 2], slow.predict_log_proba(X[groups == 2]), rtol=1e-9)


def test_what_cannot_be_added_up_says_so():
    X, y = table()
    ml = cb.GaussianNB(rule="ml").fit(X, y)
    for call, message in (
        (lambda: cb.GaussianNB().fit(X, y).merge(cb.GaussianNB().fit(X, y)), "no closed form"),
        (lambda: ml.merge(cb.GaussianNB(rule="map").fit(X, y)), "different parameters.*rule"),
        (lambda: ml.merge(cb.GaussianNB(rule="ml").fit(X[y != "x"], y[y != "x"])), "different classes"),
        (
            lambda: ml.merge(cb.GaussianNB(rule="ml").fit(pd.DataFrame(X, columns=list("abcde")), y)),
            "different columns",
        ),
        (lambda: ml.forget(np.tile(X, (2, 1)), np.tile(y, 2)), "more rows to forget"),
        (lambda: cb.cross_validate_closed_form(cb.GaussianNB(), X, y), "no closed form"),
        (lambda: cb.cross_validate_closed_form(cb.NaiveBayes(rule="ml"), X, y), "bins of numbers"),
        (
            lambda: cb.cross_validate_closed_form(cb.QuadraticDiscriminantAnalysis(rule="ml"), *gappy()),
            "full covariances with missing values, have no closed form",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    half = KFold(2).split(X)
    with pytest.raises(ValueError, match="no fold"):
        cb.cross_validate_closed_form(ml, X, y, cv=type("Once", (), {"split": lambda *_: [next(half)]})())


def test_ten_folds_cost_less_than_half_of_ten_fits():
    """One pass for the sums and one to judge every row, however many folds. (A fit alone judges no row.)"""
    from time import process_time  # of this process alone, whatever else the machine does

    rng = generator(0)
    X, y = rng.normal(size=(60_000, 20)), rng.integers(0, 3, 60_000)

    def seconds(run):
        began = process_time()
        run()
        return process_time() - began

    for model in (cb.GaussianNB(rule="ml"), cb.LinearDiscriminantAnalysis(rule="ml")):
        runs = [
            (
                seconds(lambda model=model: model.fit(X, y)),
                seconds(lambda model=model: model.predict_proba(X)),
                seconds(lambda model=model: cb.cross_validate_closed_form(model, X, y, cv=10)),
            )
            for _ in range(7)
        ]
        fit, judged, folds = np.min(runs, axis=0)
        assert folds < 0.5 * (10 * fit + judged)


class TestWhatIsNoSum:
    """Arithmetic is refused, or right, where statistics are more than sums over rows."""

    def test_expected_statistics_are_not_added_up(self):
        X, y = gappy()
        models = [
            cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X[rows], y[rows])
            for rows in (slice(150), slice(150, None))
        ]
        with pytest.raises(ValueError, match="the model is no sum over rows"):
            models[0].merge(models[1])
        left = models[0].forget(X[:5], y[:5])  # no sum: trained on the rows that remain
        assert verify_receipt(left.forgetting_receipt_, left, remaining=(X[5:150], y[5:150])).passed
        whole = ~np.isnan(X).any(axis=1)
        with pytest.raises(ValueError, match="have no additive statistics and cannot be removed"):
            cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X[whole], y[whole]).forget(X[:5], y[:5])

    def test_balanced_weights_are_refused(self):
        X, y = table()
        model = cb.GaussianNB(rule="ml", class_weight="balanced").fit(X, y)
        for call in (
            lambda: model.merge(model),
            lambda: model.forget(X[:3], y[:3]),
            lambda: cb.cross_validate_closed_form(model, X, y),
        ):
            with pytest.raises(ValueError, match="balanced"):
                call()

    def test_rows_that_were_never_there_cannot_be_forgotten(self):
        model = cb.CategoricalNB(rule="ml").fit([[0, 0], [0, 1], [1, 1], [1, 0]], list("aabb"))
        with pytest.raises(ValueError, match="cannot all have been part of the training"):
            model.forget([[1, 1]], ["a"])

    def test_sites_that_each_lack_a_class_can_be_merged(self):
        X, y = table()
        parts = [
            cb.GaussianNB(rule="ml").partial_fit(X[mine], y[mine], classes=["x", "y", "z"])
            for mine in (y == "x", y != "x")
        ]
        merged, whole = parts[0].merge(parts[1]), cb.GaussianNB(rule="ml").fit(X, y)
        assert_allclose(merged.predict_proba(X), whole.predict_proba(X), atol=1e-9)

    def test_parameters_are_compared_by_value(self):
        X, y = table()
        alphas = np.ones((2, 5))
        alphas[1, 3] = 2.0
        models = [cb.CategoricalNB(rule="ml", alpha=alpha).fit(X, y) for alpha in alphas]
        with pytest.raises(ValueError, match="different parameters cannot be merged: alpha"):
            models[0].merge(models[1])
        seeded = [
            cb.CategoricalNB(rule="ml", random_state=seed, n_jobs=seed + 1).fit(X, y) for seed in (0, 1)
        ]
        assert seeded[0].merge(seeded[1]).class_count_.sum() == 800
        with pytest.raises(ValueError, match="cannot be merged with a str"):
            seeded[0].merge("x")

    def test_training_options_that_matter_must_be_equal(self):
        X, y = table()
        plain = cb.GaussianNB(rule="ml").fit(X, y)
        batches, tempered = (
            clone(plain).set_params(training=options).fit(X, y)
            for options in (cb.TrainingOptions(batch_size=16), cb.TrainingOptions(temperature=2.0))
        )
        assert plain.merge(batches).class_count_.sum() == 800
        with pytest.raises(ValueError, match="different parameters cannot be merged: temperature"):
            plain.merge(tempered)

    def test_folds_of_a_tempered_model_are_tempered(self):
        X, y = table()
        model, splitter = (
            cb.GaussianNB(rule="ml", training=cb.TrainingOptions(temperature=2.0)),
            StratifiedKFold(4),
        )
        quick = cb.cross_validate_closed_form(model, X, y, cv=splitter)
        train, test = next(splitter.split(X, y))
        assert_allclose(
            quick.log_probability[test],
            clone(model).fit(X[train], y[train]).predict_log_proba(X[test]),
            rtol=1e-9,
        )

    def test_folds_that_leave_too_little_say_so(self):
        X, y = table()
        groups = np.arange(400) % 3
        lonely = np.where(groups[:, None] == 1, X[:, :1], np.nan)
        with pytest.raises(ValueError, match="column 'x5' is all missing in the rows without fold 1"):
            cb.cross_validate_closed_form(cb.GaussianNB(rule="ml"), np.hstack([X, lonely]), y, groups=groups)
        with pytest.raises(ValueError, match="rows without fold 0 are not enough: no rows"):
            cb.cross_validate_closed_form(cb.GaussianNB(rule="ml"), X, y, groups=(y != "x").astype(int))
        with pytest.raises(ValueError, match="fold 1 has no row with a positive weight"):
            cb.cross_validate_closed_form(
                cb.GaussianNB(rule="ml"), X, y, groups=groups, sample_weight=(groups != 1).astype(float)
            )
        by_three = cb.cross_validate_closed_form(
            cb.GaussianNB(rule="ml"), X, y, cv=GroupKFold(3), groups=np.arange(400) % 9
        )
        assert len(by_three.error) == 3
