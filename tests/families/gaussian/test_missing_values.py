"""Missing values: Gaussians against a row-by-row reference, all estimators on tables with missing values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.learn import LastState
from tests.contract.test_scikit_learn import GENERATIVE


def gappy(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = (
        rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.2], [0.0, 1.0, 0.4], [0.0, 0.0, 1.0]])
        + 1.2 * y[:, None]
    )
    X[rng.random(X.shape) < 0.25] = np.nan
    return X, y


def expected_row(x, mean, covariance):
    """E[x] and E[x x'] of a row given its known values."""
    known, whole, left = ~np.isnan(x), x.copy(), np.zeros((len(x), len(x)))
    if not known.all():
        slopes = covariance[np.ix_(~known, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
        whole[~known] = mean[~known] + slopes @ (x[known] - mean[known])
        left[np.ix_(~known, ~known)] = (
            covariance[np.ix_(~known, ~known)] - slopes @ covariance[np.ix_(known, ~known)]
        )
    return whole, np.outer(whole, whole) + left


def plain_em(X, y, *, tied, passes=400):
    """Expectation maximization of class means and covariances, one row at a time."""
    means = np.stack([np.nanmean(X[y == c], axis=0) for c in (0, 1)])
    covariances = np.stack([np.diag(np.nanvar(X, axis=0))] * 2)
    for _ in range(passes):
        moments = [[expected_row(x, means[c], covariances[c]) for x in X[y == c]] for c in (0, 1)]
        means = np.stack([np.mean([first for first, _ in rows], axis=0) for rows in moments])
        own = [
            np.mean([m for _, m in rows], axis=0) - np.outer(mu, mu)
            for rows, mu in zip(moments, means, strict=True)
        ]
        covariances = np.stack([np.average(own, axis=0, weights=np.bincount(y))] * 2 if tied else own)
    return means, covariances


@pytest.mark.parametrize("tied", [False, True])
def test_full_gaussians_reach_the_maximum_of_the_likelihood(tied):
    X, y = gappy()
    estimator = cb.LinearDiscriminantAnalysis if tied else cb.QuadraticDiscriminantAnalysis
    model = estimator(rule="ml", prior=None, max_iter=400, stop=LastState()).fit(X, y)
    means, covariances = plain_em(X, y, tied=tied)
    assert_allclose(model.means_, means, atol=1e-8)
    assert_allclose(model.covariance_, covariances[0] if tied else covariances, atol=1e-8)
    objective = model.history_["objective"]
    assert np.all(np.diff(objective) > -1e-12)


def test_full_gaussians_are_marginalized_at_predict():
    X, y = gappy()
    complete = ~np.isnan(X).any(axis=1)
    model = cb.QuadraticDiscriminantAnalysis(rule="rc").fit(X[complete], y[complete])
    found = model.predict_joint_log_proba(X)
    for row, x in enumerate(X):
        known = ~np.isnan(x)
        for c in (0, 1):
            expected = np.log(model.priors_[c])
            if known.any():
                normal = stats.multivariate_normal(
                    model.means_[c][known], model.covariance_[c][np.ix_(known, known)]
                )
                expected += normal.logpdf(x[known])
            assert found[row, c] == pytest.approx(expected, abs=1e-8)


def test_diagonal_gaussians_skip_missing_values():
    X, y = gappy()
    model = cb.GaussianNB(rule="ml", var_smoothing=0.0).fit(X, y)
    for c in (0, 1):
        assert_allclose(model.theta_[c], np.nanmean(X[y == c], axis=0), rtol=1e-12)
        assert_allclose(model.var_[c], np.nanvar(X[y == c], axis=0), rtol=1e-10)
    tied = cb.GenerativeLogisticRegression(rule="ml").fit(X, y)
    residual = X - model.theta_[y]
    assert_allclose(tied.var_, np.nanmean(residual**2, axis=0), rtol=1e-10)


@pytest.mark.parametrize("rule", ["ml", "map", "rc", "tm", "gdt", "em", "gd"])
@pytest.mark.parametrize(
    "estimator",
    [
        estimator
        for estimator in GENERATIVE
        if get_tags(estimator).input_tags.allow_nan and not isinstance(estimator, cb.CalibratedTrees)
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_learns_from_rows_with_missing_values(estimator, rule):
    """Trees are left out: they send missing values to a side instead of integrating them out."""
    X, y = gappy(300)
    X = np.abs(X) if get_tags(estimator).input_tags.positive_only else X
    without_natural = cb.NaiveBayes | cb.KernelNB | cb.MixtureDiscriminantAnalysis
    model = type(estimator)(rule=rule, max_iter=10)
    if rule == "gd" and isinstance(estimator, without_natural):
        with pytest.raises(ValueError, match="'gd' needs families with natural parameters"):
            model.fit(X, y)
        model = cb.NaiveBayes(discretize="kmeans", rule=rule, max_iter=10)
    model.fit(X, y)
    log_posterior = model.predict_log_proba(X)
    assert np.isfinite(log_posterior).all()
    nothing = np.full((1, 3), np.nan)
    shares = np.exp(model.parameters_["class_prior"]["log_probability"])
    assert_allclose(model.predict_proba(nothing)[0], shares, rtol=1e-9)
    assert_allclose(model.score_samples(nothing), 0.0, atol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize(
    "estimator", [cb.GaussianNB, cb.BernoulliNB, cb.CategoricalNB, cb.GenerativeLogisticRegression]
)
def test_partial_fit_with_missing_values_is_fit(estimator, rule):
    X, y = gappy(200)
    X = np.round(X, 1)
    model = estimator(rule=rule)
    for part in np.array_split(np.arange(200), 4):
        model.partial_fit(X[part], y[part], classes=[0, 1])
    assert_allclose(model.predict_proba(X), estimator(rule=rule).fit(X, y).predict_proba(X), atol=1e-10)


def test_a_class_without_a_known_value_in_a_column_is_refused():
    X, y = gappy()
    X[y == 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"class '1'.*no known values in column 'x2'"):
        cb.GaussianNB(prior=None, var_smoothing=0.0).fit(X, y)


def test_a_family_without_support_for_missing_values_refuses_them():
    from tests.oracles.test_papers import KnownVariance

    model = cb.GenerativeClassifier(families=[("x", KnownVariance(), [0])])
    with pytest.raises(
        ValueError, match="column 'x0' contains NaN, and KnownVariance cannot model missing values"
    ):
        model.fit([[1.0], [np.nan], [2.0]], [0, 1, 1])


def test_tables_with_missing_values_need_no_preprocessing(data_file):
    import pandas as pd
    import polars as pl

    for name in ("adult", "vote", "soybean", "mushroom"):
        frame = pd.read_csv(data_file(name)).iloc[::7]
        X, y = frame.drop(columns="target"), frame["target"]
        model = cb.NaiveBayes(rule="ml").fit(X, y)
        again = pl.read_csv(data_file(name), infer_schema_length=None)[::7].drop("target")
        assert_allclose(
            cb.NaiveBayes(rule="ml").fit(again, y.to_numpy()).predict_proba(again), model.predict_proba(X)
        )


@pytest.mark.parametrize(
    "estimator",
    [cb.LinearDiscriminantAnalysis, cb.QuadraticDiscriminantAnalysis, cb.MixtureDiscriminantAnalysis],
)
@pytest.mark.parametrize("prior", [None, "auto"])
def test_a_constant_column_is_as_without_it_also_beside_missing_cells(estimator, prior):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 4)), np.arange(80) % 2
    X[:, 2] = 3.0
    for cell in (0.5, np.nan):
        X[5, 0] = cell
        model = estimator(prior=prior).fit(X, y)
        without = np.delete(X, 2, axis=1)
        expected = estimator(prior=prior).fit(without, y).predict_proba(without)
        assert_allclose(model.predict_proba(X), expected, atol=1e-9)
        if (
            estimator is not cb.MixtureDiscriminantAnalysis
        ):  # components start at the centers of complete rows
            X[7, 2] = np.nan  # a gap in a constant column says nothing, either
            assert_allclose(estimator(prior=prior).fit(X, y).predict_proba(X), expected, atol=1e-9)
            X[7, 2] = 3.0


@pytest.mark.parametrize("rule", ["ml", "map", "rc", "tm", "gdt", "gd"])
@pytest.mark.parametrize(
    "estimator",
    [
        cb.LinearDiscriminantAnalysis,
        cb.QuadraticDiscriminantAnalysis,
        cb.GenerativeLogisticRegression,
        cb.GaussianNB,
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_constant_column_changes_nothing_under_any_rule(estimator, rule):
    rng, y = np.random.default_rng(0), np.arange(150) % 3
    X = rng.normal(size=(150, 4)) + np.outer(y, [1, 0, 0, 0])
    constant = np.insert(X, 2, 3.0, axis=1)
    expected = estimator(rule=rule).fit(X, y).predict_proba(X)
    assert_allclose(estimator(rule=rule).fit(constant, y).predict_proba(constant), expected, atol=1e-9)
