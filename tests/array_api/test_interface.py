"""What estimators return, refuse and keep if X is on a device."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.utils import estimator_checks

import calibayes
from calibayes import (
    BayesClassifier,
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    JointKernelClassifier,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
    TreeAugmentedNB,
    every,
)
from calibayes.engines import Threads
from calibayes.families import Gaussian
from calibayes.families.tree import TreeCovariance

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 60)
X = RNG.normal(size=(60, 4)) + Y[:, None]
CODES = RNG.integers(0, 3, (60, 4))
ATTRIBUTES = {
    GaussianNB(rule="ml"): ("theta_", "var_", "class_prior_", "class_count_", "classes_"),
    LinearDiscriminantAnalysis(): (
        "means_",
        "covariance_",
        "priors_",
        "coef_",
        "intercept_",
        "xbar_",
        "scalings_",
    ),
    QuadraticDiscriminantAnalysis(rule="ml"): ("means_", "priors_", "covariance_", "rotations_", "scalings_"),
    GenerativeLogisticRegression(rule="ml"): ("var_", "coef_"),
    CategoricalNB(rule="ml"): ("category_count_", "feature_log_prob_", "n_categories_", "class_log_prior_"),
    BernoulliNB(rule="ml"): ("feature_count_", "feature_log_prob_"),
    MultinomialNB(rule="ml"): ("feature_count_", "feature_log_prob_"),
}


@pytest.fixture(autouse=True)
def _dispatched():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def fitted(model, library, X=X, y=Y):
    return sklearn.clone(model).fit(library.array(X), library.array(y))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", ATTRIBUTES, ids=lambda model: type(model).__name__)
def test_fitted_arrays_are_where_the_training_rows_are(library, model):
    rows = CODES if isinstance(model, CategoricalNB | BernoulliNB | MultinomialNB) else X
    expected, found = sklearn.clone(model).fit(rows, Y), fitted(model, library, rows)
    for name in ATTRIBUTES[model]:
        here, there = getattr(found, name), getattr(expected, name)
        pairs = zip(here, there, strict=True) if isinstance(there, list) else [(here, there)]
        for left, right in pairs:
            assert library.numpy(left).dtype == right.dtype
            # The sign of an axis is arbitrary.
            assert_allclose(np.abs(library.numpy(left)), np.abs(right), rtol=1e-8, atol=1e-10, err_msg=name)
    assert type(found.fitted_.classes) is np.ndarray
    assert all(type(array) is np.ndarray for array in found.parameters_["columns"].values())


def test_methods_return_arrays_of_the_library_and_device(library):
    model, rows = fitted(LinearDiscriminantAnalysis(), library), library.array(X)
    reference = LinearDiscriminantAnalysis().fit(X, Y)
    for name in ("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "score_samples"):
        found = library.numpy(getattr(model, name)(rows))
        assert_allclose(found, getattr(reference, name)(X), rtol=1e-8, atol=1e-10)
    assert_allclose(library.numpy(model.decision_function(rows)), reference.decision_function(X), rtol=1e-8)
    assert_allclose(library.numpy(model.transform(rows)), reference.transform(X), rtol=1e-6, atol=1e-8)
    assert_allclose(model.score(rows, library.array(Y)), reference.score(X, Y), rtol=1e-6)
    assert_allclose(model.outlier_threshold(rows, 0.1), reference.outlier_threshold(X, 0.1), rtol=1e-8)


def test_costs_and_abstentions(library):
    costs = np.array([[0, 1, 9], [1, 0, 9], [1, 1, 0]])
    model, rows = fitted(GaussianNB(rule="ml", costs=costs), library), library.array(X)
    reference = GaussianNB(rule="ml", costs=costs).fit(X, Y)
    assert (library.numpy(model.predict(rows)) == reference.predict(X)).all()
    decisions = model.decide(rows, least_posterior=0.9)
    assert (decisions.mask == reference.decide(X, least_posterior=0.9).mask).all()


def test_labels_that_are_no_numbers_stay_in_numpy(library):
    names = np.array(["a", "b", "c"])[Y]
    model = GaussianNB().fit(library.array(X), names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    predicted = model.predict(library.array(X))
    assert type(predicted) is np.ndarray
    assert set(predicted) <= {"a", "b", "c"}
    library.numpy(model.predict_proba(library.array(X)))


def test_another_library_at_predict_is_refused(library):
    on_device, in_numpy = fitted(GaussianNB(), library), GaussianNB().fit(X, Y)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"):
        for model, rows in ((on_device, X), (on_device, X.tolist()), (in_numpy, library.array(X))):
            with pytest.raises(ValueError, match=rf"GaussianNB\.{name}\(\) must use the same namespace"):
                getattr(model, name)(rows)


def test_another_fit_forgets_the_device(library):
    model = fitted(GaussianNB(), library).fit(X, Y)
    assert type(model.theta_) is np.ndarray
    assert type(model.predict(X)) is np.ndarray


def test_scikit_learn_moves_an_estimator(library):
    move = pytest.importorskip("sklearn.utils._array_api").move_estimator_to
    place = calibayes.backends.device.placement_of(library.array(X))
    moved = move(GaussianNB().fit(X, Y), place.xp, place.device)
    library.numpy(moved.theta_)
    library.numpy(moved.predict(library.array(X)))
    from array_api_compat import numpy as xp

    assert type(move(moved, xp, "cpu").predict(X)) is np.ndarray


def test_pickles_and_model_files_hold_numpy(library, tmp_path):
    model = fitted(GaussianNB(), library)
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict(library.array(X)).shape == (60,)
    calibayes.save(model, tmp_path / "model.calibayes")
    loaded = calibayes.load(tmp_path / "model.calibayes")
    with sklearn.config_context(array_api_dispatch=False):
        assert_allclose(loaded.predict_proba(X), model.predict_proba(X))
        assert_allclose(copied.predict_proba(X), model.predict_proba(X))


def test_without_dispatch_nothing_changes(library):
    with sklearn.config_context(array_api_dispatch=False):
        if library.xp.__name__ == "torch":
            model = GaussianNB().fit(library.array(X), library.array(Y))
            assert type(model.theta_) is np.ndarray
            assert type(model.predict(library.array(X))) is np.ndarray


REFUSED = {
    "kernel classifier": (JointKernelClassifier(), "JointKernelClassifier cannot read an X on a device"),
    "ensemble": (BayesClassifier(), "BayesClassifier cannot read an X on a device"),
    "mixed": (NaiveBayes(), "NaiveBayes cannot read an X on a device"),
    "structure": (TreeAugmentedNB(), "TreeAugmentedNB cannot read an X on a device"),
    "tree covariance": (
        GenerativeClassifier(families=[("x", Gaussian(TreeCovariance()), every)]),
        r"family 'x' \(Gaussian\(TreeCovariance",
    ),
    "kernel": (GenerativeClassifier(kinds={0: "kernel"}), r"family 'kernel' \(KernelDensity\)"),
    "descent": (GaussianNB(rule="gd"), "rule 'gd' cannot be trained"),
    "batches": (GaussianNB(training=TrainingOptions(batch_size=10)), "mini-batches"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_run_on_a_device_says_what_does(library, name):
    model, message = REFUSED[name]
    with pytest.raises(TypeError, match=message + r".*GaussianNB.*X\.cpu\(\)\.numpy\(\)"):
        fitted(model, library)


def test_missing_values_and_engines_are_refused(library):
    incomplete = np.where(np.arange(240).reshape(60, 4) == 7, np.nan, X)
    with pytest.raises(ValueError, match=r"contains NaN.*X\.cpu\(\)\.numpy\(\)"):
        fitted(GaussianNB(), library, incomplete)
    with pytest.raises(ValueError, match=r"contains NaN.*X\.cpu\(\)\.numpy\(\)"):
        fitted(GaussianNB(), library).predict(library.array(incomplete))
    with pytest.raises(ValueError, match="engine must be None for an X on a device"):
        fitted(GaussianNB(engine=Threads(2)), library)


@pytest.mark.parametrize("model", list(ATTRIBUTES)[:4], ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks_with_values(library, model):
    namespace = "torch" if library.xp.__name__ == "torch" else "array_api_strict"
    options = {"array_namespace": namespace, "check_sample_weight": True}
    estimator_checks.check_array_api_input_and_values(
        type(model).__name__, sklearn.clone(model).set_params(rule="rc"), **options
    )
