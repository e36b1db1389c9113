"""Maximum likelihood equals scikit-learn where the models are the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn import discriminant_analysis, naive_bayes
from sklearn.covariance import OAS, ShrunkCovariance, ledoit_wolf
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


SHARED = [
    {"shrinkage": "auto"},
    {"shrinkage": "auto", "priors": [0.2, 0.3, 0.5]},
    {"shrinkage": 0.3, "priors": [0.2, 0.3, 0.5]},
    {"priors": [0.2, 0.3, 0.5]},
    {"covariance_estimator": OAS()},
    {"covariance_estimator": ShrunkCovariance(), "priors": [0.2, 0.3, 0.5]},
]


@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
@pytest.mark.parametrize("options", SHARED, ids=str)
def test_shared_covariances_that_are_no_plain_average(solver, options):
    X, y = load_wine(return_X_y=True)
    ours = cb.LinearDiscriminantAnalysis(solver, rule="ml", **options).fit(X, y)
    theirs = discriminant_analysis.LinearDiscriminantAnalysis(solver, **options).fit(X, y)
    assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-9)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("options", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=str)
def test_covariances_of_the_classes_by_shrinkage(options):
    X, y = load_wine(return_X_y=True)
    ours = cb.QuadraticDiscriminantAnalysis(solver="eigen", rule="ml", **options).fit(X, y)
    joint = ours.predict_joint_log_proba(X)
    for c, covariance in enumerate(ours.covariance_):
        assert_allclose(covariance, class_covariance(X[y == c], **options), rtol=1e-9)
        density = multivariate_normal(X[y == c].mean(axis=0), covariance).logpdf(X)
        assert_allclose(joint[:, c], density + np.log(np.mean(y == c)), rtol=1e-8)


def class_covariance(X, shrinkage=None, covariance_estimator=None):
    """The definition: by the estimator, or by Ledoit and Wolf's on standardized columns."""
    if covariance_estimator is not None:
        return covariance_estimator.fit(X).covariance_
    scale = X.std(axis=0)
    return ledoit_wolf((X - X.mean(axis=0)) / scale)[0] * np.outer(scale, scale)


def test_automatic_shrinkage_counts_a_row_of_weight_two_twice():
    X, y = load_iris(return_X_y=True)
    weight = np.where(np.arange(len(y)) % 3, 1.0, 2.0)
    weighted = cb.QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto", rule="ml").fit(X, y, weight)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = cb.QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto", rule="ml").fit(
        X[rows], y[rows]
    )
    assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-10)


@pytest.mark.parametrize(
    "estimator", [cb.LinearDiscriminantAnalysis, cb.QuadraticDiscriminantAnalysis], ids=lambda e: e.__name__
)
@pytest.mark.parametrize("options", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=str)
class TestCovariancesThatAreNoSums:
    def test_all_rows_are_needed_at_once(self, estimator, options):
        X, y = load_iris(return_X_y=True)
        model = estimator(solver="eigen", rule="ml", **options)
        with pytest.raises(ValueError, match="need all rows at once"):
            model.partial_fit(X, y, classes=[0, 1, 2])
        model.fit(X, y)
        for call in (lambda: model.merge(model), lambda: model.forget(X[:2], y[:2])):
            with pytest.raises(ValueError, match="need all rows at once"):
                call()
        with pytest.raises(ValueError, match="need all rows at once"):
            cb.cross_validate_closed_form(model, X, y)

    def test_calibration_moves_the_means_only(self, estimator, options):
        X, y = load_iris(return_X_y=True)
        plain = estimator(solver="eigen", rule="ml", **options).fit(X, y)
        model = estimator(solver="eigen", **options).fit(X, y)
        assert_allclose(model.covariance_, plain.covariance_)
        assert not np.allclose(model.means_, plain.means_)
        assert model.history_["log_loss"][-1] < model.history_["log_loss"][0]

    def test_incomplete_rows_are_refused(self, estimator, options):
        X, y = load_iris(return_X_y=True)
        X[3, 1] = np.nan
        with pytest.raises(ValueError, match="need rows without missing values"):
            estimator(solver="eigen", **options).fit(X, y)


def test_averages_by_priors_are_exact_over_parts_of_the_rows():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    options = {"solver": "lsqr", "priors": [0.2, 0.3, 0.5], "rule": "ml"}
    whole = cb.LinearDiscriminantAnalysis(**options).fit(X, y)
    parts = cb.LinearDiscriminantAnalysis(**options).partial_fit(X[:90], y[:90], classes=[0, 1, 2])
    parts.partial_fit(X[90:], y[90:])
    assert_allclose(parts.covariance_, whole.covariance_, rtol=1e-9)
    assert whole.explain(X).names == ("class prior", "x0", "x1", "x2", "x3")


@pytest.mark.parametrize("options", [{}, {"reg_param": 0.2}])
def test_principal_axes_of_the_classes(options):
    X, y = load_iris(return_X_y=True)
    model = cb.QuadraticDiscriminantAnalysis(rule="ml", **options).fit(X, y)
    for covariance, axes, variances in zip(model.covariance_, model.rotations_, model.scalings_, strict=True):
        assert_allclose(axes * variances @ axes.T, covariance, atol=1e-12)
        assert (np.diff(variances) < 0).all()


def test_parameters_of_linear_discriminant_analysis_may_be_positional():
    given = ("eigen", "auto", [0.3, 0.7], 1, True, 1e-3, None)
    names = (
        "solver",
        "shrinkage",
        "priors",
        "n_components",
        "store_covariance",
        "tol",
        "covariance_estimator",
    )
    parameters = cb.LinearDiscriminantAnalysis(*given).get_params(deep=False)
    assert [parameters[name] for name in names] == list(given)


@pytest.mark.parametrize(
    "estimator",
    [cb.LinearDiscriminantAnalysis, cb.QuadraticDiscriminantAnalysis, cb.GenerativeLogisticRegression],
)
def test_priors_of_discriminant_analysis_are_normalized(estimator):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="The priors do not sum to 1. Renormalizing: their sum is 2"):
        model = estimator(priors=[0.4, 0.6, 1.0], rule="ml").fit(X, y)
    expected = estimator(priors=[0.2, 0.3, 0.5], rule="ml").fit(X, y)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X))


class TestClassesOfProbabilityZero:
    @pytest.mark.parametrize(
        "estimator",
        [cb.GaussianNB, cb.CategoricalNB, cb.BernoulliNB, cb.MultinomialNB, cb.LinearDiscriminantAnalysis],
        ids=lambda e: e.__name__,
    )
    def test_a_class_that_comes_later(self, estimator):
        X, y = codes()
        y = np.where(y == "a", 0, np.where(y == "b", 1, 2))
        late = y == 2
        model = estimator(rule="ml").partial_fit(X[~late], y[~late], classes=[0, 1, 2])
        without = estimator(rule="ml").fit(X[~late], y[~late])
        assert_array_equal(model.predict_proba(X)[:, 2], 0.0)
        assert_allclose(model.predict_proba(X)[:, :2], without.predict_proba(X), rtol=1e-9)
        model.partial_fit(X[late], y[late])
        assert_allclose(model.predict_proba(X), estimator(rule="ml").fit(X, y).predict_proba(X), rtol=1e-7)

    @pytest.mark.parametrize("rule", ["ml", "map"])
    def test_a_class_without_weight(self, rule):
        X, y = numbers()
        model = cb.GaussianNB(rule=rule).fit(X, y, sample_weight=(y != "c").astype(float))
        assert_allclose(model.class_prior_[2], 0.0)
        assert set(model.predict(X)) == {"a", "b"}
        assert_allclose(np.sum(model.predict_proba(X), axis=1), 1.0)
        with pytest.raises(ValueError, match="class 'c' had probability 0 in training"):
            model.with_priors([0.3, 0.3, 0.4])

    def test_a_class_whose_rows_are_forgotten(self):
        X, y = numbers()
        model = cb.GaussianNB(rule="ml").fit(X, y).forget(X[y == "c"], y[y == "c"])
        without = cb.GaussianNB(rule="ml").fit(X[y != "c"], y[y != "c"])
        assert_allclose(model.predict_proba(X)[:, :2], without.predict_proba(X), rtol=1e-6, atol=1e-9)

    def test_priors_of_zero(self):
        X, y = numbers()
        ours = cb.GaussianNB(rule="ml", priors=[0.4, 0.6, 0.0]).fit(X, y)
        with np.errstate(divide="ignore"):
            theirs = naive_bayes.GaussianNB(priors=[0.4, 0.6, 0.0]).fit(X, y).predict_proba(X)
        assert_allclose(ours.predict_proba(X), theirs, rtol=1e-9)

    def test_other_rules_need_rows_of_every_class(self):
        X, y = numbers()
        with pytest.raises(ValueError, match="no rows \\(or no weight\\) in class 'c'"):
            cb.GaussianNB(rule="rc").fit(X, y, sample_weight=(y != "c").astype(float))


def test_small_pseudo_counts_are_raised_with_a_warning():
    X, y = codes()
    with pytest.warns(
        UserWarning, match="alpha too small will result in numeric errors, setting alpha = 1.0e-10"
    ):
        cb.CategoricalNB(alpha=0.0, force_alpha=False).fit(X, y)
