"""What an estimator promises beyond scikit-learn's checks."""

import pickle
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from calibayes.core.block import Block
from calibayes.core.named_arrays import add, map_leaves, subtract
from calibayes.families import Categorical, Full, Gaussian, Spherical, TreeCovariance
from calibayes.learn import LastState, MaxPasses, NoGain, Patience, TimeLimit
from calibayes.rules import GDT, RC
from calibayes.tables.read import read_array
from tests.contract.test_scikit_learn import GENERATIVE, ITERATIVE, nothing_hidden

IDS = {"ids": lambda estimator: type(estimator).__name__}


def table(n=400, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=seed
    )
    return np.round(np.abs(X) * 2, 1), np.array(["x", "y", "z"])[y]


def assert_same_trees(left, right, tolerance=1e-10):
    map_leaves(lambda a, b: assert_allclose(a, b, rtol=tolerance, atol=tolerance), left, right)


@pytest.mark.parametrize("estimator", GENERATIVE, **IDS)
class TestEveryEstimator:
    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")  # of the first few rows alone
    @pytest.mark.parametrize("rule", ["ml", "map"])
    @pytest.mark.parametrize("cuts", [(200,), (13, 14, 250), (50, 100, 150, 200, 399)])
    def test_partial_fit_over_any_split_is_fit(self, estimator, rule, cuts):
        X, y = table()
        if isinstance(estimator, cb.NaiveBayes | cb.KernelNB | cb.TreeAugmentedNB):
            X = X.astype(str).astype(object)  # bins are settled by the first rows; levels are not
        estimator = nothing_hidden(clone(estimator))
        whole = clone(estimator).set_params(rule=rule).fit(X, y)
        model = clone(estimator).set_params(rule=rule)
        edges = [0, *cuts, len(y)]
        for low, high in pairwise(edges):
            model.partial_fit(X[low:high], y[low:high], classes=["x", "y", "z"])
        assert_same_trees(model.parameters_, whole.parameters_)
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
    def test_number_of_jobs_leaves_no_trace(self, estimator, rule):
        X, y = table(3000)
        big = np.tile(X, (1, 60)) + np.repeat(np.arange(60), 5)  # several blocks
        big = big[:, :: 7 if isinstance(estimator, cb.QuadraticDiscriminantAnalysis) else 1]
        watched = cb.TrainingOptions(
            callbacks=[lambda progress: None]
        )  # a closed form has a history only then
        options = {"rule": rule, "max_iter": 3, "stop": None, "training": watched}
        if hasattr(estimator, "prior") and not hasattr(estimator, "alpha"):
            options["prior"] = cb.families.NormalInverseWishart()
        one = clone(estimator).set_params(n_jobs=1, **options).fit(big, y)
        two = clone(estimator).set_params(n_jobs=2, **options).fit(big, y)
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


def test_center_and_offset_leave_the_result():
    X, y = table()
    plain = cb.QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=10, stop=None).fit(X, y)
    moved = cb.QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=10, stop=None).fit(X + 1e6, y)
    assert_allclose(moved.history_["log_loss"], plain.history_["log_loss"], rtol=1e-6)
    assert_allclose(moved.means_ - 1e6, plain.means_, atol=1e-6)


def test_float32_columns_are_summed_in_float64():
    X, y = table()
    wide = cb.GaussianNB(rule="ml").fit(X.astype(np.float32).astype(np.float64), y)
    narrow = cb.GaussianNB(rule="ml").fit(X.astype(np.float32), y)
    assert narrow.theta_.dtype == np.float64
    assert_allclose(narrow.theta_, wide.theta_, rtol=1e-6)


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


def test_minus_one_is_an_ordinary_label():
    X, y = load_iris(return_X_y=True)
    assert cb.GaussianNB().fit(X, y - 1).classes_.tolist() == [-1, 0, 1]


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


def test_class_weight_is_sample_weight():
    X, y = table()
    weighted = cb.GaussianNB(rule="ml", class_weight={"x": 2.0, "y": 1.0, "z": 1.0}).fit(X, y)
    by_row = cb.GaussianNB(rule="ml").fit(X, y, sample_weight=np.where(y == "x", 2.0, 1.0))
    assert_array_equal(weighted.predict_proba(X), by_row.predict_proba(X))


@pytest.mark.parametrize("rule", ["em", GDT(lam=1.0)])
@pytest.mark.parametrize("estimator", [cb.GaussianNB, cb.CategoricalNB, cb.LinearDiscriminantAnalysis])
def test_partial_fit_of_rules_that_contain_maximum_likelihood(estimator, rule):
    X, y = table()
    model = estimator(rule=rule)
    for low, high in pairwise([0, 150, 170, 400]):
        model.partial_fit(X[low:high], y[low:high], classes=["x", "y", "z"])
    assert_same_trees(model.parameters_, estimator(rule="ml").fit(X, y).parameters_, 1e-9)
    assert model.statistics_["class_prior"]["count"].sum() == pytest.approx(400)


def test_partial_fit_with_rows_without_labels():
    X, y = table()
    labels = y.astype(object)
    labels[100:] = None
    model = cb.GaussianNB(rule="em").partial_fit(X[:100], labels[:100], classes=["x", "y", "z"])
    for low in (100, 200, 300):
        model.partial_fit(X[low : low + 100], labels[low : low + 100])
    assert model.statistics_["class_prior"]["count"].sum() == pytest.approx(400)
    assert model.data_statistics_["class_prior"]["count"].sum() == 100


def test_partial_fit_waits_for_enough_rows():
    X, y = table()
    model = cb.QuadraticDiscriminantAnalysis(rule="ml", prior=None)
    model.partial_fit(X[:6], y[:6], classes=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"not enough rows have been seen yet: .*singular"):
        model.predict(X)
    with pytest.raises(ValueError, match="not enough rows"):
        model.sample(2)
    model.partial_fit(X[6:], y[6:])
    assert_allclose(model.means_, cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).means_, rtol=1e-10)


def test_partial_fit_after_the_rule_was_changed_starts_from_the_data():
    X, y = table()
    for before, after in (("rc", "gd"), ("gd", "rc"), ("ml", "tm")):
        model = cb.GaussianNB(rule=before).partial_fit(X[:200], y[:200], classes=["x", "y", "z"])
        model.set_params(rule=after).partial_fit(X[200:], y[200:])
        assert np.isfinite(model.predict_log_proba(X)).all()


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
        with pytest.raises(ValueError, match="not among the classes"):
            model.partial_fit(X[:3], ["x", "y", "other"])
        assert_array_equal(model.data_statistics_["class_prior"]["count"], counts)


def test_levels_of_earlier_rows_keep_their_counts():
    model = cb.CategoricalNB(rule="ml").partial_fit([[0], [2]], [0, 1], classes=[0, 1])
    model.partial_fit([[-1], [2]], [0, 1])
    whole = cb.CategoricalNB(rule="ml").fit([[0], [2], [-1], [2]], [0, 1, 0, 1])
    assert_array_equal(model.category_count_[0], whole.category_count_[0])
    with pytest.raises(ValueError, match="column 'x0' had numbers as levels"):
        model.partial_fit([["a"], ["b"]], [0, 1])


def test_unlabeled_rows_have_no_class_weight():
    X, y = table()
    labels = np.where(np.arange(400) % 3 == 0, None, y)
    by_class = cb.GaussianNB(rule="em", class_weight={"x": 1.0, "y": 1.0, "z": 5.0}).fit(X, labels)
    by_row = cb.GaussianNB(rule="em").fit(X, labels, sample_weight=np.where(labels == "z", 5.0, 1.0))
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


def test_balanced_classes_count_weighted_rows():
    X, y = table()
    weight = np.where((y == "x") & (np.arange(400) % 3 > 0), 0.0, 1.0)
    model = cb.GaussianNB(rule="ml", class_weight="balanced").fit(X, y, weight)
    assert_allclose(model.class_prior_, 1 / 3)
    with pytest.raises(ValueError, match="needs all rows at once"):
        cb.GaussianNB(class_weight="balanced").partial_fit(X, y, classes=["x", "y", "z"])


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


def test_the_default_prior_keeps_each_columns_own_scale():
    X, y = table()
    X = X * np.array([1e4, 1e-4, 1.0, 1.0, 1.0])
    mapped = cb.GaussianNB(rule="map").fit(X, y)
    plain = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    ratio = np.sqrt((mapped.var_ - mapped.epsilon_) / plain.var_)
    assert (np.abs(np.log(ratio)) < 0.5).all()


def test_one_far_value_leaves_the_other_classes_alone():
    X, y = table()
    far = X.copy()
    far[np.flatnonzero(y == "x")[0], 0] = 1e9
    model = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(far, y)
    plain = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    assert_allclose(model.var_[1:], plain.var_[1:], rtol=1e-10)


def test_rows_as_lists_keep_their_types():
    rows = [["a", 1.5, 1], ["b", 2.5, 0], ["a", 3.5, 1], ["b", 0.5, 0]] * 5
    model = cb.NaiveBayes(rule="ml").fit(rows, [0, 1, 0, 1] * 5)
    assert model.fitted_.binding.chosen == {"kernel": (1, 2), "categorical": (0,)}


def test_declared_categories_are_levels():
    frame = pd.DataFrame({"a": pd.Categorical(np.arange(120) % 12), "b": np.arange(120) % 7})
    model = cb.NaiveBayes(rule="ml").fit(frame, np.arange(120) % 2)
    assert model.fitted_.binding.chosen == {"kernel": (1,), "categorical": (0,)}


def test_targets_keep_their_type():
    X, y = table()
    codes = np.searchsorted(["x", "y", "z"], y)
    assert cb.GaussianNB().fit(X, pd.Series(codes + 2**60, dtype="Int64")).classes_.dtype.kind == "i"
    assert cb.GaussianNB().fit(X, pd.Series(codes > 0, dtype="boolean")).classes_.dtype.kind == "b"


def test_two_fits_at_once_do_not_disturb_the_number_of_threads():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    X, y = table()
    before, alone = threads(), cb.QuadraticDiscriminantAnalysis(max_iter=20, stop=None).fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        models = list(
            pool.map(lambda _: cb.QuadraticDiscriminantAnalysis(max_iter=20, stop=None).fit(X, y), range(8))
        )
    assert threads() == before
    for model in models:
        assert_array_equal(model.predict_log_proba(X), alone.predict_log_proba(X))


def test_an_engine_of_ones_own():
    from calibayes.engines import Serial

    class Counting:
        passes = 0

        def total(self, function, source):
            self.passes += 1
            return Serial().total(function, source)

    X, y = table()
    engine = Counting()
    model = cb.GaussianNB(rule=RC(step=0.1), engine=engine, max_iter=5, stop=None).fit(X, y)
    assert engine.passes == 7
    assert_array_equal(
        model.predict_proba(X),
        cb.GaussianNB(rule=RC(step=0.1), max_iter=5, stop=None).fit(X, y).predict_proba(X),
    )


def test_partial_fit_takes_one_step_of_an_iterative_rule():
    X, y = table()
    for rule in ("rc", "tm", "gdt", "gd"):
        model = cb.GaussianNB(rule=rule)
        for low in range(0, 400, 100):
            model.partial_fit(X[low : low + 100], y[low : low + 100], classes=["x", "y", "z"])
        assert model.data_statistics_["class_prior"]["count"].sum() == 400
        assert model.n_iter_ == 4
        plain = cb.GaussianNB(rule="ml").fit(X, y)
        assert model.score(X, y) > plain.score(X, y) - 0.05


def test_partial_fit_makes_room_for_new_levels():
    X = np.array([["a"], ["b"], ["a"], ["c"], ["0"]], dtype=object)
    y = [0, 1, 0, 1, 1]
    model = cb.CategoricalNB(rule="ml").partial_fit(X[:3], y[:3], classes=[0, 1]).partial_fit(X[3:], y[3:])
    assert model.categories_[0].tolist() == ["0", "a", "b", "c"]
    assert_allclose(model.category_count_[0], [[0, 2, 0, 0], [1, 0, 1, 1]])


def test_mixed_columns_come_back_from_sampling_as_they_were():
    penguins = cb.datasets.load_penguins()
    model = cb.NaiveBayes(rule="ml").fit(penguins.columns, penguins.target)
    rows, classes = model.sample(50, random_state=0)
    assert set(rows[:, penguins.columns.names.index("sex")]) <= {"male", "female"}
    assert set(classes) <= {"Adelie", "Chinstrap", "Gentoo"}
    assert (rows[:, penguins.columns.names.index("bill_length_mm")].astype(float) > 30).all()


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
