"""BayesClassifier and PosteriorMixture beyond scikit-learn's checks."""

import pickle

import numpy as np
import pandas as pd
import pytest
from calibayes.estimators.interface.row_order import content_hashes as digest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_iris, make_classification

import calibayes as cb
from calibayes import BayesClassifier, PosteriorMixture, SkippedMemberWarning
from calibayes.estimators import bar, mixing, splits
from calibayes.estimators.ensemble.standard_members import standard_members
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.splits import assign_folds as dealt
from calibayes.estimators.interface.splits import trial
from calibayes.families import Diagonal, Gaussian, NormalInverseWishart
from calibayes.tables.read import read_array, read_frame


def frame(n=160, seed=0):
    """Numbers, text, flags and gaps; the second number alone, whether it is there, and the text say something."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    columns = {
        "noise": rng.normal(size=n),
        "size": np.where(rng.random(n) < 0.2 * (y == 2), np.nan, rng.normal(size=n) + y),
        "color": np.where(rng.random(n) < 0.7, np.array(["red", "green", "blue"])[y], "red"),
        "flag": rng.random(n) < 0.5,
    }
    return pd.DataFrame(columns), np.array(["x", "y", "z"])[y]


@pytest.fixture(scope="module")
def fitted():
    X, y = frame()
    return BayesClassifier().fit(X, y)


class TestMixture:
    def test_probabilities_are_the_weighted_average_of_the_members(self, fitted):
        X, _ = frame(seed=1)
        average = sum(
            fitted.weights_[name] * model.predict_proba(X) for name, model in fitted.models_.items()
        )
        average = average + fitted.weights_["class frequencies"] * fitted.class_prior_
        assert_allclose(fitted.predict_proba(X), average, atol=1e-12)
        assert sum(fitted.weights_.values()) == pytest.approx(1.0)
        assert all(
            (weight > 0) == (name in fitted.models_) for name, weight in list(fitted.weights_.items())[:-1]
        )

    def test_out_of_fold_it_has_no_more_log_loss_than_any_member(self, fitted):
        losses = [path.log_loss[path.best] for path in fitted.paths_.values()]
        assert fitted.out_of_fold_log_loss_ <= min(losses) + 1e-9
        X, y = frame(600, seed=2)
        assert fitted.score(X, y) > 0.7

    def test_shares_sum_to_one_and_are_those_of_the_decided_class(self, fitted):
        X, _ = frame(seed=1)
        shares = fitted.shares(X)
        assert shares.shape == (len(X), len(fitted.models_) + 1)
        assert_allclose(shares.sum(axis=1), 1.0)
        best = fitted.predict_proba(X).argmax(axis=1)
        name, model = next(iter(fitted.models_.items()))
        own = model.predict_proba(X)[np.arange(len(X)), best]
        expected = fitted.weights_[name] * own / fitted.predict_proba(X).max(axis=1)
        assert_allclose(shares[:, 0], expected, rtol=1e-9)

    def test_any_models_can_be_mixed(self):
        X, y = load_iris(return_X_y=True)
        models = [
            ("closed", cb.GaussianNB(rule="ml")),
            ("path", cb.QuadraticDiscriminantAnalysis()),
            ("cv", cb.TradeOffCV()),
            ("components", cb.MixtureDiscriminantAnalysis(n_components=2)),
        ]
        model = PosteriorMixture(models=models).fit(X, y)
        assert list(model.weights_) == ["closed", "path", "cv", "components", "class frequencies"]
        assert np.isnan(model.paths_["closed"].stop)
        assert model.paths_["path"].stop >= 0
        assert all(np.isnan(model.paths_[name].stop) for name in ("cv", "components"))
        assert model.score(X, y) > 0.95

    def test_families_can_be_given(self):
        X, y = load_iris(return_X_y=True)
        own = ("round", Gaussian(Diagonal(), prior=NormalInverseWishart()))
        model = BayesClassifier(families=["tied", own, ("nb", cb.GaussianNB(rule="ml"))]).fit(X, y)
        assert list(model.weights_) == ["tied", "round", "nb", "class frequencies"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"families": ["tied", "forest"]}, "unknown member 'forest'"),
            ({"families": ["tied", "tied"]}, "differ"),
            ({"families": []}, "at least one member"),
            ({"families": [("a", 3)]}, "must be a family or an estimator"),
            ({"families": [("class frequencies", cb.GaussianNB())]}, "differ"),
            ({"density": "none"}, "not among the members"),
            ({"cv": 1}, "cv must be a whole number from 2 on"),
            ({"time_limit": -1}, "time_limit"),
            ({"n_jobs": 0}, "n_jobs"),
            ({"cv": [(np.arange(100), np.arange(100, 150))]}, "no rows .or no weight. in class '2'"),
        ],
    )
    def test_what_is_wrong_is_said(self, options, message):
        with pytest.raises(ValueError, match=message):
            BayesClassifier(**options).fit(*load_iris(return_X_y=True))


class TestReasons:
    @pytest.mark.parametrize("priors", [None, [0.6, 0.3, 0.1]])
    def test_contributions_sum_to_the_log_odds_of_the_mixture(self, fitted, priors):
        X, _ = frame(seed=1)
        model = fitted if priors is None else fitted.with_priors(priors)
        reasons = model.explain(X)
        log_posterior = model.predict_log_proba(X)
        rows = np.arange(len(X))
        chosen, other = (np.searchsorted(model.classes_, c) for c in (reasons.chosen, reasons.other))
        assert_array_equal(chosen, log_posterior.argmax(axis=1))
        assert_allclose(reasons.log_odds, log_posterior[rows, chosen] - log_posterior[rows, other], atol=1e-9)
        assert reasons.names[:5] == ("class prior", *X.columns)

    def test_of_one_member_they_are_that_member_s_own(self):
        X, y = frame()
        model = BayesClassifier(families=["tied"]).fit(X, y)
        model.weights_ = {"tied": 1.0 - 1e-300, "class frequencies": 1e-300}
        own = model.models_["tied"].explain(X)
        reasons = model.explain(X)
        assert reasons.names == own.names
        assert_allclose(reasons.contributions, own.contributions, atol=1e-9)

    def test_what_says_nothing_contributes_little(self, fitted):
        overall = fitted.explain(frame(400, seed=3)[0]).overall()
        assert overall["noise"] < overall["size"]

    def test_a_class_can_be_named(self, fitted):
        X, _ = frame(seed=1)
        assert set(fitted.explain(X, against="x").other) == {"x"}
        with pytest.raises(ValueError, match="not among the classes"):
            fitted.explain(X, against="w")


class TestDecisions:
    def test_costs_and_thresholds_and_abstaining(self, fitted):
        X, y = frame(seed=1)
        dear = np.ones((3, 3)) - np.eye(3)
        dear[0, 1:] = 50.0
        assert np.mean(fitted.decide(X, costs=dear) == "x") > np.mean(fitted.predict(X) == "x")
        assert_array_equal(
            BayesClassifier(costs=dear).fit(*frame()).predict(X), fitted.decide(X, costs=dear).data
        )
        decided = fitted.decide(X, least_posterior=0.8)
        assert 0 < decided.mask.mean() < 1
        kept = ~decided.mask
        assert np.mean(decided.data[kept] == y[kept]) > np.mean(fitted.predict(X) == y)
        strange = X.assign(noise=1e6, size=-1e6)
        threshold = fitted.outlier_threshold(X, 0.05)
        assert (
            fitted.decide(strange, least_density=threshold).mask.mean()
            >= fitted.decide(X, least_density=threshold).mask.mean()
        )

    def test_shifted_priors_multiply_the_odds(self, fitted):
        X, _ = frame(seed=1)
        new = np.array([0.7, 0.2, 0.1])
        expected = fitted.predict_proba(X) * new / fitted.class_prior_
        shifted = fitted.with_priors(new)
        assert_allclose(shifted.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
        back = shifted.with_priors(fitted.class_prior_)
        assert_allclose(back.predict_proba(X), fitted.predict_proba(X), atol=1e-12)


class TestDensity:
    def test_it_is_that_of_the_kernel_member_before_calibration(self, fitted):
        X, _ = frame(seed=1)
        family = next(iter(fitted.density_.fitted_.binding.families.items()))
        encoder = fitted.density_.fitted_.binding.encoders[family[0]]
        plain = cb.GenerativeClassifier(families=[(*family, cb.every, encoder)], rule="ml").fit(*frame())
        assert_allclose(fitted.score_samples(X), plain.score_samples(X), rtol=1e-9)

    def test_samples_look_like_the_table_gaps_too(self, fitted):
        X, y = frame(3000)
        rows, classes = fitted.sample(3000, random_state=0)
        assert list(rows.columns) == list(X.columns)
        assert rows["size"].isna().mean() == pytest.approx(X["size"].isna().mean(), abs=0.03)
        assert rows["size"].mean() == pytest.approx(X["size"].mean(), abs=0.15)
        assert np.mean(classes == "x") == pytest.approx(np.mean(y == "x"), abs=0.08)

    def test_given_cells_stay_and_missing_ones_are_filled(self, fitted):
        rows, _ = fitted.sample(50, given={"color": "blue"}, random_state=0)
        assert set(rows["color"]) == {"blue"}
        assert rows["noise"].notna().all()
        X, _ = frame()
        filled = fitted.fill(X)
        known = X["size"].notna()
        assert filled["size"].notna().all()
        assert_array_equal(filled["size"][known], X["size"][known])

    def test_another_member_can_be_asked(self):
        X, y = load_iris(return_X_y=True)
        model = BayesClassifier(families=["tied", ("nb", cb.GaussianNB())], density="nb").fit(X, y)
        plain = cb.GaussianNB(rule="ml").fit(X, y)
        assert_allclose(model.score_samples(X), plain.score_samples(X), rtol=1e-9)


class TestTraining:
    def test_jobs_and_repetition_leave_no_trace(self):
        X, y = make_classification(3000, 40, n_informative=8, random_state=0)
        models = [BayesClassifier(n_jobs=jobs, families=["kernel", "tied"]).fit(X, y) for jobs in (1, 2, 1)]
        for other in models[1:]:
            assert_array_equal(models[0].predict_log_proba(X), other.predict_log_proba(X))
        assert models[0].weights_ == models[1].weights_

    def test_the_order_of_the_rows_leaves_no_trace(self):
        X, y = frame()
        order = np.random.default_rng(0).permutation(len(y))
        one, two = BayesClassifier().fit(X, y), BayesClassifier().fit(X.iloc[order], y[order])
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)

    def test_a_mixture_of_nothing_is_refused(self):
        with pytest.raises(ValueError, match="at least one member"):
            PosteriorMixture(models=[]).fit(*frame())

    def test_seeds_matter(self):
        X, y = frame()
        one, two = (BayesClassifier(random_state=seed).fit(X, y) for seed in (1, 2))
        assert one.weights_ != two.weights_

    def test_copies_predict_the_same(self, fitted):
        X, _ = frame(seed=1)
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))

    @pytest.mark.parametrize("sizes", [(40, 2), (40, 1), (1, 1), (2, 2, 2)])
    def test_classes_of_one_or_two_rows(self, sizes):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(len(sizes)), sizes)
        X = rng.normal(size=(len(y), 3)) + y[:, None]
        model = BayesClassifier().fit(X, y)
        assert np.isfinite(model.predict_log_proba(X)).all()

    def test_columns_that_say_nothing(self):
        y = np.arange(40) % 2
        X = pd.DataFrame({"same": np.ones(40), "none": np.nan, "one": [1.0] + [np.nan] * 39, "text": "a"})
        model = BayesClassifier().fit(X, y)
        assert_allclose(model.predict_proba(X), 0.5, atol=0.1)
        assert np.isfinite(model.score_samples(X)).all()
        model.sample(3, random_state=0)

    def test_an_interrupted_fit_leaves_the_model_as_it_was(self, monkeypatch):
        X, y = frame()
        model = BayesClassifier(families=["tied", "kernel"]).fit(X, y)
        before = model.predict_proba(X)

        def interrupt(*args, **kwargs):
            raise KeyboardInterrupt

        monkeypatch.setattr(mixing, "mixture_weights", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X.iloc[:50], y[:50])
        assert_array_equal(model.predict_proba(X), before)

    def test_a_time_limit_is_kept_and_said(self):
        X, y = frame()
        with pytest.warns(SkippedMemberWarning, match="time limit"):
            model = BayesClassifier(time_limit=0.0).fit(X, y)
        assert list(model.models_) == ["near"]
        assert set(model.skipped_) == {"tied", "full", "kernel"}
        with pytest.warns(SkippedMemberWarning, match="time limit"):
            model = BayesClassifier(families=["tied", "full"], time_limit=0.0).fit(X, y)
        assert model.paths_["tied"].total_step.tolist() == [0.0]

    def test_what_costs_too_much_is_left_out_and_said(self, monkeypatch):
        X, y = frame()
        monkeypatch.setattr(standard_members, "MOST_WORK", 1e3)
        with pytest.warns(SkippedMemberWarning, match="'full' is left out: 3 classes x 160 rows x 7"):
            model = BayesClassifier().fit(X, y)
        assert list(model.weights_) == ["near", "tied", "kernel", "class frequencies"]
        with pytest.warns(SkippedMemberWarning), pytest.raises(ValueError, match="no member is left"):
            BayesClassifier(families=["full"]).fit(X, y)

    def test_a_table_of_too_many_columns_is_seen_along_few_directions(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        wide = np.column_stack([X, X[:, ::-1] ** 2, np.sin(X)])
        monkeypatch.setattr(standard_members, "MOST_WORK", 3.0 * 150 * 10**2)
        monkeypatch.setattr(standard_members, "DIRECTIONS", 4)
        model = BayesClassifier(families=["full"]).fit(wide, y)
        assert model.models_["full"].parameters_["full"]["mean"].shape == (3, 4)
        assert model.score(wide, y) > 0.9
        assert model.explain(wide).names == ("class prior", *[f"x{j}" for j in range(12)], "columns together")

    def test_many_rows_are_tried_on_some_and_trained_on_all(self, monkeypatch):
        monkeypatch.setattr(splits, "TRIAL_ROWS", 120)
        X, y = frame(400)
        model = BayesClassifier(families=["tied", "kernel"]).fit(X, y)
        assert model.rows_ == 400
        assert 120 <= model.tried_rows_ <= 150  # at least 50 of each class
        assert f"tried on {model.tried_rows_} of 400 rows" in model.summary()
        used = next(iter(model.models_.values()))
        assert used.data_statistics_["class_prior"]["count"].sum() == pytest.approx(400)
        order = np.random.default_rng(0).permutation(400)
        shuffled = BayesClassifier(families=["tied", "kernel"]).fit(X.iloc[order], y[order])
        assert_allclose(shuffled.predict_proba(X), model.predict_proba(X), atol=1e-7)
        assert BayesClassifier(families=["tied"], cv=3).fit(X, y).tried_rows_ == 400

    def test_a_costly_member_comes_last_and_is_followed_while_all_gain(self, monkeypatch):
        monkeypatch.setattr(standard_members, "COSTLY", 0.0)
        X, y = frame(300)
        model = BayesClassifier().fit(X, y)
        assert list(model.paths_) == ["near", "tied", "kernel", "full"]
        path = model.paths_["full"]
        assert 1.0 <= path.total_step[-1] < 8.0
        assert f"full was not taken beyond tau {path.total_step[-1]:g}: {path.ended}" in model.summary()

    def test_members_that_hardly_count_do_not_count(self):
        rng = np.random.default_rng(0)
        true = np.log(rng.uniform(0.6, 0.9, 200))
        worse, even = true - 0.5, np.full(200, np.log(0.5))
        weights = mixing.sparing_weights(np.column_stack([true, worse, even]), np.ones(200))
        assert weights[1] == 0.0
        assert_allclose(weights[[0, 2]], mixing.sparing_weights(np.column_stack([true, even]), np.ones(200)))
        assert weights.sum() == pytest.approx(1.0)

    @pytest.mark.parametrize("unit", [1e-3, 1.0, 50.0])
    def test_weights_begin_with_half_a_row_each(self, unit):
        log_true = np.log(np.random.default_rng(0).uniform(0.3, 0.7, (30, 2)))

        def unlikely(share):
            shares = np.array([share, 1.0 - share])
            return -np.log(np.exp(log_true) @ shares).sum() - 0.5 * np.log(shares).sum()

        best = minimize_scalar(unlikely, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
        found = mixing.sparing_weights(log_true, np.full(30, unit), unit)
        assert_allclose(found, [best, 1.0 - best], atol=1e-4)

    def test_class_frequencies_always_count_a_little(self):
        sure = mixing.sparing_weights(np.log(np.tile([0.999, 0.5], (50, 1))), np.ones(50))
        assert 0.0 < sure[1] < 0.02
        assert BayesClassifier().fit(*load_iris(return_X_y=True)).weights_["class frequencies"] > 0

    def test_a_bar_is_drawn_on_a_terminal(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        shown = bar.Bar("Someone", 2, True)
        shown.enter(1, "kernel")
        shown.step("tau 1", 0.5)
        shown.close()
        told = capsys.readouterr().err
        assert told.startswith("\r[Someone] ##################......  75 %  kernel, tau 1")
        assert told.endswith("\n")

    def test_progress_is_printed(self, capfd):
        BayesClassifier(families=["tied"], verbose=1).fit(*frame())
        assert "[BayesClassifier] tied, tau 0: log loss" in capfd.readouterr().err

    @pytest.mark.parametrize("balanced", [None, "balanced"])
    def test_how_often_contents_were_seen_counts_as_rows(self, balanced):
        """More often than there are contents, and with class weights."""
        rng = np.random.default_rng(0)
        X = np.array([[a, b] for a in range(4) for b in range(4)] * 2, dtype=float)
        y = np.repeat([0, 1], 16)
        seen = rng.integers(1, 8, 32) * np.where((X[:, 0] > 1) == y, 5, 1)
        one = BayesClassifier(class_weight=balanced).fit(X, y, sample_weight=seen)
        two = BayesClassifier(class_weight=balanced).fit(np.repeat(X, seen, axis=0), np.repeat(y, seen))
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)

    def test_weights_count_as_rows(self):
        X, y = frame(80)
        weight = np.random.default_rng(5).integers(0, 3, len(y))
        repeated = np.repeat(np.arange(len(y)), weight)
        one = BayesClassifier().fit(X, y, sample_weight=weight)
        two = BayesClassifier().fit(X.iloc[repeated], y[repeated])
        assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-7)

    def test_a_tree_joins_where_there_are_rows_for_pairs(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (1000, 3)).astype(str)
        y = (X[:, 0] == X[:, 1]).astype(int)
        assert "tree" in BayesClassifier().fit(X, y).weights_
        assert "tree" not in BayesClassifier().fit(X[1:], y[1:]).weights_
        tree = BayesClassifier(families=["tied", "kernel", "tree"]).fit(X, y)
        assert tree.weights_["tree"] > 0.9
        assert tree.score(X, y) == 1.0
        reasons = BayesClassifier(families=["tree"]).fit(X, y).explain(X)
        assert any("|" in name for name in reasons.names)

    def test_what_adds_nothing_ends_early_and_is_not_used(self):
        rng = np.random.default_rng(0)
        y = np.arange(200) % 2
        X = rng.normal(size=(200, 1)) * (1 + 9 * y[:, None])
        model = BayesClassifier(families=["full", "tied"]).fit(X, y)
        assert model.weights_["tied"] == 0.0
        assert list(model.models_) == ["full"]
        assert model.paths_["tied"].total_step[-1] <= 8.0


def folds_of(X, y, weight, count=5):
    """The content, class and weight of what each fold holds out, as sorted lists."""
    given = Rows(read_array(X), y, weight, np.arange(len(y)))
    rows, splits = trial(count, given, len(y), 0)
    content = np.column_stack([rows.table.content, rows.codes, rows.weight])
    return [sorted(map(tuple, content[held])) for held in splits]


class TestFolds:
    def test_every_class_is_in_all_training_parts_and_folds_are_alike(self):
        y = np.random.default_rng(0).integers(0, 3, 300)
        fold = dealt(y, 5)
        for number in range(5):
            assert set(y[fold != number]) == {0, 1, 2}
        assert np.ptp(np.bincount(fold)) <= 3

    def test_a_single_row_is_never_held_out(self):
        assert dealt(np.array([0, 0, 0, 0, 1]), 2)[-1] == -1

    def test_rows_seen_often_lie_on_both_sides(self):
        X, y = np.repeat([[0.0], [1.0]], 50, axis=0), np.tile([0, 1, 1, 1, 1], 20)
        for held in folds_of(X, y, np.ones(100)):
            assert len(held) == 20
            assert len(set(held)) >= 3

    def test_a_share_of_the_rows_has_all_contents(self):
        X = np.random.default_rng(0).integers(0, 2, (30_000, 3)).astype(float)
        rows, splits = trial(
            None, Rows(read_array(X), np.arange(30_000) % 2, np.ones(30_000), np.arange(30_000)), 30_000, 0
        )
        assert len(rows.codes) == 20_000
        for held in splits:
            assert len(np.unique(rows.table.content[held], axis=0)) == 8

    def test_a_row_of_weight_two_does_as_two_rows_and_all_of_weight_two_as_all_of_one(self):
        rng = np.random.default_rng(0)
        X, y, many = rng.normal(size=(60, 2)), np.arange(60) % 3, rng.integers(0, 4, 60)
        seen = many > 0
        twice = np.repeat(X, many, axis=0), np.repeat(y, many)
        weighted = folds_of(X[seen], y[seen], many[seen].astype(float))
        assert weighted == folds_of(*twice, np.ones(len(twice[1])))
        once, doubled = folds_of(X, y, np.ones(60)), folds_of(X, y, np.full(60, 2.0))
        assert [[row[:3] for row in held] for held in once] == [[row[:3] for row in held] for held in doubled]

    def test_with_other_weights_every_row_is_one(self):
        rng = np.random.default_rng(0)
        X, y, weight = (
            rng.integers(0, 4, (300, 2)).astype(float),
            rng.integers(0, 3, 300),
            rng.random(300) + 0.5,
        )
        held = [row for fold in folds_of(X, y, weight) for row in fold]
        assert sorted(held) == sorted(map(tuple, np.column_stack([X, y, weight])))

    def test_many_copies_become_fewer_and_heavier_ones(self):
        X, y, weight = np.array([[0.0], [1.0]]), np.array([0, 1]), np.array([5000.0, 5001.0])
        folds = folds_of(X, y, weight)
        assert sum(row[-1] for fold in folds for row in fold) == pytest.approx(10_001.0)
        assert 900 < sum(map(len, folds)) < 1100

    @pytest.mark.parametrize("options", [{"class_weight": "balanced"}, {"class_weight": {0: 0.3, 1: 2.7}}])
    def test_class_weights_are_no_counts(self, options):
        x = np.arange(399) % 2
        model = BayesClassifier(**options).fit(x[:, None], x)
        assert model.score(x[:, None], x) == 1.0
        assert model.weights_["class frequencies"] < 0.1

    def test_splits_that_hold_out_nothing_are_refused(self):
        X, y = frame()
        with pytest.raises(ValueError, match="holds out none"):
            BayesClassifier(cv=[("first", "second")]).fit(X, y)

    def test_it_knows_content_not_type(self):
        X, _ = frame()
        table, other = read_frame(X), read_frame(X.assign(noise=X["noise"].to_numpy() + 0.0))
        assert_array_equal(digest(table, 0), digest(other, 0))

    def test_a_member_without_a_density_of_whole_rows_says_so(self):
        X, y = load_iris(return_X_y=True)
        model = BayesClassifier(families=["near"]).fit(X, y)
        assert np.isfinite(model.score_samples(X)).all()
        for ask in (lambda: model.sample(3), lambda: model.fill(X), lambda: model.outlier_threshold(X)):
            with pytest.raises(ValueError, match="let `density` name another member"):
                ask()
        with pytest.raises(ValueError, match="with_priors"):
            model.with_priors([0.8, 0.1, 0.1]).score_samples(X)

    def test_tables_of_few_distinct_rows_are_learned(self):
        """Copies of a row with different labels: frequencies of classes in each content are all there is to know."""
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (600, 3)).astype(float)
        y = (rng.random(600) < np.where(X[:, 0] == X[:, 1], 0.85, 0.15)).astype(int)
        model = BayesClassifier().fit(X, y)
        assert np.mean(model.predict(X) == (X[:, 0] == X[:, 1])) == 1.0
        assert model.weights_["class frequencies"] < 0.2


def test_the_summary_tells_weights_taus_and_what_was_left_out(fitted):
    text = fitted.summary()
    assert text.splitlines()[0].split() == ["member", "weight", "total_step", "log", "loss", "error"]
    assert f"{fitted.weights_['tied']:.3f}" in text
    assert "class frequencies" in text
    fitted = pickle.loads(pickle.dumps(fitted))
    fitted.skipped_ = {"full": "too dear"}
    assert fitted.summary().endswith("full was left out: too dear")


def test_who_decides_is_drawn(fitted):
    from calibayes.plots import plot_members

    X, _ = frame(seed=1)
    axes = plot_members(fitted, X)
    bars = axes.patches
    assert len(bars) == (len(fitted.models_) + 1) * len(np.unique(fitted.predict(X)))
    assert_allclose(sum(bar.get_width() for bar in bars), len(np.unique(fitted.predict(X))))


def test_it_is_compared_with_the_others():
    from calibayes.compare import model_rule_pairs, run_fold, stratified_folds
    from calibayes.datasets import load_penguins

    data = load_penguins()
    assert model_rule_pairs(data.columns, ["BayesClassifier"], ["ml", "rc"]) == [("BayesClassifier", "rc")]
    result = run_fold(data, "BayesClassifier", "rc", stratified_folds(data.target, 3, 0)[0])
    assert result.error < 0.05
    assert result.log_loss < 0.2
