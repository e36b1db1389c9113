"""Invalid parameters raise ValueError with what was given and what is expected."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

import calibayes as cb
from calibayes.families import Bernoulli, Categorical, Dirichlet, Full, Gaussian, NormalInverseWishart
from calibayes.learn import Patience
from calibayes.rules import DFE, GDT, RC, Backtracking, Fixed, Schedule
from tests.contract.tables import frame


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({"tired": 2.0}, "class_weight names 'tired'"),
        ({"ill": 0.0, "well": 0.0}, "at least one non-zero"),
        ("even", "a dictionary or 'balanced'"),
        (2.0, r"a dictionary or 'balanced', got 2\.0"),
        ([1.0, 2.0], "a dictionary or 'balanced', got"),
    ],
)
def test_bad_class_weights(class_weight, message):
    X, y = frame()
    with pytest.raises(ValueError, match=message):
        cb.GaussianNB(class_weight=class_weight).fit(X, y)


def test_a_stop_that_needs_validation_rows():
    X, y = frame()
    with pytest.raises(ValueError, match="validation_fraction"):
        cb.GaussianNB(stop=Patience("validation_log_loss")).fit(X, y)


def test_a_rule_that_a_family_cannot_follow():
    X, y = frame()
    with pytest.raises(ValueError, match=r"rule 'dfe' needs families with .*counts.*'columns' \(Gaussian\)"):
        cb.GaussianNB(rule="dfe").fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Categorical(alpha=-1.0), "alpha must be finite and must not be negative"),
        (lambda: Bernoulli(alpha=1.0, prior=Dirichlet()), "not both"),
        (lambda: Dirichlet(-2.0), "must be finite and not negative"),
        (lambda: GDT(lam=1.5), "between 0 and 1"),
        (lambda: DFE(step=Backtracking()), "DFE has no objective for an adaptive step"),
        (lambda: Fixed(0.0), "must be positive"),
        (lambda: RC(step=-0.1).control, "must be positive"),
        (lambda: Backtracking(start=9.0), "start <= most"),
        (lambda: RC(step="long").control, "step must be a number or a step control"),
        (lambda: Schedule([]), "a list of steps"),
        (lambda: Schedule([-1.0]).step(1, None), "must be positive"),
        (lambda: Patience("auc"), "unknown metric 'auc'"),
        (lambda: NormalInverseWishart(m1=np.inf), "finite"),
        (lambda: NormalInverseWishart(mean=[np.nan]), "the mean must be finite"),
        (lambda: Gaussian(prior="foo"), "prior of Gaussian"),
        (lambda: Categorical(prior=5), "prior of counts"),
    ],
)
def test_bad_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (cb.GaussianNB(priors=[0.5, 0.3]), "sum of the priors should be 1"),
        (cb.GaussianNB(priors=[0.5, 0.3, 0.2]), "Number of priors must match number of classes"),
        (cb.GaussianNB(priors=[1.0, 0.0]), "must be positive; .* rule='ml'"),
        (cb.GaussianNB(priors=[-0.5, 1.5]), "Priors must be non-negative"),
        (cb.LinearDiscriminantAnalysis(priors=[-0.5, 1.5]), "priors must be non-negative"),
        (cb.CategoricalNB(alpha=0.5, prior=Dirichlet()), "not both"),
        (cb.CategoricalNB(alpha=[1.0, 2.0]), "alpha has shape"),
        (cb.QuadraticDiscriminantAnalysis(reg_param=2.0), "reg_param must be a number between 0 and 1"),
        (
            cb.LinearDiscriminantAnalysis(shrinkage="some"),
            "shrinkage must be a number between 0 and 1, 'auto'",
        ),
        (cb.LinearDiscriminantAnalysis(shrinkage=1.5), "shrinkage must be a number between 0 and 1"),
        (cb.LinearDiscriminantAnalysis(n_components=5), "n_components=5 must lie between 1"),
        (cb.LinearDiscriminantAnalysis("qr"), "solver must be one of 'svd', 'lsqr', 'eigen', got 'qr'"),
        (cb.QuadraticDiscriminantAnalysis(solver="lsqr"), "solver must be one of 'svd', 'eigen', got 'lsqr'"),
        (cb.QuadraticDiscriminantAnalysis(tol=-1.0), "tol must be a number"),
        (cb.GaussianNB(random_state=-1), "random_state must be None, a whole number .* got -1"),
        (
            cb.LogUnivariateClassifier(random_state="x"),
            "random_state must be None, a whole number .* got 'x'",
        ),
        (cb.GaussianNB(priors="even"), "priors must be numbers, one for each class, got 'even'"),
        (cb.MultinomialNB(alpha="large"), "alpha must be a number or an array of numbers, got 'large'"),
        (cb.NaiveBayes(alpha="large"), "alpha must be a number or an array of numbers, got 'large'"),
        (
            cb.LogUnivariateClassifier(penalty=[]),
            r"loss must be .* and penalty 'l2' or 'l1', got 'log' and \[\]",
        ),
        (cb.LogUnivariateClassifier(scoring=[]), r"scoring must be one of .*, got \[\]"),
        (cb.LogUnivariateClassifier(C="large"), "C must be a number or an array of numbers, got 'large'"),
        (cb.TradeOffCV(lams=None), "lams? must be a number .* got"),
        (cb.TradeOffCV(lams="all"), "lams must be a number or an array of numbers, got 'all'"),
        (cb.BernoulliNB(binarize=[]), r"binarize\) must be a finite number or None, got \[\]"),
        (cb.BernoulliNB(binarize=None), "column 'age' has values other than 0 and 1"),
        (cb.GenerativeClassifier(families=[("a", Gaussian(Full()), ["height"])]), "no column 'height'"),
        (
            cb.GenerativeClassifier(families=[("a", Gaussian(Full()), [0]), ("b", Gaussian(Full()), [0, 1])]),
            "'age' is bound to 'a' and to 'b'",
        ),
        (cb.GenerativeClassifier(families=[("a", Gaussian(Full()), [])]), "no family has any columns"),
        (cb.GenerativeClassifier(families=[("class_prior", Gaussian(), [0])]), "other than 'class_prior'"),
        (cb.GenerativeClassifier(families=[("a", Gaussian, [0])]), "must be bound to a family such as"),
        (cb.GenerativeClassifier(families=[("a", Gaussian())]), "families must be"),
        (cb.GenerativeClassifier(families=[("a", Gaussian(), [True, False])]), "a mask of 2 columns"),
        (cb.GenerativeClassifier(families=[("a", Gaussian(), [0.5])]), "no column 0.5"),
        (cb.NaiveBayes(n_bins=0), "n_bins must be a whole number"),
        (cb.NaiveBayes(n_bins=4), "n_bins needs discretize"),
        (cb.GaussianNB(var_smoothing=-1.0), "var_smoothing must be a number"),
        (cb.GaussianNB(prior=NormalInverseWishart(mean=[1.0])), "the prior mean has shape"),
        (
            cb.LinearDiscriminantAnalysis("eigen", covariance_estimator=KMeans(2)),
            "KMeans does not have a covariance_ attribute",
        ),
    ],
)
def test_bad_model_parameters(model, message):
    X, y = frame()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
