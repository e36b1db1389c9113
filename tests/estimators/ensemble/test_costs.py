"""What an ensemble leaves out, shortens or reduces to save time."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

from calibayes import BayesClassifier, SkippedMemberWarning
from calibayes.ensemble import standard_members, training
from calibayes.files import load, save
from calibayes.kernels.tree_growth import Growth
from calibayes.learn.run import Run
from calibayes.model import splits
from tests.estimators.ensemble.tables import frame


def used_columns(member):
    """Positions of the columns that a trained member uses."""
    if hasattr(member, "density_"):
        return tuple(member.density_.encoder.indices)
    (chosen,) = member.fitted_.binding.chosen.values()
    return tuple(chosen)


class TestCosts:
    def test_members_beyond_the_time_limit_are_left_out_with_a_warning(self):
        X, y = frame()
        with pytest.warns(SkippedMemberWarning, match="time limit"):
            model = BayesClassifier(time_limit=0.0).fit(X, y)
        assert list(model.models_) == ["near"]
        assert set(model.skipped_) == {"tied", "full", "kernel"}
        with pytest.warns(SkippedMemberWarning, match="time limit"):
            model = BayesClassifier(families=["tied", "full"], time_limit=0.0).fit(X, y)
        assert model.paths_["tied"].total_step.tolist() == [0.0]

    def test_members_of_too_much_work_are_left_out_with_a_warning(self, monkeypatch):
        X, y = frame()
        monkeypatch.setattr(standard_members, "MOST_WORK", 1e3)
        with pytest.warns(SkippedMemberWarning, match="'full' is left out: 3 classes x 160 rows x 7"):
            model = BayesClassifier().fit(X, y)
        assert list(model.weights_) == ["near", "tied", "kernel", "class frequencies"]
        with pytest.raises(ValueError, match="no member is left: 3 classes x 160 rows x 7"):
            BayesClassifier(families=["full"]).fit(X, y)

    def test_many_columns_are_reduced_to_principal_components(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        wide = np.column_stack([X, X[:, ::-1] ** 2, np.sin(X)])
        monkeypatch.setattr(standard_members, "SLOW_WORK", 3.0 * 150 * 10**2)
        monkeypatch.setattr(standard_members, "DIRECTIONS", 4)
        model = BayesClassifier(families=["full"]).fit(wide, y)
        assert model.models_["full"].parameters_["full"]["mean"].shape == (3, 4)
        assert model.score(wide, y) > 0.9
        reasons = model.explain(wide)
        assert reasons.names == ("class prior", *[f"x{j}" for j in range(12)])
        best = np.sort(model.predict_log_proba(wide), axis=1)
        assert_allclose(reasons.log_odds, best[:, -1] - best[:, -2], atol=1e-9)

    def test_columns_of_one_number_in_nearly_all_rows_are_left_to_members_of_single_columns(
        self, monkeypatch, tmp_path
    ):
        X, y = load_iris(return_X_y=True)
        wide = pd.DataFrame(np.column_stack([X, np.zeros((150, 3))]), columns=list("abcdefg"))
        wide.loc[[7, 20, 80], "e"] = 1.0  # in each fold at least a hundredth of the rows
        wide.loc[7, "f"] = 1.0
        wide["text"] = np.where(np.arange(150) % 9 == 3, "rare", "usual")
        whole = BayesClassifier().fit(wide, y)
        monkeypatch.setattr(standard_members, "MANY_COLUMNS", 5)
        names, everything = ["near", "tied", "full", "kernel"], tuple(range(8))
        assert set(map(used_columns, whole.models_.values())) == {everything}
        chosen = {}
        for name in names:
            model = BayesClassifier(families=[name]).fit(wide, y)
            chosen[name] = used_columns(model.models_[name])
            save(model, tmp_path / "model.safetensors")
            restored = load(tmp_path / "model.safetensors")
            assert_array_equal(restored.predict_proba(wide), model.predict_proba(wide))
            assert set(model.explain(wide[:9]).names) == {"class prior", *wide} or name == "near"
        assert chosen == dict.fromkeys(names[:3], (0, 1, 2, 3, 4, 7)) | {"kernel": everything}

    def test_constant_columns_do_not_make_a_table_one_of_many_columns(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        nearly = (np.arange(150) == 7).astype(float)
        monkeypatch.setattr(standard_members, "MANY_COLUMNS", 5)
        table = np.column_stack([X, nearly])
        constant = np.column_stack([table, np.ones(150), np.full(150, np.nan)])
        models = [BayesClassifier().fit(given, y) for given in (table, constant)]
        assert used_columns(models[0].models_["tied"]) == (0, 1, 2, 3, 4)
        assert_allclose(models[1].predict_proba(constant), models[0].predict_proba(table), atol=1e-12)

    def test_few_rows_of_many_columns_are_reduced_to_principal_components(self, monkeypatch):
        X, y = load_iris(return_X_y=True)
        monkeypatch.setattr(standard_members, "MOST_CELLS", 3.0 * 4**2 - 1)
        monkeypatch.setattr(standard_members, "DIRECTIONS", 2)
        model = BayesClassifier(families=["full"]).fit(X, y)
        assert model.models_["full"].parameters_["full"]["mean"].shape == (3, 2)

    def test_members_are_compared_on_some_rows_and_trained_on_all(self, monkeypatch):
        monkeypatch.setattr(splits, "TRIAL_ROWS", 120)
        X, y = frame(400)
        model = BayesClassifier(families=["tied", "kernel"]).fit(X, y)
        assert model.rows_ == 400
        assert 120 <= model.tried_rows_ <= 150  # at least 50 of each class
        assert f"compared on {model.tried_rows_} of 400 rows" in model.summary()
        used = next(iter(model.models_.values()))
        assert used.data_statistics_["class_prior"]["count"].sum() == pytest.approx(400)
        order = np.random.default_rng(0).permutation(400)
        shuffled = BayesClassifier(families=["tied", "kernel"]).fit(X.iloc[order], y[order])
        assert_allclose(shuffled.predict_proba(X), model.predict_proba(X), atol=1e-7)
        assert BayesClassifier(families=["tied"], cv=3).fit(X, y).tried_rows_ == 400

    def test_a_costly_member_comes_last_and_its_path_ends_when_the_ensemble_does_not_improve(
        self, monkeypatch
    ):
        monkeypatch.setattr(standard_members, "COSTLY", 0.0)
        X, y = frame(300)
        model = BayesClassifier().fit(X, y)
        assert list(model.paths_) == ["near", "tied", "kernel", "full"]
        path = model.paths_["full"]
        assert 1.0 <= path.total_step[-1] < 8.0
        assert (
            f"full was not trained beyond total step {path.total_step[-1]:g}: {path.ended}" in model.summary()
        )

    def test_the_tree_is_a_member_from_1000_rows_on(self):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, (1000, 3)).astype(str)
        y = (X[:, 0] == X[:, 1]).astype(int)
        assert "tree" in BayesClassifier().fit(X, y).weights_
        assert "tree" not in BayesClassifier().fit(X[1:], y[1:]).weights_
        tree = BayesClassifier(families=["tied", "kernel", "tree"]).fit(X, y)
        assert tree.weights_["tree"] > 0.9
        assert tree.score(X, y) == 1.0

    def test_a_member_that_adds_nothing_ends_early_and_has_no_weight(self):
        rng = np.random.default_rng(0)
        y = np.arange(200) % 2
        X = rng.normal(size=(200, 1)) * (1 + 9 * y[:, None])
        model = BayesClassifier(families=["full", "tied"]).fit(X, y)
        assert model.weights_["tied"] == 0.0
        assert list(model.models_) == ["full"]
        assert model.paths_["tied"].total_step[-1] <= 8.0


class Clock:
    """Seconds that pass with work: one for a pass over a thousand rows and for a tree."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        measure_of_candidate, advance = Run.measure_of_candidate, Growth.advance

        def timed_measure(run):
            measure = measure_of_candidate(run)

            def measured(block):
                self.now += np.count_nonzero(run.view(block).weight) / 1000
                return measure(block)

            return measured

        def timed_advance(growth):
            self.now += 1.0
            return advance(growth)

        monkeypatch.setattr(Run, "measure_of_candidate", timed_measure)
        monkeypatch.setattr(Growth, "advance", timed_advance)
        monkeypatch.setattr(training, "time", self)

    def monotonic(self):
        return self.now


def interaction():
    """Rows whose class depends on a product of two columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=600) > 0).astype(int)


class TestTimeLimit:
    @pytest.mark.filterwarnings("ignore::calibayes.SkippedMemberWarning")
    @pytest.mark.parametrize("trees", [True, False])
    def test_the_whole_fit_ends_at_the_limit(self, trees, monkeypatch):
        clock, names = Clock(monkeypatch), ["tied", "kernel", "full", *["trees"] * trees]
        BayesClassifier(families=names).fit(*interaction())
        seconds = clock.now
        for share in (0.3, 0.6, 0.9):
            limit, clock.now = share * seconds, 0.0
            BayesClassifier(families=names, time_limit=limit).fit(*interaction())
            assert clock.now <= 1.2 * limit
        assert clock.now >= 0.5 * limit  # and what time there is is used

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        X, y = interaction()
        limited = BayesClassifier(families=["tied", "trees"], time_limit=1e6).fit(X, y)
        assert_array_equal(
            limited.predict_proba(X), BayesClassifier(families=["tied", "trees"]).fit(X, y).predict_proba(X)
        )

    def test_a_member_for_which_there_is_no_time_on_all_folds_is_left_out(self, monkeypatch):
        def late(rows, _):
            yield next(iter(rows))
            raise training.TimeIsOver

        monkeypatch.setattr(training, "until_late", late)
        with pytest.warns(SkippedMemberWarning, match="'kernel' is left out: the time limit"):
            model = BayesClassifier(families=["tied", "kernel"], time_limit=1e6).fit(*interaction())
        assert list(model.models_) == ["tied"]
