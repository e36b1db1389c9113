"""`from_sklearn`: scikit-learn's predictions, and the arithmetic of calibayes on the rebuilt statistics."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn import discriminant_analysis, naive_bayes
from sklearn.covariance import OAS
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes
from calibayes import from_sklearn

NUMBERS, LABELS = load_iris(return_X_y=True)
COUNTS = np.rint(NUMBERS * 2)
LDA = partial(discriminant_analysis.LinearDiscriminantAnalysis, store_covariance=True)
QDA = discriminant_analysis.QuadraticDiscriminantAnalysis
PRIORS = np.array([0.2, 0.3, 0.5])
WEIGHTS = 0.5 + np.arange(len(LABELS)) % 3

COUNTED = {
    "gaussian": naive_bayes.GaussianNB(),
    "gaussian, priors": naive_bayes.GaussianNB(priors=PRIORS),
    "gaussian, smoothed": naive_bayes.GaussianNB(var_smoothing=0.1),
    "bernoulli": naive_bayes.BernoulliNB(binarize=5.0),
    "bernoulli, alpha": naive_bayes.BernoulliNB(alpha=0.1, binarize=3.0, fit_prior=False),
    "multinomial": naive_bayes.MultinomialNB(),
    "multinomial, alphas": naive_bayes.MultinomialNB(alpha=[0.5, 1.0, 2.0, 0.1], class_prior=PRIORS),
    "complement": naive_bayes.ComplementNB(),
    "complement, norm": naive_bayes.ComplementNB(norm=True, alpha=0.3),
    "categorical": naive_bayes.CategoricalNB(),
    "categorical, least": naive_bayes.CategoricalNB(min_categories=30, alpha=0.2, class_prior=PRIORS),
}
ADDITIVE = {
    "linear, svd": LDA(),
    "linear, svd, even": LDA(priors=[1 / 3, 1 / 3, 1 / 3]),
    "linear, lsqr": LDA("lsqr"),
    "linear, eigen": LDA("eigen", n_components=1),
    "linear, shrunk": LDA("lsqr", shrinkage=0.3),
    "quadratic": QDA(),
    "quadratic, priors": QDA(priors=PRIORS),
    "quadratic, regularized": QDA(reg_param=0.2),
    "quadratic, shrunk": QDA(solver="eigen", shrinkage=0.2, reg_param=0.1),
}
OTHER = {
    "linear, averaged": LDA("eigen", priors=PRIORS),
    "linear, auto": LDA("lsqr", shrinkage="auto"),
    "linear, auto, priors": LDA("lsqr", shrinkage="auto", priors=PRIORS),
    "linear, estimator": LDA("eigen", covariance_estimator=OAS()),
    "linear, sphere": LDA("eigen", shrinkage=1.0),
    "quadratic, auto": QDA(solver="eigen", shrinkage="auto"),
    "quadratic, identity": QDA(reg_param=1.0),
}
UNCOUNTED = ("linear, averaged", "linear, sphere", "quadratic, identity")
"""Cases of which too little is left to count rows."""
CASES = {**COUNTED, **ADDITIVE, **OTHER}


def table_of(case):
    if case.startswith("categorical"):
        return COUNTS.astype(int) % 5
    return NUMBERS if case.startswith(("gaussian", "linear", "quadratic")) else COUNTS.astype(int)


def rows_of(case, labels=LABELS):
    """The argument ``rows`` for a case that was fitted to labels."""
    if case in COUNTED:
        return None
    return len(labels) if CASES[case].priors is None else np.bincount(labels)


def fitted(case, keep=slice(None)):
    """scikit-learn's estimator, fitted to some rows, and ours made of it."""
    theirs = CASES[case].fit(table_of(case)[keep], LABELS[keep])
    return theirs, from_sklearn(theirs, rows=rows_of(case, LABELS[keep]))


def assert_same_predictions(ours, theirs, X, tolerance=1e-10):
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=tolerance)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


@pytest.mark.parametrize("case", CASES)
def test_predictions_are_those_of_scikit_learn(case):
    X = table_of(case)
    theirs, ours = fitted(case)
    assert_same_predictions(ours, theirs, X)
    assert type(ours) is getattr(calibayes, type(theirs).__name__)
    assert ours.training_table_.rows == (0 if case in UNCOUNTED else 150)


@pytest.mark.parametrize("case", COUNTED)
def test_weighted_rows(case):
    X = table_of(case)
    theirs = CASES[case].fit(X, LABELS, sample_weight=WEIGHTS)
    ours = from_sklearn(theirs)
    assert_same_predictions(ours, theirs, X)
    np.testing.assert_allclose(ours.class_count_, theirs.class_count_)


@pytest.mark.parametrize("case", COUNTED)
def test_rows_in_several_calls(case):
    X, theirs = table_of(case), CASES[case]
    for attribute in [name for name in vars(theirs) if name.endswith("_")]:
        delattr(theirs, attribute)
    for part in range(3):
        theirs.partial_fit(X[part::3], LABELS[part::3], classes=[0, 1, 2])
    assert_same_predictions(from_sklearn(theirs), theirs, X)


@pytest.mark.parametrize("case", {**COUNTED, **ADDITIVE})
def test_merged_models_and_further_rows_are_those_of_all_rows(case):
    X, even, odd = table_of(case), np.arange(0, 150, 2), np.arange(1, 150, 2)
    first, second = fitted(case, even)[1], fitted(case, odd)[1]
    theirs = CASES[case].fit(X, LABELS)
    assert_same_predictions(first.merge(second), theirs, X, 1e-9)
    assert_same_predictions(second.partial_fit(X[even], LABELS[even]), theirs, X, 1e-9)


@pytest.mark.parametrize("case", {**COUNTED, **ADDITIVE})
def test_forgotten_rows_were_never_there(case):
    X = table_of(case)
    left = fitted(case)[1].forget(X[::5], LABELS[::5])
    keep = np.arange(150) % 5 > 0
    assert_same_predictions(left, CASES[case].fit(X[keep], LABELS[keep]), X, 1e-9)


@pytest.mark.parametrize("case", [case for case in {**COUNTED, **ADDITIVE} if "complement" not in case])
def test_calibration_lowers_the_training_loss(case):
    X, ours = table_of(case), fitted(case)[1].set_params(max_iter=5, stop=None)
    calibrated = ours.calibrate(X, LABELS)
    before, after = (log_loss(LABELS, model.predict_proba(X)) for model in (ours, calibrated))
    assert after < before
    assert (calibrated.rule, ours.rule) == ("rc", "ml")


@pytest.mark.parametrize(
    "case", [case for case in CASES if "," not in case or case in OTHER or "svd" in case]
)
def test_saved_and_explained(case, tmp_path):
    X = table_of(case)
    theirs, ours = fitted(case)
    calibayes.save(ours, tmp_path / "model.safetensors")
    assert_same_predictions(calibayes.load(tmp_path / "model.safetensors"), theirs, X)
    if "complement" not in case:
        explained = ours.explain(X[:5], against=ours.classes_[-1])
        log_odds = [ours.predict_log_proba(X[:5])[:, c] for c in (0, 2)]
        np.testing.assert_allclose(explained.log_odds, log_odds[0] - log_odds[1], atol=1e-8)


@pytest.mark.parametrize("case", [*ADDITIVE, *OTHER])
def test_discriminant_analysis_without_the_number_of_rows(case):
    theirs = CASES[case].fit(NUMBERS, LABELS)
    ours = from_sklearn(theirs)
    assert_same_predictions(ours, theirs, NUMBERS)
    for change in (ours.partial_fit, ours.forget, ours.calibrate):
        with pytest.raises(ValueError, match=r"rows=\.\.\.|all rows at once"):
            change(NUMBERS, LABELS)
    with pytest.raises(ValueError, match=r"rows=\.\.\.|all rows at once"):
        ours.merge(ours)


@pytest.mark.parametrize("case", OTHER)
def test_what_was_not_kept_is_refused(case):
    ours = fitted(case)[1]
    with pytest.raises(
        ValueError, match=r"average of the covariances|all rows at once|nothing of the covariance"
    ):
        ours.partial_fit(NUMBERS, LABELS)


@pytest.mark.parametrize("case", ["bernoulli", "multinomial", "complement"])
def test_sparse_rows(case):
    X = csr_array(table_of(case))
    theirs = CASES[case].fit(X, LABELS)
    assert_same_predictions(from_sklearn(theirs), theirs, X)


@pytest.mark.parametrize("case", ["gaussian", "categorical", "quadratic"])
def test_names_of_columns(case):
    frame = pd.DataFrame(table_of(case), columns=["a", "b", "c", "d"])
    theirs = CASES[case].fit(frame, LABELS.astype(str))
    ours = from_sklearn(theirs)
    assert_same_predictions(ours, theirs, frame)
    assert ours.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        ours.predict(frame.rename(columns={"a": "z"}))


def test_two_classes_and_classes_that_are_far_apart():
    X, y = np.vstack([NUMBERS[:50], NUMBERS[50:100] + 1e9]), LABELS[:100]
    for case in ("gaussian", "linear, svd", "quadratic"):
        theirs = CASES[case].fit(NUMBERS[50:], LABELS[50:])
        assert_same_predictions(from_sklearn(theirs), theirs, NUMBERS)
    theirs = CASES["gaussian"].fit(X, y)
    np.testing.assert_allclose(from_sklearn(theirs).var_, theirs.var_, rtol=1e-10)


def test_single_precision():
    for case in ("gaussian", "linear, svd", "quadratic"):
        X = NUMBERS.astype(np.float32)
        theirs = CASES[case].fit(X, LABELS)
        np.testing.assert_allclose(from_sklearn(theirs).predict_proba(X), theirs.predict_proba(X), atol=1e-3)


def test_a_class_without_rows():
    theirs = naive_bayes.GaussianNB().partial_fit(NUMBERS[:100], LABELS[:100], classes=[0, 1, 2])
    with np.errstate(divide="ignore"):
        expected = theirs.predict_proba(NUMBERS)
    ours = from_sklearn(theirs)
    np.testing.assert_allclose(ours.predict_proba(NUMBERS), expected, atol=1e-10)
    with pytest.raises(ValueError, match="no rows"):
        ours.calibrate(NUMBERS, LABELS)


def test_counts_of_zero_have_the_least_probability():
    X = np.array([[1, 0], [2, 1], [0, 3]])
    with pytest.warns(RuntimeWarning):
        theirs = naive_bayes.MultinomialNB(alpha=0.0).fit(X, [0, 1, 2])
    np.testing.assert_allclose(
        from_sklearn(theirs).predict_proba(X[1:2]), theirs.predict_proba(X[1:2]), atol=1e-10
    )


def test_what_is_taken():
    with pytest.raises(
        TypeError, match=r"takes scikit-learn's GaussianNB, .*got sklearn.pipeline.Pipeline.*pipeline\[-1\]"
    ):
        from_sklearn(make_pipeline(StandardScaler(), naive_bayes.GaussianNB()))
    with pytest.raises(TypeError, match="got the class GaussianNB"):
        from_sklearn(naive_bayes.GaussianNB)
    with pytest.raises(NotFittedError):
        from_sklearn(naive_bayes.GaussianNB())
    with pytest.raises(ValueError, match="keeps class_count_"):
        from_sklearn(naive_bayes.GaussianNB().fit(NUMBERS, LABELS), rows=150)


def test_what_does_not_determine_the_model():
    with pytest.raises(ValueError, match="store_covariance=True"):
        from_sklearn(discriminant_analysis.LinearDiscriminantAnalysis().fit(NUMBERS, LABELS))
    with pytest.raises(ValueError, match="stores another covariance"):
        from_sklearn(LDA(priors=PRIORS).fit(np.exp(NUMBERS * LABELS[:, None] / 3) * NUMBERS, LABELS))
    repeated = np.hstack([NUMBERS, NUMBERS[:, :1]])
    with pytest.raises(ValueError, match="singular"):
        from_sklearn(LDA().fit(repeated, LABELS))
    changed = naive_bayes.MultinomialNB().fit(COUNTS, LABELS).set_params(alpha=100.0)
    with pytest.raises(ValueError, match="feature_log_prob_ does not follow"):
        from_sklearn(changed)


@pytest.mark.parametrize("rows", [0, -3, np.nan, [50, 50], [1, 2, 147]])
def test_invalid_numbers_of_rows(rows):
    with pytest.raises(ValueError, match="rows"):
        from_sklearn(QDA().fit(NUMBERS, LABELS), rows=rows)


def test_priors_need_the_rows_of_each_class():
    with pytest.raises(ValueError, match=r"3 numbers, those of the classes \[0, 1, 2\]"):
        from_sklearn(QDA(priors=PRIORS).fit(NUMBERS, LABELS), rows=150)
