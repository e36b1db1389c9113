"""Families over counts against SciPy's densities and scikit-learn's estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn import naive_bayes
from sklearn.datasets import load_digits

import calibayes as cb
from calibayes.core.protocols import Layout
from calibayes.families import Gamma, Multinomial
from tests.cases import FAMILIES
from tests.contract.test_sparse import documents

MAKE = pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])


def learned(name):
    case = FAMILIES[name]
    family = case.prepared()
    return case, family, family.parameters(case.start())


def conditional_likelihood(family, columns, parameters, labels):
    log_density = family.log_density(columns, parameters)
    log_posterior = log_density - np.logaddexp.reduce(log_density, axis=1, keepdims=True)
    return np.sum(labels * log_posterior), np.exp(log_posterior)


def slope_of_gradient_step(family, columns, parameters, labels, rate=1e-6):
    """The slope of the conditional likelihood along gradient steps, by a difference, and as the projection implies."""
    _, posterior = conditional_likelihood(family, columns, parameters, labels)
    direction = family.statistics(columns, labels - posterior)
    ahead, back = (
        conditional_likelihood(
            family, columns, family.gradient_step(parameters, direction, step).parameters, labels
        )
        for step in (rate, -rate)
    )
    g, p = direction["count"], np.exp(parameters["log_probability"])
    levels = np.cumsum(family.layout.levels)[:-1] if family.layout.levels else []
    tables = [np.split(array, levels, axis=1) for array in (g, p * g, g / p)]
    gains = [(g**2).sum() - pg.mean(axis=1) @ gp.sum(axis=1) for g, pg, gp in zip(*tables, strict=True)]
    return (ahead[0] - back[0]) / (2 * rate), sum(gains)


@pytest.mark.parametrize(
    "name", ["multinomial-alpha", "multinomial-dirichlet", "categorical-alpha", "categorical-dirichlet"]
)
def test_slope_of_the_likelihood_along_projected_gradient_steps(name):
    """A step g on log p becomes g - mean(p g) / p by the projection: its gain is sum(g^2) - mean(p g) sum(g / p)."""
    case, family, parameters = learned(name)
    measured, implied = slope_of_gradient_step(family, case.columns, parameters, case.labels())
    assert measured == pytest.approx(implied, rel=1e-4, abs=1e-3)


def test_a_projected_gradient_step_may_lower_the_likelihood():
    """However small it is: the gain may be negative where a probability is small."""
    family = Multinomial().bind(Layout(("a", "b"), ("x", "y", "z")))
    columns, labels = np.array([[1.0, 3.0, 0.0], [0.0, 0.0, 4.0]]), np.eye(2)
    parameters = {"log_probability": np.log([[0.01, 0.9, 0.09]] * 2), "length": np.ones(1)}
    measured, implied = slope_of_gradient_step(family, columns, parameters, labels)
    assert measured == pytest.approx(implied, rel=1e-4)
    assert implied < 0


@pytest.mark.parametrize("name", ["poisson", "poisson-gamma"])
def test_poisson_density(name):
    case, family, parameters = learned(name)
    for c, rate in enumerate(parameters["rate"]):
        expected = stats.poisson.logpmf(case.columns, rate).sum(axis=1)
        assert_allclose(family.log_density(case.columns, parameters)[:, c], expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["multinomial", "multinomial-alpha"])
def test_multinomial_density(name):
    case, family, parameters = learned(name)
    for c, log_probability in enumerate(parameters["log_probability"]):
        lengths = case.columns.sum(axis=1)
        expected = stats.multinomial.logpmf(case.columns, lengths, np.exp(log_probability))
        assert_allclose(family.log_density(case.columns, parameters)[:, c], expected, rtol=1e-9, atol=1e-12)


def test_poisson_rates_are_means_of_known_values():
    X, y = documents()
    X[::7, 3] = np.nan
    model = cb.PoissonNB(rule="ml", alpha=0.0).fit(X, y)
    expected = np.stack([np.nanmean(X[y == label], axis=0) for label in "xyz"])
    assert_allclose(model.rate_, expected, rtol=1e-10, atol=1e-11)
    smooth = cb.PoissonNB(rule="ml", prior=Gamma(2.0, 3.0)).fit(X, y)
    known = np.stack([(~np.isnan(X[y == label])).sum(axis=0) for label in "xyz"])
    assert_allclose(smooth.rate_, (expected * known + 2.0) / (known + 3.0), rtol=1e-10)
    near = cb.PoissonNB(rule="ml", alpha=4.0).fit(X, y)
    mean = np.maximum(np.nanmean(X, axis=0), 1e-12)
    assert_allclose(near.rate_, (expected * known + 4.0) / (known + 4.0 / mean), rtol=1e-10)


def test_poisson_is_a_multinomial_with_lengths():
    """Given its number of events, a row of Poissons is one multinomial with the shares of the rates."""
    X, y = documents()
    rates = cb.PoissonNB(rule="ml", alpha=0.0).fit(X, y).rate_
    shares = np.exp(cb.MultinomialNB(rule="ml", alpha=0.0).fit(X, y).feature_log_prob_)
    assert_allclose(rates / rates.sum(axis=1, keepdims=True), shares, rtol=1e-10, atol=1e-11)


def test_an_event_of_probability_zero_has_a_finite_log_density():
    X, y = np.array([[0.0, 2.0], [0.0, 4.0], [3.0, 1.0], [5.0, 1.0]]), [0, 0, 1, 1]
    for estimator in (cb.PoissonNB, cb.MultinomialNB):
        joint = estimator(rule="ml", alpha=0.0).fit(X, y).predict_joint_log_proba([[1.0, 3.0]])[0]
        assert np.isfinite(joint).all()
        assert joint[1] - joint[0] > 10


@pytest.mark.parametrize("alpha", [1.0, 0.1, "each"])
@pytest.mark.parametrize("options", [{}, {"fit_prior": False}, {"class_prior": [0.2, 0.3, 0.5]}])
@MAKE
def test_multinomial_naive_bayes(alpha, options, make):
    X, y = documents()
    alpha = np.linspace(0.1, 2.0, X.shape[1]) if alpha == "each" else alpha
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    ours = cb.MultinomialNB(rule="ml", alpha=alpha, **options).fit(make(X), y, weight)
    theirs = naive_bayes.MultinomialNB(alpha=alpha, **options).fit(make(X), y, weight)
    for name in ("feature_log_prob_", "feature_count_", "class_log_prior_", "class_count_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
    assert_allclose(ours.predict_log_proba(make(X)), theirs.predict_log_proba(make(X)), rtol=1e-9, atol=1e-9)
    assert_array_equal(ours.predict(make(X)), theirs.predict(make(X)))


@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("options", [{}, {"fit_prior": False}, {"class_prior": [0.2, 0.3, 0.5]}])
@MAKE
def test_complement_naive_bayes(alpha, norm, options, make):
    X, y = documents()
    ours = cb.ComplementNB(alpha=alpha, norm=norm, **options).fit(make(X), y)
    theirs = naive_bayes.ComplementNB(alpha=alpha, norm=norm, **options).fit(make(X), y)
    for name in ("feature_log_prob_", "feature_count_", "feature_all_", "class_log_prior_", "class_count_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
    assert_allclose(ours.predict_log_proba(make(X)), theirs.predict_log_proba(make(X)), rtol=1e-9, atol=1e-9)
    assert_array_equal(ours.predict(make(X)), theirs.predict(make(X)))


@MAKE
def test_counts_that_are_not_whole(make):
    X, y = documents()
    X = X * np.linspace(0.3, 1.7, X.shape[1])
    ours = cb.MultinomialNB(rule="ml").fit(make(X), y)
    theirs = naive_bayes.MultinomialNB().fit(X, y)
    assert_allclose(ours.predict_log_proba(make(X)), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    assert np.isfinite(cb.PoissonNB().fit(make(X), y).score_samples(make(X))).all()


@MAKE
def test_sparse_bernoulli_naive_bayes(make):
    X, y = documents()
    ours = cb.BernoulliNB(rule="ml").fit(make(X), y)
    theirs = naive_bayes.BernoulliNB().fit(make(X), y)
    assert_allclose(ours.predict_log_proba(make(X)), theirs.predict_log_proba(make(X)), rtol=1e-9, atol=1e-9)


def test_a_complement_is_no_density():
    X, y = documents()
    model = cb.ComplementNB().fit(X, y)
    assert not hasattr(model, "score_samples")
    with pytest.raises(ValueError, match="cannot be sampled"):
        model.sample()
    with pytest.raises(ValueError, match="closed form only"):
        cb.ComplementNB(rule="rc").fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (cb.PoissonNB(alpha=2.0, prior=Gamma()), "not both"),
        (cb.PoissonNB(alpha=-1.0), "alpha"),
        (cb.PoissonNB(prior=3.0), "must be a Gamma"),
        (cb.MultinomialNB(alpha=[1.0, 2.0]), "alpha has shape"),
    ],
)
def test_bad_priors(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*documents())


def test_gamma_is_checked():
    with pytest.raises(ValueError, match="finite and not negative"):
        Gamma(-1.0)


def test_a_class_without_a_known_value():
    X, y = documents()
    X[y == "y", 2] = np.nan
    with pytest.raises(ValueError, match="class 'y' has no known cell in column 'x2'"):
        cb.PoissonNB(alpha=0.0).fit(X, y)
    assert np.isfinite(cb.PoissonNB().fit(X, y).predict_proba(X)).all()


def test_calibration_improves_the_log_loss_of_dependent_words():
    """Words occur in pairs: naive Bayes counts the same evidence twice, calibration corrects this."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = rng.poisson(rng.gamma(0.5, 0.6, size=(3, 40))[y]).astype(float)
    X = np.concatenate([X, rng.binomial(X.astype(int), 0.9)], axis=1)
    loss = cb.MultinomialNB(max_iter=20, stop=None).fit(X, y).history_["log_loss"]
    assert loss[-1] < 0.5 * loss[0]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (cb.CategoricalNB, naive_bayes.CategoricalNB),
        (cb.MultinomialNB, naive_bayes.MultinomialNB),
    ],
)
@pytest.mark.parametrize("alpha", [1e-10, 1e-14])
def test_small_pseudo_counts_are_not_overridden(ours, theirs, alpha):
    X, y = load_digits(return_X_y=True)
    model, reference = ours(alpha=alpha, rule="ml").fit(X, y), theirs(alpha=alpha, force_alpha=True).fit(X, y)
    assert_allclose(model.predict_log_proba(X), reference.predict_log_proba(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-10, 1e-14])
def test_small_pseudo_counts_of_flags(alpha):
    """scikit-learn computes log p(0) as log(1 - p(1)), which loses digits: both are compared as log p(1)."""
    X, y = load_digits(return_X_y=True)
    for flags in (X > 0, X <= 0):
        model = cb.BernoulliNB(alpha=alpha, rule="ml").fit(flags, y)
        reference = naive_bayes.BernoulliNB(alpha=alpha, force_alpha=True).fit(flags, y)
        swapped = naive_bayes.BernoulliNB(alpha=alpha, force_alpha=True).fit(~flags, y)
        parameters = model.parameters_["columns"]
        assert_allclose(parameters["log_one"], reference.feature_log_prob_, rtol=1e-10, atol=1e-13)
        assert_allclose(parameters["log_zero"], swapped.feature_log_prob_, rtol=1e-10, atol=1e-13)
