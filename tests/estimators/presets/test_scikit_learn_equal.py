"""Maximum likelihood equals scikit-learn where the models are the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import discriminant_analysis, naive_bayes
from sklearn.datasets import load_iris, load_wine, make_classification

import calibayes as cb


def numbers():
    X, y = make_classification(300, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    return X * [1, 10, 100, 1, 0.1, 1] + 3, np.array(["b", "a", "c"])[y]


def codes():
    X, y = numbers()
    return np.clip(np.round(np.abs(X[:, [0, 3, 5]])), 0, 4).astype(int), y


def test_gaussian_naive_bayes():
    X, y = numbers()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    ours = cb.GaussianNB(rule="ml").fit(X, y, weight)
    theirs = naive_bayes.GaussianNB().fit(X, y, weight)
    assert_allclose(ours.theta_, theirs.theta_, rtol=1e-10)
    # Its smoothing term does not see the weights, so the variances are compared without it.
    assert_allclose(ours.var_ - ours.epsilon_, theirs.var_ - theirs.epsilon_, rtol=1e-10)
    assert_allclose(ours.class_prior_, theirs.class_prior_, rtol=1e-12)
    assert_allclose(ours.class_count_, theirs.class_count_, rtol=1e-12)
    unweighted = cb.GaussianNB(rule="ml").fit(X, y), naive_bayes.GaussianNB().fit(X, y)
    assert_allclose(unweighted[0].epsilon_, unweighted[1].epsilon_, rtol=1e-10)
    assert_allclose(
        unweighted[0].predict_joint_log_proba(X), unweighted[1].predict_joint_log_proba(X), rtol=1e-9
    )


def test_categorical_naive_bayes_with_an_alpha_a_column():
    X, y = codes()
    alpha = [0.5, 1.0, 2.0]
    ours = cb.CategoricalNB(rule="ml", alpha=alpha).fit(X, y)
    for column, value in enumerate(alpha):
        single = naive_bayes.CategoricalNB(alpha=value).fit(X[:, [column]], y)
        assert_allclose(ours.feature_log_prob_[column], single.feature_log_prob_[0], rtol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("options", [{}, {"fit_prior": False}, {"class_prior": [0.2, 0.3, 0.5]}])
def test_categorical_naive_bayes(alpha, options):
    X, y = codes()
    ours = cb.CategoricalNB(rule="ml", alpha=alpha, min_categories=6, **options).fit(X, y)
    theirs = naive_bayes.CategoricalNB(alpha=alpha, min_categories=6, **options).fit(X, y)
    for actual, expected in zip(ours.feature_log_prob_, theirs.feature_log_prob_, strict=True):
        assert_allclose(actual, expected, rtol=1e-12)
    for actual, expected in zip(ours.category_count_, theirs.category_count_, strict=True):
        assert_allclose(actual, expected)
    assert_array_equal(ours.n_categories_, theirs.n_categories_)
    assert_allclose(ours.class_log_prior_, theirs.class_log_prior_, rtol=1e-12)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_bernoulli_naive_bayes(alpha):
    X, y = codes()
    ours = cb.BernoulliNB(rule="ml", alpha=alpha, binarize=1.0).fit(X, y)
    theirs = naive_bayes.BernoulliNB(alpha=alpha, binarize=1.0).fit(X, y)
    assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_, rtol=1e-12)
    assert_allclose(ours.feature_count_, theirs.feature_count_)
    assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("priors", [None, [0.1, 0.3, 0.6]])
def test_quadratic_discriminant_analysis(load, priors):
    """Its covariances divide by n - 1 in some versions: ours are scaled to that before the comparison."""
    X, y = load(return_X_y=True)
    ours = cb.QuadraticDiscriminantAnalysis(rule="ml", priors=priors, prior=None).fit(X, y)
    theirs = discriminant_analysis.QuadraticDiscriminantAnalysis(priors=priors, store_covariance=True).fit(
        X, y
    )
    sizes = np.bincount(y)
    for c in range(3):
        factors = (1.0, sizes[c] / (sizes[c] - 1))
        assert min(np.abs(f * ours.covariance_[c] - theirs.covariance_[c]).max() for f in factors) < 1e-8
    assert_allclose(ours.means_, theirs.means_, rtol=1e-10)
    assert_allclose(ours.priors_, theirs.priors_, rtol=1e-10)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99


def test_regularized_quadratic_discriminant_analysis():
    X, y = load_wine(return_X_y=True)
    ours = cb.QuadraticDiscriminantAnalysis(rule="ml", reg_param=0.3).fit(X, y)
    plain = cb.QuadraticDiscriminantAnalysis(rule="ml").fit(X, y)
    for regularized, unregularized in zip(ours.covariance_, plain.covariance_, strict=True):
        assert_allclose(regularized, 0.7 * unregularized + 0.3 * np.eye(13), rtol=1e-10)


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("shrinkage", [None, 0.2])
def test_linear_discriminant_analysis(load, shrinkage):
    X, y = load(return_X_y=True)
    ours = cb.LinearDiscriminantAnalysis(rule="ml", shrinkage=shrinkage).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-8, atol=1e-10)
    assert_allclose(ours.coef_ - ours.coef_[0], theirs.coef_ - theirs.coef_[0], rtol=1e-5, atol=1e-6)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5, atol=1e-8)


def test_discriminant_directions():
    X, y = load_wine(return_X_y=True)
    ours = cb.LinearDiscriminantAnalysis(rule="ml", n_components=2).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit(X, y)
    a, b = ours.transform(X), theirs.transform(X)
    signs = np.sign(np.sum((a - a.mean(axis=0)) * (b - b.mean(axis=0)), axis=0))
    scale = np.std(b - b.mean(axis=0), axis=0) / np.std(a, axis=0)
    assert_allclose(a - a.mean(axis=0), (b - b.mean(axis=0)) * signs / scale, atol=1e-6)
    assert_allclose(scale, scale[0], rtol=1e-6)
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_[:2], rtol=1e-6)


def test_two_classes_have_one_row_of_coefficients():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    ours = cb.LinearDiscriminantAnalysis(rule="rc").fit(X, y)
    assert ours.coef_.shape == (1, 4)
    assert_allclose(X @ ours.coef_[0] + ours.intercept_[0], ours.decision_function(X), rtol=1e-8, atol=1e-8)


def test_calibrated_linear_discriminant_analysis_approaches_logistic_regression():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    X, y = numbers()
    ours = cb.LinearDiscriminantAnalysis(rule="rc", max_iter=300, stop=cb.learn.NoGain(1e-9)).fit(X, y)
    theirs = LogisticRegression(C=1e8, max_iter=10_000, tol=1e-8).fit((X - X.mean(0)) / X.std(0), y)
    best = log_loss(y, theirs.predict_proba((X - X.mean(0)) / X.std(0)))
    assert log_loss(y, ours.predict_proba(X)) == pytest.approx(best, rel=1e-3)
