"""scikit-learn's own checks, for every public estimator, none expected to fail."""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import calibayes
from calibayes import CalibratedTrees, FewRowsWarning, MixtureDiscriminantAnalysis, SingularCovarianceWarning
from calibayes.model.estimator import GenerativeEstimator as Generative

ESTIMATORS = [
    getattr(calibayes, name)()
    for name in calibayes.__all__
    if isinstance(getattr(calibayes, name), type) and hasattr(getattr(calibayes, name), "fit")
]
GENERATIVE = [estimator for estimator in ESTIMATORS if isinstance(estimator, Generative)]
"""Those that are models themselves and not made of others."""
ADDITIVE = [estimator for estimator in GENERATIVE if not isinstance(estimator, CalibratedTrees)]
"""All of those but trees, which depend on the training rows other than through sums; they have tests of their own."""
ITERATIVE = [estimator for estimator in ADDITIVE if estimator.rule == "rc"]
"""All of those but the ones that are learned in closed form only."""


def nothing_hidden(estimator):
    """The estimator where it is a sum of its rows: a mixture has one component a class there."""
    return (
        estimator.set_params(n_components=1)
        if isinstance(estimator, MixtureDiscriminantAnalysis)
        else estimator
    )


def listed(mark):
    """The mark with its cases as a list: scikit-learn 1.6 gives an iterator, which pytest 9 refuses."""
    names, cases = mark.args
    return pytest.mark.parametrize(names, list(cases), **mark.kwargs)


# The checks fit to noise and to fewer rows than columns: fits that have more to gain, singular covariances and classes
# of few rows are what they ask for, and all say so.
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.{ConvergenceWarning.__name__}")
@pytest.mark.filterwarnings(
    f"ignore::{SingularCovarianceWarning.__module__}.{SingularCovarianceWarning.__name__}"
)
@pytest.mark.filterwarnings(f"ignore::{FewRowsWarning.__module__}.{FewRowsWarning.__name__}")
@listed(parametrize_with_checks(ESTIMATORS))
def test_scikit_learn_check(estimator, check):
    check(estimator)
