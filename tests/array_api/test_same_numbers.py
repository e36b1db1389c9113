"""Models trained on a device have the numbers of NumPy's."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

from calibayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    GenerativeClassifier,
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
    TrainingOptions,
    every,
)
from calibayes.backends.device import array as placement
from calibayes.families import (
    Categorical,
    ClassPrior,
    Full,
    Gaussian,
    NormalInverseWishart,
    Spherical,
    TiedSpherical,
)
from calibayes.learn import Bootstrap, RandomParameters, SeveralStarts
from calibayes.rules import GDT, MAP, ML, RC, TM

NUMBERS, LABELS = make_classification(
    150, 6, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.2, random_state=0
)
CODES = np.clip((NUMBERS * 1.3 + 2).astype(np.int64), 0, 4)
FLAGS, COUNTS = (NUMBERS > 0).astype(np.float64), np.floor(np.abs(NUMBERS) * 2)
WEIGHT = np.random.default_rng(0).random(150) + 0.2
FAR = NUMBERS + np.where(LABELS == 1, 1e7, 0.0)[:, None]

CASES = {
    "naive": (GaussianNB(), NUMBERS),
    "float32": (GaussianNB(), NUMBERS.astype(np.float32)),
    "linear": (LinearDiscriminantAnalysis(), NUMBERS),
    "weighted": (LinearDiscriminantAnalysis(solver="lsqr", priors=[0.2, 0.3, 0.5]), NUMBERS),
    "quadratic": (QuadraticDiscriminantAnalysis(), NUMBERS),
    "regularized": (QuadraticDiscriminantAnalysis(reg_param=0.1, prior=NormalInverseWishart()), NUMBERS),
    "shrunken": (QuadraticDiscriminantAnalysis(shrinkage=0.2), NUMBERS),
    "far classes": (QuadraticDiscriminantAnalysis(), FAR),
    "far naive": (GaussianNB(var_smoothing=0.0), FAR),
    "logistic": (GenerativeLogisticRegression(), NUMBERS),
    "levels": (CategoricalNB(), CODES),
    "prior": (CategoricalNB(class_prior=[0.5, 0.3, 0.2]), CODES),
    "flags": (BernoulliNB(), FLAGS),
    "counts": (MultinomialNB(), COUNTS),
    "spheres": (GenerativeClassifier(families=[("x", Gaussian(Spherical()), every)]), NUMBERS),
    "one sphere": (GenerativeClassifier(families=[("x", Gaussian(TiedSpherical()), every)]), NUMBERS),
    "two families": (
        GenerativeClassifier(
            families=[("x", Gaussian(Full()), [0, 1, 2]), ("c", Categorical(alpha=1.0), [3, 4])],
            priors=ClassPrior(alpha=1.0),
        ),
        CODES,
    ),
}


def fitted(model, X, y, library, **options):
    with sklearn.config_context(array_api_dispatch=True):
        arrays = {name: library.array(value) for name, value in options.items()}
        return sklearn.clone(model).fit(library.array(X), library.array(y), **arrays)


def tolerance(X):
    """Relative difference of statistics that rounding explains.

    NumPy multiplies float32 rows in float32 where that is precise enough, a device in float64. Numbers far from 0 are
    known to their last digit only, and so are the class means about which moments are summed.
    """
    return 1e-5 if X.dtype == np.float32 else max(1e-10, 16 * np.finfo(float).eps * np.abs(X).max())


def assert_same_trees(left, right, rtol):
    for family, arrays in right.items():
        for name, expected in arrays.items():
            assert type(left[family][name]) is np.ndarray
            scale = np.abs(expected).max()
            assert_allclose(
                left[family][name] / scale, expected / scale, rtol=0, atol=rtol, err_msg=f"{family} {name}"
            )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("case", "rule"),
    [(case, RC()) for case in CASES]
    + [
        (case, rule)
        for case in ("naive", "linear", "quadratic", "levels", "counts")
        for rule in (ML(), GDT())
    ],
    ids=str,
)
def test_statistics_parameters_and_predictions_are_those_of_numpy(library, case, rule):
    model, X = CASES[case]
    model = sklearn.clone(model).set_params(rule=rule, max_iter=4)
    expected = sklearn.clone(model).fit(X, LABELS, sample_weight=WEIGHT)
    found = fitted(model, X, LABELS, library, sample_weight=WEIGHT)
    assert found.n_iter_ == expected.n_iter_
    rtol = tolerance(X)
    assert_same_trees(found.statistics_, expected.statistics_, rtol)
    assert_same_trees(found.parameters_, expected.parameters_, 100 * rtol)
    with sklearn.config_context(array_api_dispatch=True):
        probability = library.numpy(found.predict_proba(library.array(X)))
        density = library.numpy(found.score_samples(library.array(X)))
        classes = library.numpy(found.predict(library.array(X)))
    assert probability.dtype == expected.predict_proba(X).dtype
    assert_allclose(probability, expected.predict_proba(X), atol=1e-4 if X.dtype == np.float32 else 1e-8)
    assert_allclose(density, expected.score_samples(X), rtol=1e-4 if X.dtype == np.float32 else 1e-8)
    assert (classes == expected.predict(X)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("rule", [MAP(), TM(), "dfe"], ids=str)
def test_other_rules(library, rule):
    model = CategoricalNB(rule=rule, max_iter=5, class_weight="balanced")
    expected, found = model.fit(CODES, LABELS), fitted(model, CODES, LABELS, library)
    assert_same_trees(found.parameters_, expected.parameters_, 1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "start",
    [RandomParameters(1), SeveralStarts([Bootstrap(0), RandomParameters(0)])],
    ids=["random", "several"],
)
@pytest.mark.parametrize(
    ("model", "X"),
    [(CategoricalNB(), CODES), (QuadraticDiscriminantAnalysis(), NUMBERS)],
    ids=["counts", "moments"],
)
def test_random_starts_and_frozen_classes(library, start, model, X):
    training = TrainingOptions(start=start)
    model.set_params(rule=TM(step=3.0, invalid="by_class"), max_iter=8, training=training, stop=None)
    expected, found = model.fit(X, LABELS), fitted(model, X, LABELS, library)
    assert expected.history_["frozen"].any()
    assert_same_trees(found.parameters_, expected.parameters_, 1e-10)


@pytest.mark.parametrize(
    "rule",
    ["em", RC(unlabeled=0.5), GDT(0.3, unlabeled=0.5), GDT(0.3, unlabeled=0.5, prior_weight=2.0)],
    ids=str,
)
def test_rows_without_a_label(library, rule):
    y = np.where(np.arange(150) % 3, LABELS.astype(np.float64), np.nan)
    model = GaussianNB(rule=rule, max_iter=5, stop=None)
    expected, found = sklearn.clone(model).fit(NUMBERS, y), fitted(model, NUMBERS, y, library)
    assert_same_trees(found.parameters_, expected.parameters_, 1e-10)


def test_complement(library):
    expected, found = ComplementNB().fit(COUNTS, LABELS), fitted(ComplementNB(), COUNTS, LABELS, library)
    assert_same_trees(found.parameters_, expected.parameters_, 1e-12)


def test_held_out_rows_and_temperature(library):
    options = TrainingOptions(validation_fraction=0.3, temperature="auto")
    model = QuadraticDiscriminantAnalysis(max_iter=8, stop=None, random_state=0, training=options)
    expected, found = sklearn.clone(model).fit(NUMBERS, LABELS), fitted(model, NUMBERS, LABELS, library)
    assert found.best_iter_ == expected.best_iter_
    assert_allclose(found.temperature_, expected.temperature_, rtol=1e-6)
    assert_same_trees(found.parameters_, expected.parameters_, 1e-8)


def test_partial_fit(library):
    model = GaussianNB(rule="ml").fit(NUMBERS, LABELS)
    found = GaussianNB(rule="ml")
    with sklearn.config_context(array_api_dispatch=True):
        for rows in (slice(0, 50), slice(50, 150)):
            found.partial_fit(
                library.array(NUMBERS[rows]), library.array(LABELS[rows]), classes=library.array([0, 1, 2])
            )
    assert_allclose(found.parameters_["columns"]["mean"], model.parameters_["columns"]["mean"], rtol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", ["naive", "linear", "quadratic", "levels", "flags", "counts", "far classes"])
def test_ranges_of_rows_do_not_matter(library, monkeypatch, case):
    model, X = CASES[case]
    model = sklearn.clone(model).set_params(max_iter=3)
    whole = fitted(model, X, LABELS, library)
    monkeypatch.setattr(placement, "TEMPORARY_BYTES", 20_000)
    parts = fitted(model, X, LABELS, library)
    assert_same_trees(parts.parameters_, whole.parameters_, 1e-10)
