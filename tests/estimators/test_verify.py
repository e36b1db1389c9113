"""Estimators verify that their fitted attributes agree: what training makes passes, damaged attributes are refused."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import calibayes as cb
from calibayes.dependence import Dependence
from calibayes.encoders.schema import Schema
from calibayes.ensemble.path_members import NO_PATH, KernelPath, ShrinkagePath
from calibayes.estimators.tabular import OfKind
from calibayes.estimators.tree_augmented import Positions
from calibayes.model.fitted import LOG_TEMPERATURES
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.dates import DateFormat, Dates
from tests.contract.test_scikit_learn import ESTIMATORS, GENERATIVE
from tests.verification import verify_all

IDS = {"ids": lambda estimator: type(estimator).__name__}
N = 120
pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::calibayes.ColumnWarning",
    "ignore::calibayes.SingularCovarianceWarning",
    "ignore::calibayes.FewRowsWarning",
)


def labels(n=N):
    return np.array(["a", "b", "c"])[np.arange(n) % 3]


def numbers(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.round(np.abs(rng.normal(size=(N, 4)) + (labels() == "a")[:, None]), 1)
    return np.column_stack([X, np.ones(N)]).astype(dtype)


def mixed():
    """Numbers, flags, categories, text, dates and durations, with gaps, a constant and an empty column."""
    rng = np.random.default_rng(1)
    hours = pd.to_timedelta(rng.integers(0, 9000, N), unit="h")
    return pd.DataFrame(
        {
            "x": rng.normal(size=N) + (labels() == "a"),
            "gaps": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "constant": 1.0,
            "empty": np.nan,
            "whole": rng.integers(0, 5, N),
            "flag": rng.random(N) < 0.5,
            "flag with gaps": np.where(rng.random(N) < 0.1, None, rng.random(N) < 0.5),
            "category": pd.Categorical(rng.choice(["u", "v", "w"], N)),
            "text": np.where(rng.random(N) < 0.1, None, rng.choice(["p", "q"], N)),
            "one": "z",
            "when": pd.Timestamp("2021-01-01") + hours,
            "zoned": pd.Timestamp("2021-01-01", tz="Europe/Berlin") + hours,
            "written": [f"{day:02d}.03.2021 10:30" for day in rng.integers(1, 28, N)],
            "lasts": hours,
            "name": [f"row {number}" for number in range(N)],
        }
    )


TABLES = {
    "array": numbers,
    "float32": lambda: numbers(np.float32),
    "frame": lambda: pd.DataFrame(numbers()).add_prefix("x"),
}
TABLE_ESTIMATORS = [model for model in ESTIMATORS if model.__sklearn_tags__().input_tags.string]
TABULAR = [
    *(model for model in TABLE_ESTIMATORS if not isinstance(model, cb.PosteriorMixture)),
    cb.CategoricalNB(),
    cb.PosteriorMixture(models=[("kernel", cb.KernelNB()), ("tree", cb.TreeAugmentedNB())], cv=2),
    cb.NaiveBayes(discretize="kmeans", max_levels=2),
    cb.NaiveBayes(kinds={"x": "kernel", "whole": "poisson", "flag": "bernoulli"}),
    cb.TreeAugmentedNB(per_class=True, discretize="mdl"),
    cb.LinearDiscriminantAnalysis(encoder="dense"),
    cb.QuadraticDiscriminantAnalysis(encoder="dense"),
    cb.TradeOffCV(cb.NaiveBayes(discretize="kmeans"), cv=2),
    cb.BayesClassifier(families=["kernel", "near", ("trade-off", cb.TradeOffCV(cb.KernelNB(), cv=2))], cv=2),
]

ALLOWS_EMPTY = [cb.BayesClassifier(), cb.JointKernelClassifier()]


def trained(estimator, X, **options):
    model = clone(estimator)
    short = {"max_iter": 2, "stop": None} if "max_iter" in model.get_params() else {}
    return model.set_params(**short).fit(X, labels(), **options)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("estimator", ESTIMATORS, **IDS)
def test_what_fit_makes_passes(estimator, table):
    model = trained(estimator, TABLES[table]())
    assert {type(model), ColumnConversion} <= set(verify_all(model))


@pytest.mark.parametrize("estimator", ESTIMATORS, **IDS)
def test_an_estimator_that_is_not_fitted_passes(estimator):
    verify_all(clone(estimator))


@pytest.mark.parametrize("estimator", ESTIMATORS, **IDS)
def test_weighted_rows_pass(estimator):
    weight = np.where(np.arange(N) < 30, 1e-6, 1e6)
    verify_all(trained(estimator, numbers(), sample_weight=weight))


@pytest.mark.parametrize("estimator", TABULAR, **IDS)
def test_a_mixed_table_passes(estimator):
    model = trained(estimator, mixed().drop(columns="empty"))
    assert {type(model), ColumnConversion} <= set(verify_all(model))


@pytest.mark.parametrize("estimator", ALLOWS_EMPTY, **IDS)
def test_a_column_without_values_passes(estimator):
    model = trained(estimator, mixed())
    assert {type(model), Dates, DateFormat} <= set(verify_all(model))


@pytest.mark.parametrize("estimator", GENERATIVE, **IDS)
def test_what_partial_fit_makes_passes(estimator):
    model = clone(estimator).set_params(max_iter=2, stop=None)
    X, y = numbers(), labels()
    for rows in (slice(0, 3), slice(3, 40), slice(40, N)):
        verify_all(model.partial_fit(X[rows], y[rows], classes=["a", "b", "c"]))


def test_other_class_frequencies_pass():
    for model in (cb.GaussianNB(), cb.BayesClassifier(families=["kernel", "near"], cv=2)):
        verify_all(trained(model, numbers()).with_priors({"a": 0.2, "b": 0.3, "c": 0.5}))


# -- damaged attributes ----------------------------------------------------------------------------------------------


def damaged(model, **changes):
    """A copy of a fitted estimator with other attributes; None removes one."""
    other = copy.copy(model)
    other.__dict__ = {**vars(model), **changes}
    for name in [name for name, value in changes.items() if value is None]:
        del other.__dict__[name]
    return other


@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if not isinstance(e, cb.TradeOffCV)], **IDS)
def test_columns_that_do_not_fit_are_refused(estimator):
    model = trained(estimator, TABLES["frame"]())
    names, conversion = model.feature_names_in_, model.conversion_
    for changes in (
        {"n_features_in_": model.n_features_in_ + 1},
        {"n_features_in_": 5.5},
        {"n_features_in_": "5"},
        {"n_features_in_": None},
        {"feature_names_in_": names[::-1]},
        {"feature_names_in_": names[:-1]},
        {"feature_names_in_": list(names)},
        {"conversion_": None},
        {"conversion_": names},
        {"conversion_": replace(conversion, names=conversion.names[::-1])},
        {
            "conversion_": replace(conversion, names=conversion.names[1:], types=()),
            "n_features_in_": 4,
            "feature_names_in_": names[1:],
        },
        {"training_table_": None},
        {"training_table_": replace(model.training_table_, columns=model.training_table_.columns[::-1])},
        {"predict_": 1},
    ):
        with pytest.raises(ValueError, match=r"\w"):
            damaged(model, **changes).verify()


JOINT = trained(cb.JointKernelClassifier(), numbers())
LINEAR = trained(cb.SparseLogBivariateClassifier(), numbers())
UNIVARIATE = trained(cb.LogUnivariateClassifier(C=1.0), numbers())
FEATURES = trained(cb.LogDensityFeatures(selection=None), numbers())
TRADE_OFF = trained(cb.TradeOffCV(cv=2), numbers())
NAIVE = trained(cb.GaussianNB(), numbers())
NUMBERS_FITTED = {"n_features_in_", "bandwidth_step_", "prior_rows_", "C_"}
"""Attributes that any positive number fits, or that of columns."""
BINARY = cb.JointKernelClassifier().fit(numbers(), labels() == "a")


def test_a_frame_of_other_columns_is_refused():
    model = trained(cb.GaussianNB(), TABLES["frame"]())
    origin = model.fitted_.binding.origin
    shorter = replace(
        origin, labels=origin.labels[1:], categorical=origin.categorical[1:], days=origin.days[1:]
    )
    shorter.verify()
    binding = replace(model.fitted_.binding, origin=shorter)
    with pytest.raises(ValueError, match="labels of the training frame"):
        damaged(model, fitted_=replace(model.fitted_, binding=binding)).verify()


@pytest.mark.parametrize("model", [JOINT, LINEAR, UNIVARIATE, FEATURES, TRADE_OFF], **IDS)
def test_attributes_that_are_lacking_are_refused(model):
    required = {name for name in vars(model) if name.endswith("_")} - {
        "left_out_log_loss_",
        "cv_results_",
        "dependence_",
    }
    assert len(required) > 3 or model is TRADE_OFF
    for name in required:
        with pytest.raises(ValueError, match=f"no {name}"):
            damaged(model, **{name: None}).verify()


@pytest.mark.parametrize("junk", [5, "x", np.nan, [1], {}, {"a": 1}, np.zeros((1, 7)), JOINT], ids=repr)
@pytest.mark.parametrize("model", [JOINT, LINEAR, UNIVARIATE, FEATURES, TRADE_OFF, NAIVE], **IDS)
def test_an_attribute_that_is_something_else_is_refused(model, junk):
    for name in [name for name in vars(model) if name.endswith("_")]:
        if isinstance(junk, int) and name in NUMBERS_FITTED:
            continue
        with pytest.raises(ValueError, match=r"\w"):
            damaged(model, **{name: junk}).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"classes_": JOINT.classes_[:-1]},
        {"classes_": JOINT.classes_[::-1]},
        {"classes_": np.array(["a", None, "c"], dtype=object)},
        {"classes_": JOINT.classes_.tolist()},
        {"density_": BINARY.density_},
        {"schema_": Schema(JOINT.schema_.columns[:-1])},
        {"bandwidth_step_": -1},
        {"bandwidth_step_": 15},
        {"bandwidth_step_": 1.5},
        {"bandwidth_step_": np.nan},
        {"prior_rows_": -1.0},
        {"prior_rows_": np.inf},
        {"prior_rows_": "1"},
        {"relevance_": dict(list(JOINT.relevance_.items())[:-1])},
        {"relevance_": dict.fromkeys(JOINT.relevance_, np.nan)},
        {"left_out_log_loss_": np.zeros((8, 14))},
    ],
    ids=str,
)
def test_a_kernel_classifier_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        damaged(JOINT, **changes).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": JOINT.density_.scale[:-1]},
        {"scale": -JOINT.density_.scale},
        {"scale": 2.0 * JOINT.density_.scale, "square": 4.0 * JOINT.density_.square},
        {"scale": JOINT.density_.scale * np.nan},
        {"square": 0.0},
        {"square": np.nan},
        {"square": 2.0 * JOINT.density_.square},
        {"centers": replace(JOINT.density_.centers, rows=JOINT.density_.centers.rows[:, :-1])},
        {"encoder": replace(JOINT.density_.encoder, leaves_missing=False)},
        {"encoder": type(JOINT.density_.encoder)()},
    ],
    ids=str,
)
def test_a_joint_density_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        replace(JOINT.density_, **changes).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"classes_": LINEAR.classes_[:-1]},
        {"coef_": LINEAR.coef_[:-1]},
        {"coef_": LINEAR.coef_[:, :-1]},
        {"coef_": LINEAR.coef_ * np.nan},
        {"coef_": LINEAR.coef_.astype(object)},
        {"intercept_": LINEAR.intercept_[:-1]},
        {"C_": 0.0},
        {"C_": np.inf},
        {"feature_names_": LINEAR.feature_names_[:-1]},
        {"densities_": FEATURES.densities_},
        {"densities_": replace(LINEAR.densities_, varying=LINEAR.densities_.varying + 9)},
        {"cv_results_": {**LINEAR.cv_results_, "loss": LINEAR.cv_results_["loss"][:-1]}},
        {"cv_results_": {"loss": LINEAR.cv_results_["loss"]}},
        {"cv_results_": 1},
        {"dependence_": replace(LINEAR.dependence_, names=LINEAR.dependence_.names[::-1])},
        {"dependence_": replace(LINEAR.dependence_, classes=("a", "b", "c"))},
    ],
    ids=str,
)
def test_a_linear_classifier_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        damaged(LINEAR, **changes).verify()


DENSITIES = FEATURES.densities_


@pytest.mark.parametrize(
    "changes",
    [
        {"varying": DENSITIES.varying[:-1]},
        {"varying": DENSITIES.varying[::-1]},
        {"varying": DENSITIES.varying - 1},
        {"varying": DENSITIES.varying.astype(float)},
        {"center": DENSITIES.center[:-1]},
        {"center": DENSITIES.center * np.nan},
        {"scale": DENSITIES.scale * 0.0},
        {"scores": replace(UNIVARIATE.densities_.scores, knots=UNIVARIATE.densities_.scores.knots[:-1])},
        {"kernels": []},
        {"kernels": DENSITIES.kernels[:-1]},
        {"pair_codes": DENSITIES.pair_codes[:-1]},
        {"pair_codes": DENSITIES.pair_codes + 1},
        {"pairs": DENSITIES.pairs[:, :-1]},
        {"pairs": DENSITIES.pairs[::-1]},
        {"pairs": DENSITIES.pairs + 1},
        {"floor": 0.0},
        {"floor": np.nan},
    ],
    ids=str,
)
def test_log_densities_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        replace(DENSITIES, **changes).verify()


@pytest.mark.parametrize("field", ["names", "classes", "statistics", "p_values"])
def test_a_table_of_dependence_that_does_not_fit_is_refused(field):
    table = FEATURES.dependence_
    assert isinstance(table, Dependence)
    table.verify()
    with pytest.raises(ValueError, match=r"statistics|p_values"):
        replace(table, **{field: getattr(table, field)[:-1]}).verify()


def test_p_values_are_probabilities():
    table = FEATURES.dependence_
    for wrong in (table.p_values - 2.0, table.p_values + 2.0, table.p_values.astype(str)):
        with pytest.raises(ValueError, match="p_values"):
            replace(table, p_values=wrong).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"lam_": -0.1},
        {"lam_": 1.5},
        {"lam_": np.nan},
        {"lam_": 0.123},
        {"estimator_": cb.GaussianNB()},
        {"estimator_": JOINT},
        {"n_features_in_": 4},
        {"feature_names_in_": np.array(list("abcde"), dtype=object)},
        {"cv_results_": {**TRADE_OFF.cv_results_, "error": TRADE_OFF.cv_results_["error"][:-1]}},
        {"cv_results_": {**TRADE_OFF.cv_results_, "error": -1.0 - TRADE_OFF.cv_results_["error"]}},
        {"cv_results_": {}},
    ],
    ids=str,
)
def test_a_trade_off_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        damaged(TRADE_OFF, **changes).verify()


ENSEMBLE = trained(cb.BayesClassifier(families=["kernel", "near"], cv=2), numbers()).fitted_
PATH = next(iter(ENSEMBLE.paths.values()))


def test_the_ensemble_of_these_tests_has_members():
    assert len(ENSEMBLE.models) == 2
    ENSEMBLE.verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": ENSEMBLE.classes[:-1]},
        {"classes": ENSEMBLE.classes[::-1]},
        {"names": ENSEMBLE.names[:-1]},
        {"names": ()},
        {"schema": Schema(())},
        {"class_frequencies": ENSEMBLE.class_frequencies[:-1]},
        {"class_frequencies": ENSEMBLE.class_frequencies * 2},
        {"class_frequencies": np.array([0.0, 0.5, 0.5])},
        {"priors": np.array([0.5, 0.5])},
        {"priors": np.array([-0.5, 0.5, 1.0])},
        {"weights": dict.fromkeys(ENSEMBLE.weights, 0.5)},
        {"weights": dict.fromkeys(ENSEMBLE.weights, np.nan)},
        {"weights": {"kernel": -0.5, "near": 0.5, "class frequencies": 1.0}},
        {"weights": {"kernel": 0.0, "near": 0.5, "class frequencies": 0.5}},
        {"weights": dict(reversed(ENSEMBLE.weights.items()))},
        {"weights": {}},
        {"models": {}},
        {"models": {**ENSEMBLE.models, "other": BINARY}},
        {"models": {**ENSEMBLE.models, "near": BINARY}},
        {"models": {**ENSEMBLE.models, "near": trained(cb.KernelNB(), numbers()[:, :-1])}},
        {"models": {**ENSEMBLE.models, "near": cb.KernelNB()}},
        {"models": {**ENSEMBLE.models, "near": PATH}},
        {"paths": {}},
        {"density": BINARY},
        {"density": 1},
        {"tried_rows": -1},
        {"tried_rows": ENSEMBLE.rows + 1},
    ],
    ids=lambda changes: str(changes)[:80],
)
def test_an_ensemble_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        replace(ENSEMBLE, **changes).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"total_step": PATH.total_step[:-1]},
        {"log_loss": PATH.log_loss[:-1]},
        {"error": PATH.error[None]},
        {"total_step": -1.0 - PATH.total_step},
        {"best": -1},
        {"best": len(PATH.error)},
        {"temperature": 0.0},
        {"temperature": np.nan},
    ],
    ids=str,
)
def test_a_path_that_does_not_fit_is_refused(changes):
    with pytest.raises(ValueError, match=r"\w"):
        replace(PATH, **changes).verify()


def test_every_temperature_that_is_tried_passes():
    for log_temperature in LOG_TEMPERATURES:
        replace(PATH, temperature=float(np.exp(log_temperature))).verify()


def test_paths_with_further_fields():
    fields = NO_PATH.total_step, NO_PATH.log_loss, NO_PATH.error, 0
    for path in (NO_PATH, KernelPath(*fields), ShrinkagePath(*fields)):
        path.verify()
    for path in (
        KernelPath(*fields, prior_rows=-1.0),
        ShrinkagePath(*fields, factor=0.0),
        KernelPath(*fields[:3], 1),
    ):
        with pytest.raises(ValueError, match=r"prior_rows|factor|best"):
            path.verify()


def test_selections_of_columns():
    OfKind("binned", {"a": "categorical"}, "kernel").verify()
    Positions((3, 1)).verify()
    for wrong in (
        OfKind("other", {}, "kernel"),
        OfKind("binned", {"a": "b"}, "kernel"),
        Positions((1, 1)),
        Positions((-1,)),
    ):
        with pytest.raises(ValueError, match=r"unknown kind|chosen"):
            wrong.verify()
