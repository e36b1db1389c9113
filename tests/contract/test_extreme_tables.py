"""Tiny tables and extreme weights end in a result or an error that says what to do; a warning of NumPy is a failure."""

import numpy as np
import pytest
from sklearn.base import clone

import calibayes as cb
from calibayes.kernels.cut_points import kmeans_centers
from calibayes.kernels.joint_density import KernelRows, log_densities
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.seeds import generator

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::calibayes.SingularCovarianceWarning"),
]


@pytest.mark.parametrize("weight", [1e-308, 1e-200])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_weights_whose_products_are_zero(estimator, weight):
    rng, y = generator(0), np.arange(30) % 2
    X = rng.poisson(1 + y[:, None], (30, 3)).astype(float)
    model = clone(estimator)
    if isinstance(model, cb.JointKernelClassifier | cb.CalibratedTrees):  # only ratios of weights are used
        model.fit(X, y, sample_weight=np.full(30, weight))
        assert np.isfinite(model.predict_log_proba(X)).all()
        return
    if isinstance(model, cb.NaiveBayes):
        model.set_params(discretize="kmeans")
    with pytest.raises(ValueError, match=r"largest sample weight is .* Multiply all weights by a constant"):
        model.fit(X, y, sample_weight=np.full(30, weight))


@pytest.mark.parametrize("rule", ["ml", "rc"])
def test_classes_with_equal_means_have_no_discriminant_direction(rule):
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
    model = cb.LinearDiscriminantAnalysis(rule=rule).fit(X, [0, 0, 0, 0, 1, 1])
    assert model.explained_variance_ratio_.tolist() == [0.0]
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("name", ["MultinomialNB", "ComplementNB", "PoissonNB", "BernoulliNB"])
@pytest.mark.parametrize("seed", range(12))
def test_tiny_tables_of_counts(name, seed):
    rng = generator(seed)
    n, d = rng.integers(2, 6), rng.integers(1, 4)
    X, y = rng.poisson(0.4, (n, d)).astype(float), np.arange(n) % 2
    model = getattr(cb, name)()
    if not X.any() and name == "ComplementNB":
        X[0] = 1.0
    model.fit(X, y)
    new = rng.poisson(0.6, (3, d)).astype(float)
    assert np.isfinite(model.predict_proba(new)).all()
    model.decide(new)
    if n > 3:  # every class has two rows
        assert len(model.label_issues(X, y)) <= n


def test_two_rows_cannot_be_held_out():
    with pytest.raises(ValueError, match="no row can be held out"):
        cb.BernoulliNB().fit([[0.0], [1.0]], [0, 1]).label_issues([[0.0], [1.0]], [0, 1])


def test_clusters_of_values_of_huge_weights():
    values, weight = np.arange(6.0), np.array([1e90, 1e-290, 1.0, 1e90, 1e-290, 1e90])
    centers = kmeans_centers(values, weight, np.array([0.1, 50.0, 60.0]))
    assert np.isfinite(centers).all()


def test_the_density_beside_a_row_whose_share_is_zero():
    centers = KernelRows(np.array([[0.0], [1e4]]), np.array([1e-300, 1e100]), np.array([2]))
    assert np.isfinite(log_densities(np.array([[0.0]]), centers, [1.0])).all()


def test_the_encoders_that_the_readme_names_are_parameters():
    dense = {type(e).__name__ for e in ESTIMATORS if "encoder" in e.get_params()}
    assert dense == {
        "GenerativeLogisticRegression",
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    }
