"""Decisions, reasons, generative uses and exact arithmetic, for every estimator that offers them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.datasets import load_file, load_penguins
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import seed_of
from calibayes.estimators.interface.splits import held_out_masks
from calibayes.learn import NoGain
from calibayes.tables.read import read_array
from tests.contract.test_estimators import table
from tests.contract.test_scikit_learn import GENERATIVE, ITERATIVE, nothing_hidden

EVERY = pytest.mark.parametrize("estimator", ITERATIVE, ids=lambda estimator: type(estimator).__name__)


def gappy(seed=0):
    X, y = table(300, seed)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    return X, y


class TestDecisions:
    def test_costs_shift_the_decision(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        posterior, costs = model.predict_proba(X), np.array([[0, 1, 1], [9, 0, 1], [1, 1, 0.0]])
        expected = model.classes_[np.argmin(posterior @ costs, axis=1)]
        assert_array_equal(model.decide(X, costs=costs).data, expected)
        assert_array_equal(model.set_params(costs=costs).predict(X), expected)
        even = 1 - np.eye(3)
        assert_array_equal(model.decide(X, costs=even).data, model.set_params(costs=None).predict(X))

    @pytest.mark.parametrize(
        ("costs", "message"),
        [
            (np.ones((2, 3)), "3 classes by 3 decisions"),
            (-np.ones((3, 3)), "not negative"),
            (np.full((3, 3), np.nan), "finite"),
            (np.eye(3), "must not cost less than the right one"),
        ],
    )
    def test_bad_costs(self, costs, message):
        X, y = table()
        with pytest.raises(ValueError, match=message):
            cb.GaussianNB(rule="ml").fit(X, y).decide(X, costs=costs)

    def test_abstaining_is_a_mask_and_never_a_label(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        decided = model.decide(X, least_posterior=0.6)
        assert_array_equal(decided.mask, model.predict_proba(X).max(axis=1) < 0.6)
        assert set(decided.compressed()) <= set(model.classes_)
        assert np.mean(decided.compressed() == y[~decided.mask]) > model.score(X, y)

    def test_outliers_are_abstained_from_as_often_as_asked(self):
        X, y = table(2000)
        model = cb.GaussianNB(rule="ml").fit(X[:1000], y[:1000])
        threshold = model.outlier_threshold(X[1000:1500], share=0.05)
        assert np.mean(model.decide(X[1500:], least_density=threshold).mask) == pytest.approx(0.05, abs=0.03)
        assert model.decide(X[:1] + 100, least_density=threshold).mask.all()
        assert model.outlier_threshold(X[:10], share=0.05) == -np.inf

    def test_thresholds(self):
        X, y = table()
        model = cb.GaussianNB().fit(X, y)
        assert np.mean(model.decide(X, thresholds=[0.1, 1.0, 1.0]).data == "x") > np.mean(
            model.predict(X) == "x"
        )
        with pytest.raises(ValueError, match="3 positive numbers"):
            model.decide(X, thresholds=[1.0, 0.0, 1.0])

    @EVERY
    def test_shifted_priors(self, estimator):
        X, y = table()
        model = clone(estimator).set_params(rule="ml").fit(X, y)
        shifted = model.with_priors([0.98, 0.01, 0.01])
        ratio = np.array([0.98, 0.01, 0.01]) / np.exp(model.parameters_["class_prior"]["log_probability"])
        expected = model.predict_proba(X) * ratio
        assert_allclose(shifted.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)

    def test_temperature_is_found_on_held_out_rows(self):
        X, y = table(600)
        options = {"random_state": 0, "max_iter": 64, "rule": "ml"}
        plain_training, auto = (
            cb.TrainingOptions(validation_fraction=0.3, refit=False, temperature=temperature)
            for temperature in (1.0, "auto")
        )
        wide = np.repeat(X, 8, axis=1)  # the same column eight times: naive Bayes is far too sure
        plain = cb.GaussianNB(training=plain_training, **options).fit(wide, y)
        model = cb.GaussianNB(training=auto, **options).fit(wide, y)
        assert model.temperature_ > 2
        fresh, labels = table(600, seed=0)[0][:50], table(600, seed=0)[1][:50]
        codes = np.searchsorted(model.classes_, labels)
        losses = [
            -m.predict_log_proba(np.repeat(fresh, 8, axis=1))[np.arange(50), codes].mean()
            for m in (model, plain)
        ]
        assert losses[0] < losses[1]
        with pytest.raises(ValueError, match="needs held-out rows: set validation_fraction"):
            cb.GaussianNB(training=cb.TrainingOptions(temperature="auto")).fit(X, y)

    def test_costs_pay_on_held_out_rows(self, data_file):
        """Missing an illness costs five times as much as a false alarm."""
        data = load_file(data_file("indian-liver"), "target")
        codes = np.unique(data.target, return_inverse=True)[1]
        costs = np.array([[0.0, 5.0], [1.0, 0.0]])
        spent = {"plain": 0.0, "costs": 0.0}
        for _, test in StratifiedKFold(5, shuffle=True, random_state=0).split(codes, codes):
            held = np.isin(np.arange(len(codes)), test)
            model = cb.NaiveBayes(stop=NoGain(1e-3)).fit(data.columns.rows(~held), codes[~held])
            rows = data.columns.rows(held)
            for name, decided in (
                ("plain", model.predict(rows)),
                ("costs", model.decide(rows, costs=costs).data),
            ):
                spent[name] += costs[codes[held], decided].sum()
        assert spent["costs"] < spent["plain"]


class TestReasons:
    @EVERY
    @pytest.mark.parametrize("rule", ["ml", "rc"])
    def test_contributions_sum_to_the_log_odds(self, estimator, rule):
        X, y = gappy() if get_tags(estimator).input_tags.allow_nan else table()
        model = clone(estimator).set_params(rule=rule, max_iter=5, stop=None).fit(X, y)
        log_posterior = model.predict_log_proba(X)
        for against in (None, "y"):
            reasons = model.explain(X, against=against)
            chosen, other = (
                np.searchsorted(model.classes_, labels) for labels in (reasons.chosen, reasons.other)
            )
            rows = np.arange(len(X))
            expected = log_posterior[rows, chosen] - log_posterior[rows, other]
            assert_allclose(reasons.log_odds, expected, atol=1e-10, rtol=1e-10)
            assert (chosen != other).all()
        assert reasons.names[0] == "class prior"

    def test_a_missing_cell_is_no_reason(self):
        X, y = gappy()
        model = cb.LinearDiscriminantAnalysis().fit(X, y)
        reasons = model.explain(X)
        assert_allclose(reasons.contributions[:, 1:][np.isnan(X)], 0.0, atol=1e-12)

    def test_frames_and_overall_view(self):
        penguins = load_penguins()
        reasons = cb.NaiveBayes(rule="ml").fit(penguins.columns, penguins.target).explain(penguins.columns)
        for backend in ("pandas", "polars"):
            frame = reasons.frame(backend)
            assert list(frame.columns)[:4] == ["chosen", "other", "log_odds", "class prior"]
            assert len(frame) == 344
        sizes = list(reasons.overall().values())
        assert sizes == sorted(sizes, reverse=True)
        assert "island" in repr(reasons)

    def test_unknown_class(self):
        X, y = table()
        with pytest.raises(ValueError, match="'w' is not among the classes"):
            cb.GaussianNB(rule="ml").fit(X, y).explain(X, against="w")

    def test_pictures(self, tmp_path):
        from calibayes.plots import plot_overall, plot_reasons, plot_trade_off

        X, y = table()
        reasons = cb.GaussianNB(rule="ml").fit(X, y).explain(X)
        assert len(plot_reasons(reasons, 3, most=2).get_yticklabels()) == 3
        plot_overall(reasons).figure.savefig(tmp_path / "overall.png")
        path = cb.TradeOffCV(lams=[1.0, 0.5]).fit(X, y)
        plot_trade_off(path).figure.savefig(tmp_path / "path.svg")
        assert (tmp_path / "overall.png").stat().st_size > 1000


class TestGenerating:
    @EVERY
    def test_classes_and_known_cells_are_kept(self, estimator):
        X, y = table()
        X = np.where(X > 1, 1.0, 0.0) if isinstance(estimator, cb.BernoulliNB) else X
        model = clone(estimator).set_params(rule="ml").fit(X, y)
        given = {1: X[0, 1]} if get_tags(estimator).input_tags.allow_nan else {}
        rows, classes = model.sample(30, y="z", given=given, random_state=0)
        assert set(classes) == {"z"}
        for column, value in given.items():
            assert_allclose(rows[:, column].astype(float), value, atol=1e-9)
        _, classes = model.sample(20, y=["x", "y"] * 10, random_state=0)
        assert classes.tolist() == ["x", "y"] * 10

    def test_full_gaussians_are_drawn_given_known_cells(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(500, 2)) @ np.array([[1.0, 0.9], [0.0, 0.4]])
        y = np.arange(500) % 2
        model = cb.LinearDiscriminantAnalysis(rule="ml").fit(X, y)
        rows, _ = model.sample(4000, y=0, given={0: 2.0}, random_state=0)
        mean, covariance = model.means_[0], model.covariance_
        slope = covariance[1, 0] / covariance[0, 0]
        assert rows[:, 1].mean() == pytest.approx(mean[1] + slope * (2.0 - mean[0]), abs=0.03)
        assert rows[:, 1].var() == pytest.approx(covariance[1, 1] - slope * covariance[0, 1], rel=0.1)

    def test_classes_are_drawn_given_known_cells(self):
        X, y = load_wine(return_X_y=True)
        model = cb.GaussianNB(rule="ml").fit(X, y)
        row = np.full((1, 13), np.nan)
        row[0, 6] = 0.8
        _, classes = model.sample(3000, given={6: 0.8}, random_state=0)
        assert_allclose(np.bincount(classes, minlength=3) / 3000, model.predict_proba(row)[0], atol=0.04)

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
    def test_rows_come_back_as_they_went_in(self, library):
        rng = np.random.default_rng(0)
        frame = library(
            {
                "age": rng.integers(20, 60, 90),
                "dose": rng.normal(size=90),
                "sex": ["f", "m", "f"] * 30,
                "old": [True, False] * 45,
            }
        )
        model = cb.NaiveBayes(rule="ml").fit(frame, np.arange(90) % 3)
        rows, _ = model.sample(7, random_state=0)
        assert type(rows) is type(frame)
        assert list(rows.columns) == list(frame.columns)
        assert [str(kind) for kind in rows.dtypes] == [str(kind) for kind in frame.dtypes]

    def test_missing_cells_are_filled_by_their_expectation(self):
        X, y = gappy()
        model = cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y)
        filled = model.fill(X)
        known = ~np.isnan(X)
        assert_array_equal(filled[known], X[known])
        row = int(np.flatnonzero(~known.all(axis=1))[0])
        here, posterior = known[row], model.predict_proba(X[[row]])[0]
        expected = np.zeros((~here).sum())
        for c in range(3):
            covariance, mean = model.covariance_[c], model.means_[c]
            slopes = covariance[np.ix_(~here, here)] @ np.linalg.inv(covariance[np.ix_(here, here)])
            expected += posterior[c] * (mean[~here] + slopes @ (X[row, here] - mean[here]))
        assert_allclose(filled[row, ~here], expected, atol=1e-10)

    def test_missing_levels_are_filled_by_the_most_probable(self):
        penguins = load_penguins()
        frame = pd.DataFrame(dict(zip(penguins.columns.names, penguins.columns.content, strict=True)))
        model = cb.NaiveBayes(rule="ml").fit(frame, penguins.target)
        filled = model.fill(frame)
        assert not filled.isna().any().any()
        assert set(filled["sex"]) == {"male", "female"}
        pd.testing.assert_frame_equal(filled[~frame.isna().any(axis=1)], frame.dropna(), check_dtype=False)

    def test_bad_requests(self):
        X, y = table()
        model = cb.GaussianNB(rule="ml").fit(X, y)
        for call, message in (
            (lambda: model.sample(0), "n_samples"),
            (lambda: model.sample(3, y="w"), "not among the classes"),
            (lambda: model.sample(3, given={"height": 1.0}), "no column 'height'"),
        ):
            with pytest.raises(ValueError, match=message):
                call()


SHAPED = cb.NaiveBayes | cb.KernelNB | cb.TreeAugmentedNB
CLOSED = [nothing_hidden(clone(estimator)) for estimator in GENERATIVE if not isinstance(estimator, SHAPED)]
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
        weight = np.random.default_rng(0).uniform(0.5, 2.0, 400)
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
        weight = np.random.default_rng(1).integers(0, 3, 400).astype(float) if weighted else np.ones(400)
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

    rng = np.random.default_rng(0)
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


class TestTradeOff:
    def test_the_shared_path_is_the_path_of_each_fold(self):
        X, y = table()
        model = cb.TradeOffCV(estimator=cb.NaiveBayes(stop=None, max_iter=4), lams=[1.0, 0.6, 0.2], cv=3).fit(
            X, y
        )
        codes = np.searchsorted(["x", "y", "z"], y)
        rows = Rows(read_array(X), codes, np.ones(len(y)), np.arange(len(y)))
        masks = held_out_masks(3, rows, len(y), seed_of(None))
        assert len(masks) == 3
        for fold, mask in enumerate(masks):
            alone = cb.NaiveBayes(rule="ml").fit(X[~mask], y[~mask])
            loss = -alone.predict_log_proba(X[mask])[np.arange(mask.sum()), codes[mask]].mean()
            assert model.cv_results_["log_loss"][0, fold] == pytest.approx(loss, rel=1e-9)

    def test_the_best_value_wins(self):
        X, y = table()
        for scoring in ("log_loss", "error"):
            model = cb.TradeOffCV(estimator=cb.GaussianNB(max_iter=20), scoring=scoring).fit(X, y)
            means = model.cv_results_[scoring].mean(axis=1)
            assert model.lam_ == model.cv_results_["lam"][np.argmin(means)]
            assert model.estimator_.rule.lam == model.lam_

    def test_bad_values(self):
        X, y = table()
        for options in ({"lams": []}, {"lams": [2.0]}, {"scoring": "auc"}):
            with pytest.raises(ValueError, match="lam"):
                cb.TradeOffCV(**options).fit(X, y)


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
        with pytest.raises(ValueError, match="the model is no sum over rows"):
            models[0].forget(X[:5], y[:5])
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


class TestShiftedPriors:
    @EVERY
    def test_the_frequencies_of_training_change_nothing(self, estimator):
        X, y = table()
        model = clone(estimator).set_params(max_iter=10, stop=None).fit(X, y)
        shares = np.array([np.mean(y == label) for label in model.classes_])
        assert_allclose(model.with_priors(shares).predict_proba(X), model.predict_proba(X), atol=1e-9)

    def test_temperature_does_not_weaken_the_shift(self):
        X, y = table()
        model = cb.GaussianNB(rule="ml", training=cb.TrainingOptions(temperature=3.0)).fit(X, y)
        shares = np.array([np.mean(y == label) for label in model.classes_])
        new = np.array([0.8, 0.1, 0.1])
        moved = model.with_priors(new).predict_log_proba(X) - model.predict_log_proba(X)
        expected = np.log(new / shares)
        assert_allclose(moved[:, 0] - moved[:, 1], expected[0] - expected[1], atol=1e-9)

    def test_a_shifted_model_is_for_predicting(self):
        X, y = table()
        shifted = cb.GaussianNB(rule="ml").fit(X, y).with_priors([0.8, 0.1, 0.1])
        for call in (
            lambda: shifted.merge(shifted),
            lambda: shifted.forget(X[:2], y[:2]),
            lambda: shifted.partial_fit(X, y),
            lambda: shifted.with_priors([0.2, 0.4, 0.4]),
        ):
            with pytest.raises(ValueError, match="class priors of this model were replaced"):
                call()
        assert shifted.fitted_.has_shifted_priors
        assert not shifted.fit(X, y).fitted_.has_shifted_priors


def test_reasons_do_not_depend_on_where_zero_is():
    X, y = table()
    for estimator in (cb.LinearDiscriminantAnalysis, cb.GenerativeLogisticRegression):
        here, there = (estimator(rule="ml").fit(X + by, y).explain(X + by) for by in (0.0, 1e4))
        assert_allclose(there.contributions, here.contributions, atol=1e-6)
        odds = estimator(rule="ml").fit(X + 1e4, y).predict_log_proba(X + 1e4)
        assert_allclose(
            there.log_odds, np.sort(odds, axis=1)[:, -1] - np.sort(odds, axis=1)[:, -2], atol=1e-8
        )


def test_labels_to_sample_are_checked_as_they_are():
    X, y = table()
    model = cb.GaussianNB(rule="ml").fit(X, y)
    for labels in ("xylophone", 1, ["x", "y"]):
        with pytest.raises(ValueError, match="not among the classes"):
            model.sample(3, y=labels)


def test_whole_numbers_stay_within_their_type():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (200, 2)).astype(np.uint8), np.arange(200) % 2
    rows, _ = cb.GaussianNB(rule="ml").fit(X, y).sample(500, random_state=0)
    assert rows.dtype == np.uint8
    assert rows.max() < 20
    frame = pd.DataFrame({"whole": rng.integers(0, 9, 90), "real": rng.normal(size=90)})
    drawn, _ = cb.GaussianNB(rule="ml").fit(frame, np.arange(90) % 2).sample(5, random_state=0)
    assert [str(kind) for kind in drawn.dtypes] == ["int64", "float64"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_booleans_with_gaps_are_flags(library):
    cells = [True, False, None] * 30
    frame = library(
        {
            "b": pd.array(cells, dtype="boolean") if library is pd.DataFrame else cells,
            "c": [1.0, 2.0, 4.0] * 30,
        }
    )
    y = np.arange(90) % 2
    model = cb.NaiveBayes(rule="ml", kinds={"b": "bernoulli", "c": "poisson"}).fit(frame, y)
    assert np.isfinite(model.predict_log_proba(frame)).all()
    rows, _ = model.sample(4, given={"c": 2.0}, random_state=0)
    assert type(rows) is type(frame)


def test_families_that_nothing_is_given_of_do_not_hinder_sampling():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"f": rng.normal(size=90), "p": rng.poisson(3, 90), "q": rng.poisson(5, 90)})
    model = cb.NaiveBayes(rule="ml", kinds={"f": "gaussian", "p": "multinomial", "q": "multinomial"})
    model.fit(frame, np.arange(90) % 2)
    rows, _ = model.sample(5, given={"f": 0.3}, random_state=0)
    assert_allclose(rows["f"], 0.3)
    with pytest.raises(ValueError, match="only be given all together"):
        model.sample(5, given={"p": 3.0})
    gaps = frame.assign(f=[np.nan, *frame["f"][1:]])
    assert not model.fill(gaps).isna().any().any()


def test_trade_off_with_weights_of_any_kind():
    X, y = table()
    model = cb.TradeOffCV(lams=[1.0, 0.5], cv=3)
    model.fit(X, y, sample_weight=2.0)
    model.fit(X, y, sample_weight=(np.arange(400) % 4 > 0).astype(float))
    assert model.cv_results_["error"].shape == (2, 3)
