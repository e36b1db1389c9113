"""Classes that are far apart in relation to their spread keep their covariances."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

import calibayes as cb

SEPARATIONS = [10.0**power for power in range(3, 10)]
ESTIMATORS = [
    lambda **options: cb.GaussianNB(var_smoothing=0.0, **options),
    cb.LinearDiscriminantAnalysis,
    cb.QuadraticDiscriminantAnalysis,
    cb.GenerativeLogisticRegression,
]
EVERY = pytest.mark.parametrize("estimator", ESTIMATORS, ids=["nb", "lda", "qda", "logistic"])


def classes_apart(separation, n=240, seed=0):
    """Two classes that overlap and one far from both, on a grid, so that adding the distance is exact."""
    rng, y = np.random.default_rng(seed), np.arange(n) % 3
    X = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -0.3], [0.0, 0.0, 1.0]])
    X[y == 1] += 1.5
    X = np.round(X * 2**10) / 2**10
    X[y == 2] += np.round(separation)
    return X, y


def exact_covariances(X, y):
    """Covariance of each class in extended precision, from rows about their mean."""
    covariances = []
    for c in range(3):
        rows = X[y == c].astype(np.longdouble)
        rows = rows - rows.mean(axis=0)
        covariances.append(np.einsum("ni,nj->ij", rows, rows) / len(rows))
    return np.array(covariances, dtype=np.float64)


def covariances_of(model):
    """All covariances or variances of a fitted model."""
    parameters = model.parameters_["columns"]
    return parameters["covariance"] if "covariance" in parameters else parameters["variance"]


def expected_covariances(model, X, y):
    exact = exact_covariances(X, y)
    if isinstance(model, cb.GaussianNB):
        return np.diagonal(exact, axis1=1, axis2=2)
    if isinstance(model, cb.LinearDiscriminantAnalysis):
        return exact.mean(axis=0)[None]
    if isinstance(model, cb.GenerativeLogisticRegression):
        return np.broadcast_to(np.diag(exact.mean(axis=0)), (3, 3))
    return exact


@pytest.mark.parametrize("separation", SEPARATIONS)
@EVERY
class TestFarClasses:
    def test_covariances_keep_their_digits(self, estimator, separation):
        X, y = classes_apart(separation)
        model = estimator(rule="ml").fit(X, y)
        assert_allclose(covariances_of(model), expected_covariances(model, X, y), rtol=1e-8, atol=1e-9)

    @pytest.mark.parametrize("rule", ["ml", "rc"])
    def test_the_other_classes_are_told_apart_as_if_it_were_near(self, estimator, separation, rule):
        far, y = classes_apart(separation)
        near, _ = classes_apart(200.0)
        options = {"rule": rule} | ({"max_iter": 5, "stop": None} if rule == "rc" else {})
        models = [estimator(**options).fit(rows, y) for rows in (near, far)]
        first, second = (model.predict_proba(rows) for model, rows in zip(models, (near, far), strict=True))
        assert_allclose(second, first, rtol=1e-5, atol=1e-7)
        assert_array_equal(models[0].predict(near), models[1].predict(far))


@pytest.mark.parametrize("separation", [1e5, 1e7, 1e9])
@EVERY
class TestSums:
    def fitted(self, estimator, separation):
        X, y = classes_apart(separation)
        return X, y, estimator(rule="ml").fit(X, y)

    def assert_same(self, model, whole, rtol=1e-8):
        assert_allclose(covariances_of(model), covariances_of(whole), rtol=rtol, atol=1e-9)
        assert_allclose(
            model.parameters_["columns"]["mean"], whole.parameters_["columns"]["mean"], rtol=1e-12, atol=1e-9
        )

    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")
    @pytest.mark.parametrize("cuts", [(120,), (30, 90, 200), (1, 2, 3, 4, 5, 6), (2, 50)])
    def test_any_split_of_the_rows(self, estimator, separation, cuts):
        X, y, whole = self.fitted(estimator, separation)
        model = estimator(rule="ml")
        for part in np.split(np.arange(len(y)), cuts):
            model.partial_fit(X[part], y[part], classes=[0, 1, 2])
        self.assert_same(model, whole, rtol=1e-6)

    def test_merge(self, estimator, separation):
        X, y, whole = self.fitted(estimator, separation)
        first, second = (
            estimator(rule="ml").fit(X[rows], y[rows]) for rows in (slice(None, 99), slice(99, None))
        )
        self.assert_same(first.merge(second), whole)
        self.assert_same(second.merge(first), whole)

    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")
    def test_merge_with_a_model_that_lacks_the_far_class(self, estimator, separation):
        X, y, whole = self.fitted(estimator, separation)
        early = (y < 2) & (np.arange(len(y)) < 100)
        near, rest = (
            estimator(rule="ml").partial_fit(X[rows], y[rows], classes=[0, 1, 2]) for rows in (early, ~early)
        )
        self.assert_same(near.merge(rest), whole)
        self.assert_same(rest.merge(near), whole)

    def test_forget(self, estimator, separation):
        X, y, whole = self.fitted(estimator, separation)
        extra, labels = classes_apart(separation, n=30, seed=1)
        both = estimator(rule="ml").fit(np.vstack([X, extra]), np.concatenate([y, labels]))
        self.assert_same(both.forget(extra, labels), whole)

    def test_threads(self, estimator, separation):
        X, y, whole = self.fitted(estimator, separation)
        for n_jobs in (1, 2):
            model = estimator(rule="ml", n_jobs=n_jobs).fit(X, y)
            assert_array_equal(covariances_of(model), covariances_of(whole))

    def test_closed_form_cross_validation(self, estimator, separation):
        X, y, _ = self.fitted(estimator, separation)
        splitter = StratifiedKFold(3)
        quick = cb.cross_validate_closed_form(estimator(rule="ml"), X, y, cv=splitter)
        train, test = next(splitter.split(X, y))
        refitted = estimator(rule="ml").fit(X[train], y[train])
        assert_allclose(
            np.exp(quick.log_probability[test]), refitted.predict_proba(X[test]), rtol=1e-6, atol=1e-9
        )


@pytest.mark.parametrize("separation", [1e5, 1e7])
@pytest.mark.parametrize("covariance", ["full", "diagonal", "tied", "tree"])
def test_components_of_mixtures(covariance, separation):
    far, y = classes_apart(separation)
    near, _ = classes_apart(200.0)
    models = [
        cb.MixtureDiscriminantAnalysis(rule="ml", n_components=(1, 1, 2), covariance=covariance, max_iter=5)
        for _ in range(2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first, second = (
            model.fit(rows, y).predict_proba(rows) for model, rows in zip(models, (near, far), strict=True)
        )
    assert_allclose(second, first, rtol=1e-4, atol=1e-6)
    assert_allclose(models[1].covariances_[0][0], models[0].covariances_[0][0], rtol=1e-6, atol=1e-9)


def test_missing_values_in_independent_columns():
    X, y = classes_apart(1e7)
    X[::7, 1] = np.nan
    model = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    expected = [[np.nanvar(X[y == c, j] - np.nanmean(X[y == c, j])) for j in range(3)] for c in range(3)]
    assert_allclose(model.var_, expected, rtol=1e-9)


def test_folds_of_a_trade_off_see_far_classes():
    X, y = classes_apart(1e7)
    model = cb.TradeOffCV(cb.GaussianNB(var_smoothing=0.0), cv=3, random_state=0).fit(X, y)
    near, _ = classes_apart(200.0)
    same = cb.TradeOffCV(cb.GaussianNB(var_smoothing=0.0), cv=3, random_state=0).fit(near, y)
    assert model.lam_ == same.lam_
    assert_allclose(model.predict_proba(X), same.predict_proba(near), rtol=1e-4, atol=1e-6)


class TestOrdinaryTables:
    @EVERY
    def test_moments_are_about_the_center(self, estimator):
        X, y = classes_apart(200.0)
        assert estimator(rule="ml").fit(X, y).fitted_.model.families["columns"].offsets is None

    @pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning")
    @EVERY
    def test_a_class_without_variance_gains_nothing_from_a_second_pass(self, estimator):
        X, y = classes_apart(3.0)
        X[:, 2] = np.where(y == 0, 5.0, 0.0)
        assert estimator(rule="ml").fit(X, y).fitted_.model.families["columns"].offsets is None

    def test_rounding_errors_of_the_values_are_no_variance(self):
        X, y = classes_apart(3.0)
        X[:, 2] = np.where(y == 0, np.where(np.arange(len(y)) % 2, 0.3, 0.1 + 0.2), X[:, 2])
        with pytest.warns(cb.SingularCovarianceWarning, match="no within-class variance in column 'x2'"):
            cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y)
