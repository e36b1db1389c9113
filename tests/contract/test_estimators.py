"""What every estimator guarantees beyond scikit-learn's checks."""

import pickle
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from calibayes.core.named_arrays import add, map_leaves, subtract
from calibayes.core.protocols import Block
from calibayes.learn import LastState
from calibayes.rules import GDT, RC
from calibayes.tables.read import read_array
from calibayes.tables.row_blocks import ArraySource, ConsecutiveRows
from tests.contract.tables import table
from tests.contract.test_scikit_learn import ADDITIVE, GENERATIVE, ITERATIVE, nothing_hidden


def assert_same_trees(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


def blocks_of_90_rows(source):
    """Loaders of several blocks, whose sums threads compute at the same time, also of a small table."""
    return [ConsecutiveRows(source, first, first + 90) for first in range(0, source.n, 90)]


SHAPED = cb.NaiveBayes | cb.KernelNB | cb.TreeAugmentedNB | cb.KDependenceBayes | cb.AODE

IDS = {"ids": lambda estimator: type(estimator).__name__}


@pytest.mark.parametrize("estimator", ADDITIVE, **IDS)
class TestEverySumOfRows:
    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")  # of the first few rows alone
    @pytest.mark.parametrize("rule", ["ml", "map"])
    @pytest.mark.parametrize("cuts", [(200,), (13, 14, 250), (50, 100, 150, 200, 399)])
    def test_partial_fit_over_any_split_is_fit(self, estimator, rule, cuts):
        X, y = table()
        if isinstance(estimator, SHAPED):
            X = X.astype(str).astype(object)  # bins are settled by the first rows; levels are not
        estimator = nothing_hidden(clone(estimator))
        whole = clone(estimator).set_params(rule=rule).fit(X, y)
        model = clone(estimator).set_params(rule=rule)
        edges = [0, *cuts, len(y)]
        for low, high in pairwise(edges):
            model.partial_fit(X[low:high], y[low:high], classes=["x", "y", "z"])
        assert_same_trees(model.parameters_, whole.parameters_)
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-10)

    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")
    def test_partial_fit_differs_from_fit_only_by_what_the_first_rows_settle(self, estimator):
        """The readme lists the estimators whose encoding depends on the rows of the first call."""
        X, y = table()
        whole = nothing_hidden(clone(estimator)).set_params(rule="ml").fit(X, y)
        model = clone(whole)
        for low, high in pairwise((0, 150, 400)):
            model.partial_fit(X[low:high], y[low:high], classes=["x", "y", "z"])
        is_settled = any(encoder.data_dependence for encoder in whole.fitted_.binding.encoders.values())
        assert is_settled == isinstance(estimator, SHAPED)
        if not is_settled:
            assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-10)

    def test_rows_can_be_added_and_taken_away(self, estimator):
        X, y = table()
        model = nothing_hidden(clone(estimator)).set_params(rule="ml").fit(X, y)
        family = model.fitted_.model
        blocks = model.fitted_.binding.encode(read_array(X[:50]))
        codes = np.searchsorted(model.classes_, y[:50])
        block = Block(blocks, codes, np.ones(50), np.zeros(50))
        statistics = family.structure_statistics(block, block.onehot(3))
        there_and_back = subtract(add(model.data_statistics_, statistics), statistics)
        family = family.prepare(there_and_back)
        assert_same_trees(family.parameters(family.statistics_of(there_and_back)), model.parameters_)


@pytest.mark.parametrize("estimator", GENERATIVE, **IDS)
class TestEveryEstimator:
    def test_a_constructor_parameter_is_never_assigned(self, estimator):
        X, y = table()
        model = clone(estimator)
        before = {name: id(value) for name, value in model.get_params().items()}
        model.set_params(max_iter=2, stop=None).fit(X, y)
        after = {
            name: id(value) for name, value in model.get_params().items() if name not in ("max_iter", "stop")
        }
        assert {name: before[name] for name in after} == after

    def test_copies_predict_the_same(self, estimator, tmp_path):
        X, y = table()
        model = clone(estimator).set_params(max_iter=3, stop=None).fit(X, y)
        expected = model.predict_log_proba(X)
        joblib.dump(model, tmp_path / "model")
        for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
            assert_array_equal(copy.predict_log_proba(X), expected)

    def test_data_frames_of_any_library_give_the_same(self, estimator):
        X, y = table()
        names = ["a", "b", "c", "d", "e"]
        options = {"max_iter": 3, "stop": None}
        pandas = pd.DataFrame(X, columns=names)
        frames = [pandas, pl.DataFrame(X, schema=names), pl.DataFrame(X, schema=names).to_arrow()]
        expected = clone(estimator).set_params(**options).fit(X, y).predict_log_proba(X)
        for frame in frames:
            model = clone(estimator).set_params(**options).fit(frame, y)
            assert_array_equal(model.predict_log_proba(frame), expected)
            assert model.feature_names_in_.tolist() == names

    def test_html_representation(self, estimator):
        assert type(estimator).__name__ in estimator._repr_html_()


@pytest.mark.parametrize("estimator", ITERATIVE, **IDS)
class TestEveryIterativeEstimator:
    @pytest.mark.parametrize("rule", ["ml", "rc", RC(step=0.1), GDT(lam=0.3)])
    def test_number_of_jobs_leaves_no_trace(self, estimator, rule, monkeypatch):
        monkeypatch.setattr(ArraySource, "parts", blocks_of_90_rows)
        X, y = table(500)
        doubled = np.tile(X, (1, 2)) + np.repeat(np.arange(2), 5)
        watched = cb.TrainingOptions(
            callbacks=[lambda progress: None]
        )  # a closed form has a history only then
        options = {"rule": rule, "max_iter": 3, "stop": None, "training": watched}
        if hasattr(estimator, "prior") and not hasattr(estimator, "alpha"):
            options["prior"] = cb.families.NormalInverseWishart()
        one = clone(estimator).set_params(n_jobs=1, **options).fit(doubled, y)
        two = clone(estimator).set_params(n_jobs=2, **options).fit(doubled, y)
        map_leaves(assert_array_equal, one.parameters_, two.parameters_)
        assert_array_equal(one.history_["log_loss"], two.history_["log_loss"])

    @pytest.mark.parametrize(
        "options",
        [
            {"training": cb.TrainingOptions(start="random")},
            {"training": cb.TrainingOptions(start="bootstrap")},
            {"training": cb.TrainingOptions(validation_fraction=0.2, refit=False)},
            {"training": cb.TrainingOptions(batch_size=32), "stop": LastState()},
        ],
    )
    def test_a_seed_fixes_the_result(self, estimator, options):
        X, y = table()
        runs = [
            clone(estimator).set_params(random_state=seed, max_iter=5, **{"stop": None, **options}).fit(X, y)
            for seed in (1, 1, 2)
        ]
        assert_array_equal(runs[0].predict_log_proba(X), runs[1].predict_log_proba(X))
        assert not np.array_equal(runs[0].predict_log_proba(X), runs[2].predict_log_proba(X))

    def test_history_has_one_entry_more_than_updates(self, estimator):
        X, y = table()
        model = clone(estimator).set_params(rule=RC(step=0.1), max_iter=7, stop=None).fit(X, y)
        assert {
            "soft_error",
            "error",
            "log_loss",
            "objective",
            "step",
            "frozen",
            "seconds",
        } <= model.history_.keys()
        assert all(len(values) == 8 for values in model.history_.values())
        assert model.n_iter_ == 7
        assert model.best_iter_ == np.argmin(model.history_["soft_error"])
        true = np.searchsorted(model.classes_, y)
        best = model.predict_proba(X)[np.arange(len(y)), true]
        assert model.history_["soft_error"][model.best_iter_] == pytest.approx(1 - best.mean(), rel=1e-9)

    def test_samples_look_like_the_data(self, estimator):
        X, y = table()
        X = np.where(X > 1, 1.0, 0.0) if isinstance(estimator, cb.BernoulliNB) else X
        model = clone(estimator).set_params(rule="ml")
        model.set_params(**({"alpha": 0.0} if hasattr(model, "alpha") else {})).fit(X, y)
        rows, classes = model.sample(4000, random_state=0)
        assert rows.shape == (4000, 5)
        assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.25)
        shares = [np.mean(classes == label) for label in model.classes_]
        assert_allclose(shares, [np.mean(y == label) for label in model.classes_], atol=0.05)
        assert_allclose(np.sort(model.score_samples(rows))[2000], np.median(model.score_samples(X)), atol=1.5)


def test_works_inside_scikit_learn():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), cb.QuadraticDiscriminantAnalysis(stop=None, max_iter=5))
    assert cross_val_score(pipeline, X, y).mean() > 0.95
    search = GridSearchCV(
        cb.GaussianNB(stop=None, max_iter=5),
        {"rule": ["ml", "rc", GDT(lam=0.5)], "var_smoothing": [1e-9, 1e-2]},
    ).fit(X, y)
    assert search.best_score_ > 0.94
